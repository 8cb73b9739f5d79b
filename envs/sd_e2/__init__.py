"""SD-E2's diverse exploration by one model (arXiv:2601.17982) as an environment."""

from coterie.envs.sd_e2.environment import SdE2Env
from coterie.envs.sd_e2.settings import SdE2Settings

__all__ = ["SdE2Env", "SdE2Settings"]
