"""The interface of a host, which holds the models of a run outside of this process."""

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from coterie.agents.team.backend import Backend
from coterie.agents.team.settings import AgentSettings
from coterie.agents.vllm.settings import VllmSettings
from coterie.cli.extras import HOSTS
from coterie.cli.plugins import load
from coterie.training.config.train_settings import TrainSettings
from coterie.training.run.directory import RunDirectory

Flag = tuple[str, Any, Any]
"""Name, type and default of a field of settings."""


class Host(Protocol):
    """Holds models outside of this process."""

    section: str
    """The name of its section in the settings."""

    def holds_models(self, section_settings: Any, agents: Mapping[str, AgentSettings]) -> bool:
        """Whether it holds the models of ``agents``; ``section_settings`` as of :meth:`build`."""
        ...

    def check(self, settings: TrainSettings) -> None:
        """Check the settings of a run before its models are looked at.

        Raises:
            UserError: one sentence that names the flag.
        """
        ...

    def resume_flags(self, settings: TrainSettings) -> Sequence[Flag]:
        """The flags that are allowed beside ``--resume``, with the stored values as defaults."""
        ...

    def with_flags(self, settings: TrainSettings, flags: Any) -> TrainSettings:
        """``settings`` overridden by ``flags``, whose fields are those of :meth:`resume_flags`."""
        ...

    def build(
        self,
        section_settings: Any,
        agents: Mapping[str, AgentSettings],
        *,
        vllm: VllmSettings | None,
        threads: int,
        directory: RunDirectory,
    ) -> Backend | None:
        """The backend that holds the models; None: this process holds them.

        Args:
            section_settings: the settings of its section.
            agents: role -> who plays it.
            vllm: settings of engines; None: there are no engines.
            threads: of each process; 0: as many as it has cores.
            directory: of the run.
        """
        ...


def load_host(engine: str) -> Host:
    """The host of runs with this ``--engine``."""
    return load(HOSTS[engine], f"--engine {engine}")


def lives_elsewhere(settings: TrainSettings) -> bool:
    """Whether a host holds the models of such a run."""
    host = load_host(settings.run.engine)
    return host.holds_models(getattr(settings, host.section), settings.agents)
