"""The description of an environment before it is built."""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class EnvSpec:
    """The description of an environment before it is built."""

    name: str
    version: int
    factory: str | Callable[..., Any]
    """``"module:callable"``, or the callable, which returns a PettingZoo environment. It may take
    the keywords ``settings``, ``roles``, ``scorer``, ``source``, ``tokenizers``, ``render_mode``.
    """
    settings: type | None = None
    """Frozen dataclass of settings; None: there are no settings."""
    roles: tuple[str, ...] = ()
    """Default roles."""
    evaluation: str | None = None
    """``"module:attribute"`` of the :class:`coterie.evaluation.evaluation.Evaluation`."""
    learns: Callable[[Any], Collection[str]] | None = None
    """Settings -> roles that act in training and so can learn; None: all roles."""
    learning: Callable[[tuple[str, ...]], Mapping[str, Any]] | None = None
    """Roles of ``--train-role`` -> defaults of settings that follow from it; None: none follow."""
    rereads: Callable[[Any], bool] | None = None
    """Settings -> whether traces are reread after other contexts (``Outcome.reread_after``), for
    ``--algo.distillation.beta``; None: unknown. An environment class that is named by its path may
    have it as an attribute."""
    terms: Callable[[Any], Collection[str]] | None = None
    """Settings -> reward terms that have a weight; None: any term may have one."""
    costs: Callable[[Any, Sequence[str]], Iterable[str]] | None = None
    """(settings, roles) -> lines of ``--plan`` about the cost of a problem; None: no lines."""
    check: Callable[[Any, Any], Iterable[tuple[bool, str]]] | None = None
    """(settings, all settings of a run) -> (whether a rule is broken, the error message), called
    before any model is loaded."""
    defaults: Mapping[str, Any] = field(default_factory=dict)
    """Defaults of a run: plain values by the names of the command line, nested
    (``{"rollout": {"problems_per_step": 8}, "agents": {"judge": {"trained": False}}}``). ``env``
    has only values that differ from the defaults of ``settings``; ``agents`` may name roles that
    only ``--roles`` brings into play."""
    larger: Mapping[str, Any] | None = None
    """If a model of the team is not tiny, the general defaults (docs/models.md) and then ``larger``
    are laid over ``defaults``; None: ``defaults`` win over the general ones."""
    small: Mapping[str, Any] | None = None
    """Added to ``larger`` if all models that learn have fewer than a billion weights."""
    suite: Mapping[str, Any] | None = None
    """How ``benchmark.py suite`` plays a policy in it: ``name``, ``problems``, ``role``, ``mode``
    and other keys of a suite file; None: it is no suite."""
    presets: str | None = None
    """``"module:attribute"`` of its presets by name (:class:`coterie.envs.preset.Preset`)."""
    tables: str | None = None
    """Module with its paper's tables, for ``benchmark.py sweep``: ``TABLES`` in miniature and
    ``AT_SCALE`` with the paper's models, by name (:class:`coterie.envs.paper_tables.Table`)."""
    baseline: Path | None = None
    """JSON with the results of another training method on the same problems (``algo``, ``command``,
    ``seeds``, ``metrics``), shown beside the results of these defaults."""

    @property
    def id(self) -> str:
        """The id in PettingZoo's registry, such as ``core-teaching-v0``."""
        return f"{self.name}-v{self.version}"


def never_rereads(settings: Any) -> bool:
    """Implement :attr:`EnvSpec.rereads` for environments without ``reread_after``."""
    return False
