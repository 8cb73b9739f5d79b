"""A policy that may consult experts while it learns (EAPO, arXiv:2509.23730)."""

from coterie.envs.eapo_consultation.environment import EapoConsultationEnv
from coterie.envs.eapo_consultation.settings import EapoConsultationSettings

__all__ = ["EapoConsultationEnv", "EapoConsultationSettings"]
