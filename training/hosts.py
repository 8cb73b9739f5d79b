"""Where a run's models live and its episodes are played, if that is not this process."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

from coterie.agents.team.backend import Backend
from coterie.agents.team.recipe import EnvRecipe
from coterie.agents.team.settings import AgentSettings
from coterie.agents.vllm.settings import VllmSettings
from coterie.cli.extras import load_each
from coterie.problems.source import ProblemSource
from coterie.rollouts import Collector
from coterie.training.config.train_settings import TrainSettings
from coterie.training.run.directory import RunDirectory

Flag = tuple[str, Any, Any]
"""Name, type and default of a field of settings."""


class Players(Protocol):
    """Processes that play the episodes of a run."""

    @property
    def places(self) -> list[dict[str, str]]:
        """See :meth:`coterie.agents.team.backend.Backend.places`."""
        ...

    @property
    def collector(self) -> Callable[..., Collector]:
        """Makes a :class:`Collector` whose episodes they play."""
        ...

    def open(self, recipe: EnvRecipe, threads: int) -> None:
        """Start them; ``threads`` of each, 0: as many as it has cores.

        Raises:
            UserError: they cannot play this environment.
        """
        ...

    def close(self) -> None:
        """End them."""
        ...


class Host(Protocol):
    """Holds models, or plays episodes, outside of this process: what an extra may register."""

    section: str
    """Its section of the settings."""

    def holds_models(self, own: Any, agents: Mapping[str, AgentSettings]) -> bool:
        """Whether it has these models; ``own`` as of :meth:`build`."""
        ...

    def check(self, settings: TrainSettings) -> None:
        """Before models are looked at.

        Raises:
            UserError: one sentence that names the flag.
        """
        ...

    def check_problems(self, settings: TrainSettings, source: ProblemSource) -> None:
        """Once the training problems are open; errors as of :meth:`check`."""
        ...

    def movable(self, settings: TrainSettings) -> Sequence[Flag]:
        """What ``--resume`` may change of a run."""
        ...

    def moved(self, settings: TrainSettings, flags: Any) -> TrainSettings:
        """``settings`` with ``flags``, which are fields of :meth:`movable`, laid over."""
        ...

    def build(
        self,
        own: Any,
        agents: Mapping[str, AgentSettings],
        *,
        vllm: VllmSettings | None,
        threads: int,
        directory: RunDirectory,
    ) -> tuple[Backend | None, Players | None]:
        """What holds the models, and what plays the episodes; None: not this host.

        Args:
            own: the settings of its section.
            agents: role -> who plays it.
            vllm: how engines are run; None: there are none.
            threads: of each process; 0: as many as it has cores.
            directory: the run's.
        """
        ...


def hosts() -> Sequence[Host]:
    """Return the hosts that installed extras register."""
    return load_each("host")


def lives_elsewhere(settings: TrainSettings) -> bool:
    """Whether the models of such a run are not in this process."""
    return any(
        host.holds_models(getattr(settings, host.section), settings.agents) for host in hosts()
    )
