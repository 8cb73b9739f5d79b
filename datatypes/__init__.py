"""The types that all other packages share: problems, prompts, trajectories, errors, settings.

They are small frozen records, protocols and validation. Nothing here loads or waits.
"""

from coterie.datatypes.errors import (
    UserError,
    cause_of,
    did_you_mean,
    join_or,
    list_names,
    raised,
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
    role_of,
)
from coterie.datatypes.problem import AnswerKind, Problem, Scorer, ScoreRequests, Verdict
from coterie.datatypes.trajectory import Episode, Reading, Trajectory
from coterie.datatypes.validation import (
    Needs,
    Validated,
    check_fields,
    fits,
    named_below,
    unmet,
    unvalidated,
    validate,
)

__all__ = [
    "MOVES",
    "AnswerKind",
    "Completion",
    "Episode",
    "FinishReason",
    "Needs",
    "Policy",
    "PolicyFailure",
    "Problem",
    "Prompt",
    "Reading",
    "Sampling",
    "ScoreRequests",
    "Scorer",
    "TokenCodec",
    "Trajectory",
    "UserError",
    "Validated",
    "Verdict",
    "cause_of",
    "check_fields",
    "derive_seed",
    "did_you_mean",
    "fits",
    "join_or",
    "list_names",
    "listed_moves",
    "named_below",
    "raised",
    "read_options",
    "reason_of",
    "refuse",
    "role_of",
    "suggest",
    "unmet",
    "unvalidated",
    "user_path",
    "validate",
]
