"""The description of an environment before it is built."""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class EnvSpec:
    """What is known of an environment before it is built."""

    name: str
    version: int
    factory: str | Callable[..., Any]
    """``"module:callable"``, or the callable; it may take the keywords ``settings``, ``roles``,
    ``scorer``, ``source``, ``tokenizers`` and ``render_mode``, and gives a PettingZoo environment.
    """
    settings: type | None = None
    """Frozen dataclass of settings, for environments that have any."""
    roles: tuple[str, ...] = ()
    """Roles when the user names none."""
    evaluation: str | None = None
    """``"module:attribute"`` of how it is evaluated."""
    learns: Callable[[Any], Collection[str]] | None = None
    """Its settings -> the roles that are asked in training and so can learn; all without it."""
    learning: Callable[[tuple[str, ...]], Mapping[str, Any]] | None = None
    """The roles that ``--train-role`` names -> settings that follow from it, unless told otherwise;
    none without it."""
    rereads: Callable[[Any], bool] | None = None
    """Its settings -> whether it names contexts after which traces are read again
    (``Outcome.reread_after``), for ``--algo.distillation.beta``; None: nobody knows beforehand. A
    class that is named by its path may have it as an attribute."""
    terms: Callable[[Any], Collection[str]] | None = None
    """Its settings -> the reward terms that have a weight; None: all of them may."""
    costs: Callable[[Any, Sequence[str]], Iterable[str]] | None = None
    """(its settings, roles) -> lines of ``--plan`` about what one problem takes; None: no lines."""
    shipped: bool = False
    """Whether it comes with this package, so that other processes know it by its name, too."""
    check: Callable[[Any, Any], Iterable[tuple[bool, str]]] | None = None
    """(its settings, all settings of a run) -> (whether something cannot be, the sentence that
    refuses it), asked before any model is loaded."""
    defaults: Mapping[str, Any] = field(default_factory=dict)
    """What a run in it does unless told otherwise: plain values by the names of the command line,
    nested (``{"rollout": {"problems_per_step": 8}, "agents": {"judge": {"trained": False}}}``). Of
    ``env`` only what differs from the defaults of ``settings``."""
    larger: Mapping[str, Any] | None = None
    """What takes the place of ``defaults``, written alike, as soon as one model is no tiny one
    (docs/models.md); None: ``defaults`` suit models of every size."""
    suite: Mapping[str, Any] | None = None
    """How ``benchmark.py suite`` asks a policy in it: ``name``, ``problems``, ``role``, ``mode``,
    and whatever else a suite's file may say; None: it is no suite by a name of its own."""
    presets: str | None = None
    """``"module:attribute"`` of its presets by name (:class:`coterie.envs.preset.Preset`)."""
    tables: str | None = None
    """The module with its paper's tables, for ``benchmark.py sweep``: ``TABLES`` in miniature,
    ``AT_SCALE`` with the paper's models, by name (:class:`coterie.envs.paper_tables.Table`)."""
    baseline: Path | None = None
    """JSON with what another way to train makes of the same problems (``algo``, ``command``,
    ``seeds``, ``metrics``), to be shown beside what these defaults make of them."""

    @property
    def id(self) -> str:
        """The environment's id in PettingZoo's registry, such as ``core-teaching-v0``."""
        return f"{self.name}-v{self.version}"


def reads_nothing_again(settings: Any) -> bool:
    """:attr:`EnvSpec.rereads` of an environment that never names such a context."""
    return False
