"""Metrics, and what is measured in each environment."""

import importlib

from envs import EnvSpec
from evaluation.evaluation import Evaluation


def evaluation_of(spec: EnvSpec) -> Evaluation:
    """How an environment is evaluated; by its rewards, if it says nothing of it."""
    path = spec.evaluation or "evaluation.by_reward:EVALUATION"
    module, _, attribute = path.partition(":")
    return getattr(importlib.import_module(module), attribute)


__all__ = ["Evaluation", "evaluation_of"]
