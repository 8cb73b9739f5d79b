"""Sentences that help whoever mistyped a name."""

import difflib
from collections.abc import Iterable


def nearest(word: str, known: Iterable[str]) -> str:
    """``did you mean 'gcd'?`` followed by every known name."""
    known = sorted(known)
    close = difflib.get_close_matches(word, known, n=3, cutoff=0.5)
    hint = f"did you mean {' or '.join(repr(name) for name in close)}? " if close else ""
    return f"{hint}known: {listed(known)}"


def listed(names: Iterable[str]) -> str:
    """Names in order, with commas; ``none`` when there are none."""
    return ", ".join(sorted(names)) or "none"
