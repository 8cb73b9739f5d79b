"""Who plays each role: a model, an engine, an expert."""

from coterie.agents.team.backend import LearningSetup
from coterie.agents.team.settings import AgentSettings, ScoringSettings
from coterie.agents.team.team import Team, build_team

__all__ = [
    "AgentSettings",
    "LearningSetup",
    "ScoringSettings",
    "Team",
    "build_team",
]
