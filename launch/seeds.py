"""Which seeds a user may name."""

from collections.abc import Iterable

from vocabulary import UserError


def check_seeds(seeds: Iterable[int], flag: str = "--seed") -> None:
    """Raises:
    UserError: a seed that no generator takes.
    """
    if not all(0 <= seed < 2**63 for seed in seeds):
        raise UserError(f"{flag} must be 0 to 2^63 - 1")
