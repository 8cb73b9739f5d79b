"""The words everything else is written in: problems, prompts, completions, trajectories.

Small frozen records and one-method protocols; nothing here computes, loads or waits.
"""

from vocabulary.codec import TokenCodec
from vocabulary.policy import Completion, Policy, PolicyFailure, Prompt, Sampling
from vocabulary.problem import AnswerKind, Problem
from vocabulary.scoring import Scorer, ScoreRequests, Verdict
from vocabulary.seeds import derive_seed
from vocabulary.trajectory import Episode, Trajectory
from vocabulary.usererror import UserError

__all__ = [
    "AnswerKind",
    "Completion",
    "Episode",
    "Policy",
    "PolicyFailure",
    "Problem",
    "Prompt",
    "Sampling",
    "ScoreRequests",
    "Scorer",
    "TokenCodec",
    "Trajectory",
    "UserError",
    "Verdict",
    "derive_seed",
]
