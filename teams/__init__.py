"""Teams: the models, adapters, engines, experts and judges that play the roles."""

from coterie.teams.backend import LearningSetup
from coterie.teams.settings import AgentSettings, ScoringSettings
from coterie.teams.team import Team, build_team

__all__ = [
    "AgentSettings",
    "LearningSetup",
    "ScoringSettings",
    "Team",
    "build_team",
]
