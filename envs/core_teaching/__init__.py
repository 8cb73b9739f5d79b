"""CoRe's cross teaching (arXiv:2601.21600) as an environment."""

from coterie.envs.core_teaching.environment import CoreTeachingEnv
from coterie.envs.core_teaching.settings import CoreTeachingSettings

__all__ = ["CoreTeachingEnv", "CoreTeachingSettings"]
