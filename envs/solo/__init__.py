"""One agent, one problem, one answer: the plainest environment, for measuring."""

from coterie.envs.solo.environment import SoloEnv, SoloSettings

__all__ = ["SoloEnv", "SoloSettings"]
