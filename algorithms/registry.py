"""The table of algorithms by name."""

from algorithms.algorithm import (
    Algorithm,
    ClippedRatio,
    ClippedWeight,
    GateWeight,
    SequenceWeight,
    SoftGate,
    validate,
)
from vocabulary import UserError

# One divisor for every row; what matters is that it does not depend on the row.
_CONSTANT_LENGTH = 256

ALGORITHMS: dict[str, Algorithm] = {
    # DeepSeekMath, arXiv:2402.03300
    "grpo": Algorithm(),
    # Understanding R1-Zero-like training, arXiv:2503.20783
    "dr-grpo": Algorithm(scale="none", reduction="constant-length", length=_CONSTANT_LENGTH),
    # arXiv:2503.14476
    "dapo": Algorithm(
        surrogate=ClippedRatio(low=0.2, high=0.28), reduction="token-mean", dynamic_sampling=True
    ),
    # arXiv:2507.18071
    "gspo": Algorithm(surrogate=ClippedRatio(level="sequence", low=3e-4, high=4e-4)),
    # arXiv:2511.20347
    "sapo": Algorithm(surrogate=SoftGate()),
    # MiniMax-M1, arXiv:2506.13585; the bound is ScaleRL's, arXiv:2510.13786
    "cispo": Algorithm(surrogate=ClippedWeight(), reduction="token-mean"),
    # arXiv:2402.14740. The score of a whole sequence is the sum over its tokens: the token mean is
    # that, up to one factor a step.
    "rloo": Algorithm(baseline="leave-one-out", scale="none", reduction="token-mean"),
    # The variant with a group baseline, arXiv:2501.03262
    "reinforce++": Algorithm(scale="batch-std", reduction="token-mean"),
    # The words of CoRe, arXiv:2601.21600, appendix C; population deviation as in equation 7
    "gspo-paper": Algorithm(surrogate=SequenceWeight(), ddof=0, epsilon=1e-8),
    "sapo-paper": Algorithm(surrogate=GateWeight(), ddof=0, epsilon=1e-8),
}


def names() -> list[str]:
    """Known algorithms, in the order of the table."""
    return list(ALGORITHMS)


def get(name: str) -> Algorithm:
    """The algorithm called ``name``.

    Raises:
        UserError: there is none.
    """
    if name not in ALGORITHMS:
        raise UserError(f"unknown algorithm {name!r}; known: {', '.join(ALGORITHMS)}")
    return ALGORITHMS[name]


def register(name: str, algorithm: Algorithm) -> None:
    """Add ``algorithm`` to the table, so that ``--algo name`` finds it.

    Raises:
        UserError: the name is taken, or the combination makes no sense.
    """
    if name in ALGORITHMS:
        raise UserError(f"an algorithm called {name!r} exists already; choose another name")
    ALGORITHMS[name] = validate(algorithm)
