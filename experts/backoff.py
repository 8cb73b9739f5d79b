"""How long to wait before asking again."""

import math
import random
from email.utils import parsedate_to_datetime

from vocabulary import derive_seed


def backoff_s(attempt: int, *, base_s: float, limit_s: float, seed: int) -> float:
    """Seconds to wait after failed attempt number ``attempt`` (from 0).

    Between half and the whole of ``min(limit_s, base_s * 2**attempt)``. The jitter is a function of
    the prompt's seed, so that a run repeats, while calls that failed together come back apart.
    """
    longest = min(limit_s, math.ldexp(base_s, min(attempt, 64)))
    jitter = random.Random(derive_seed(seed, "backoff", attempt)).random()
    return longest * (1.0 + jitter) / 2.0


def retry_after_s(header: str | None, *, now: float) -> float:
    """Seconds named by a Retry-After header (RFC 9110, 10.2.3): a number or a date.

    Args:
        header: the header's value; anything unreadable counts as 0.
        now: seconds since the epoch, for dates.
    """
    if not header:
        return 0.0
    header = header.strip()[:64]
    if header.isascii() and header.isdigit():
        return float(header)
    try:
        return max(0.0, parsedate_to_datetime(header).timestamp() - now)
    except (ValueError, TypeError, OverflowError, IndexError):
        return 0.0
