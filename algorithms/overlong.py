"""DAPO's penalty on answers near their longest length (arXiv:2503.14476, section 3.4)."""

from coterie.algorithms.algorithm import Algorithm
from coterie.datatypes import Trajectory


def overlong_penalty(tokens: int, *, limit: int, buffer: int) -> float:
    """Return 0 up to ``limit - buffer`` tokens, then linearly down to -1 at ``limit``.

    Source: equation 13 of arXiv:2503.14476.
    """
    return -min(max(tokens - (limit - buffer), 0) / buffer, 1.0)


def overlong_term(tokens: int, algorithm: Algorithm) -> float:
    """The reward of an answer's length in sampled ``tokens``; 0 if ``algorithm`` has no limit."""
    if algorithm.overlong_limit == 0:
        return 0.0
    return algorithm.overlong_factor * overlong_penalty(
        tokens, limit=algorithm.overlong_limit, buffer=algorithm.overlong_buffer
    )


def with_overlong_penalty(row: Trajectory, algorithm: Algorithm) -> Trajectory:
    """Return ``row`` with the penalty on its sampled tokens as the term ``overlong`` of its reward;
    as it is if ``algorithm`` has no limit."""
    if algorithm.overlong_limit == 0:
        return row
    return row.with_term("overlong", overlong_term(int(row.mask.sum()), algorithm))
