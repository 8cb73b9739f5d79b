"""Metrics, and what is measured in each environment."""

from envs import EnvSpec
from envs.plugins import load
from evaluation.evaluation import Evaluation


def evaluation_of(spec: EnvSpec) -> Evaluation:
    """How an environment is evaluated; by its rewards, if it says nothing of it."""
    path = spec.evaluation or "evaluation.by_reward:EVALUATION"
    return load(path, f"the evaluation of env {spec.name!r} ({path})")


__all__ = ["Evaluation", "evaluation_of"]
