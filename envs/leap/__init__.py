"""Paths that reason side by side and read each other's summaries (LeaP, arXiv:2505.07787)."""

from coterie.envs.leap.environment import LeapEnv
from coterie.envs.leap.settings import LeapSettings

__all__ = ["LeapEnv", "LeapSettings"]
