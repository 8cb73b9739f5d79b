"""The interface between the core and a server with Tinker's API."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from coterie.agents.team.backend import Backend
from coterie.agents.team.settings import AgentSettings
from coterie.agents.vllm.settings import VllmSettings
from coterie.extras.tinker.checks import check_run
from coterie.extras.tinker.settings import TinkerSettings
from coterie.training.config.train_settings import TrainSettings
from coterie.training.hosts import Flag, Host
from coterie.training.run.directory import RunDirectory


class TinkerHost(Host):
    """Holds models on a server."""

    section = "tinker"

    def holds_models(
        self, section_settings: TinkerSettings, agents: Mapping[str, AgentSettings]
    ) -> bool:
        """See :class:`Host` for this and all other methods."""
        return True

    def check(self, settings: TrainSettings) -> None:
        check_run(settings.section(TinkerSettings), settings)

    def resume_flags(self, settings: TrainSettings) -> Sequence[Flag]:
        return [("tinker", TinkerSettings, settings.section(TinkerSettings))]

    def with_flags(self, settings: TrainSettings, flags: Any) -> TrainSettings:
        return replace(settings, tinker=flags.tinker)

    def build(
        self,
        section_settings: TinkerSettings,
        agents: Mapping[str, AgentSettings],
        *,
        vllm: VllmSettings | None,
        threads: int,
        directory: RunDirectory,
    ) -> Backend:
        from coterie.extras.tinker.backend import TinkerBackend

        return TinkerBackend(section_settings, directory.path.resolve().name)


HOST = TinkerHost()
