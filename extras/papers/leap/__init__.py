"""Parallel paths of reasoning that read each other's summaries (LeaP, arXiv:2505.07787)."""

from coterie.extras.papers.leap.environment import LeapEnv
from coterie.extras.papers.leap.settings import LeapSettings

__all__ = ["LeapEnv", "LeapSettings"]
