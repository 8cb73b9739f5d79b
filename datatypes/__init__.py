"""The types everything else is written in: problems, prompts, completions, trajectories.

Small frozen records and one-method protocols, and how a mistake is refused; nothing here computes,
loads or waits.
"""

from coterie.datatypes.errors import (
    UserError,
    check_fields,
    check_least,
    check_literals,
    check_numbers,
    did_you_mean,
    fits,
    join_or,
    list_names,
    read_options,
    reason_of,
    refuse,
    suggest,
    user_path,
)
from coterie.datatypes.policy import (
    MOVES,
    Completion,
    FinishReason,
    Policy,
    PolicyFailure,
    Prompt,
    Sampling,
    TokenCodec,
    derive_seed,
    listed_moves,
)
from coterie.datatypes.problem import AnswerKind, Problem, Scorer, ScoreRequests, Verdict
from coterie.datatypes.trajectory import Episode, Trajectory

__all__ = [
    "MOVES",
    "AnswerKind",
    "Completion",
    "Episode",
    "FinishReason",
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
    "check_least",
    "check_literals",
    "check_numbers",
    "derive_seed",
    "did_you_mean",
    "fits",
    "join_or",
    "list_names",
    "listed_moves",
    "read_options",
    "reason_of",
    "refuse",
    "suggest",
    "user_path",
]
