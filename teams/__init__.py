"""Who plays what: models, adapters, engines, experts and judges, put together into a team."""

from coterie.teams.backend import Learning
from coterie.teams.settings import AgentSettings, ScoringSettings
from coterie.teams.team import Team, build_team

__all__ = [
    "AgentSettings",
    "Learning",
    "ScoringSettings",
    "Team",
    "build_team",
]
