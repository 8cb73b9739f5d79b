"""The recipe of a run's environments, for this process and for others."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from coterie import envs
from coterie.agents.team.settings import ScoringSettings
from coterie.datatypes import Scorer, TokenCodec
from coterie.problems.source import ProblemSource


@dataclass(frozen=True)
class EnvRecipe:
    """Builds the environments of a run, wherever they are played."""

    env: str
    settings: Any
    roles: Sequence[str] | None
    codecs: Mapping[str, TokenCodec]
    source: ProblemSource
    scoring: ScoringSettings

    def make(self, scorer: Scorer) -> Any:
        """An environment that speaks the team's vocabularies."""
        return envs.make(
            self.env,
            settings=self.settings,
            # An environment from elsewhere has the roles that it has.
            roles=self.roles if self.settings is not None else None,
            codecs=self.codecs,
            scorer=scorer,
            source=self.source,
        )
