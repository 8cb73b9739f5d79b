"""One agent, one problem, one answer: the simplest environment, for evaluation."""

from coterie.envs.solo.environment import SoloEnv, SoloSettings

__all__ = ["SoloEnv", "SoloSettings"]
