"""COREA's cascade (arXiv:2603.03752) as an environment."""

from coterie.envs.corea_deferral.environment import CoreaDeferralEnv
from coterie.envs.corea_deferral.settings import CoreaDeferralSettings

__all__ = ["CoreaDeferralEnv", "CoreaDeferralSettings"]
