"""The recipe for a run's environments, which other processes can use, too."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from coterie import envs
from coterie.agents.team.settings import ScoringSettings
from coterie.datatypes import Scorer, TokenCodec
from coterie.problems.source import ProblemSource


@dataclass(frozen=True)
class EnvRecipe:
    """Builds the environments of a run in any process."""

    env: str
    settings: Any
    roles: Sequence[str] | None
    codecs: Mapping[str, TokenCodec]
    source: ProblemSource
    scoring: ScoringSettings

    def make(self, scorer: Scorer) -> Any:
        """Build an environment with the team's codecs."""
        return envs.make(
            self.env,
            settings=self.settings,
            # Environments without settings have fixed roles.
            roles=self.roles if self.settings is not None else None,
            codecs=self.codecs,
            scorer=scorer,
            source=self.source,
        )
