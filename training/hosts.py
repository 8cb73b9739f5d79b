"""Where a run's models live, if that is not this process."""

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from coterie.agents.team.backend import Backend
from coterie.agents.team.settings import AgentSettings
from coterie.agents.vllm.settings import VllmSettings
from coterie.cli.extras import HOST
from coterie.cli.plugins import load
from coterie.training.config.train_settings import TrainSettings
from coterie.training.run.directory import RunDirectory

Flag = tuple[str, Any, Any]
"""Name, type and default of a field of settings."""


class Host(Protocol):
    """Holds models outside of this process."""

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
    ) -> Backend | None:
        """What holds the models; None: this process does.

        Args:
            own: the settings of its section.
            agents: role -> who plays it.
            vllm: how engines are run; None: there are none.
            threads: of each process; 0: as many as it has cores.
            directory: the run's.
        """
        ...


def load_host() -> Host:
    """The host of this installation."""
    return load(HOST, "the host of models")


def lives_elsewhere(settings: TrainSettings) -> bool:
    """Whether the models of such a run are not in this process."""
    host = load_host()
    return host.holds_models(getattr(settings, host.section), settings.agents)
