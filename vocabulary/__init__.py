"""The words everything else is written in: problems, prompts, completions, trajectories.

Small frozen records and one-method protocols, and how a mistake is refused; nothing here computes,
loads or waits.
"""

from vocabulary.codec import TokenCodec
from vocabulary.fieldtypes import check_fields, fits
from vocabulary.policy import Completion, Policy, PolicyFailure, Prompt, Sampling
from vocabulary.problem import AnswerKind, Problem
from vocabulary.scoring import Scorer, ScoreRequests, Verdict
from vocabulary.seeds import derive_seed
from vocabulary.trajectory import Episode, Trajectory
from vocabulary.usererror import UserError
from vocabulary.userpath import user_path

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
    "check_fields",
    "derive_seed",
    "fits",
    "user_path",
]
