"""Mixtures of training sources: weights, and how many problems of each an epoch has."""

import math
import re
from collections.abc import Sequence
from pathlib import PurePath

from coterie.datatypes import UserError
from coterie.problems.files import SUFFIXES
from coterie.problems.opening import has_suffix, is_file, is_generator, is_known, is_local

_NUMBER = r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?"
_WEIGHTED = re.compile(rf"(.+)=({_NUMBER})", re.ASCII | re.DOTALL)


def split_weight(text: str) -> tuple[str, float | None]:
    """Split ``SOURCE=NUMBER`` into (source, weight); the weight is None without one.

    A file that has the whole text as its name has no weight. The only ``=`` of the last option
    belongs to the option: ``chains?max_length=4`` has no weight, ``chains?max_length=4=2`` has 2.

    Raises:
        UserError: the weight is no number above 0, or not finite.
    """
    match = _WEIGHTED.fullmatch(text)
    if match is None or is_local(text):
        if weighted_source(text) is not None:
            raise _no_weight(text)
        return text, None
    source, number = match.groups()
    _, has_options, options = source.partition("?")
    if has_options and "=" not in options.rpartition("&")[2] and not is_file(source):
        return text, None
    weight = float(number)
    if not 0 < weight < math.inf:
        raise _no_weight(text)
    return source, weight


def weighted_source(text: str) -> str | None:
    """The source before ``=WEIGHT``, whatever the weight is; None where ``=`` can mean another
    thing: a file's name, or the value of an option of a data set."""
    source, equals, weight = text.rpartition("=")
    if not equals or is_local(text) or has_suffix(weight):
        return None
    head, has_options, options = source.partition("?")
    if has_options:
        ends_option = "=" in options.rpartition("&")[2]
        return source if ends_option and is_generator(head) else None
    return source if is_known(source) else None


def _no_weight(text: str) -> UserError:
    return UserError(
        f"--problems.train {text}: a weight is a number above 0; leave the source out, or write "
        "another number"
    )


def read_mixture(texts: Sequence[str]) -> tuple[tuple[str, ...], tuple[float, ...] | None]:
    """Return (sources, their weights) of ``--problems.train``; None: there are no weights.

    A single source has no weight, so that its text is taken as it is.

    Raises:
        UserError: no source, one that is named twice, or weights for only some of them.
    """
    if not texts:
        raise UserError("--problems.train names no problems; try chains, gsm8k or a file")
    if len(texts) == 1:
        if (source := weighted_source(texts[0])) is not None:
            raise UserError(
                f"--problems.train {texts[0]}: a weight is for one of several sources; write "
                f"{source}, or name another source and its weight"
            )
        return tuple(texts), None
    sources, weights = zip(*map(split_weight, texts), strict=True)
    for source, weight in zip(sources, weights):
        if sources.count(source) > 1:
            raise UserError(
                f"--problems.train names {source} twice; name each source once, and give it a "
                f"weight, such as {source}=2"
            )
        if weight is None and any(weights):
            raise UserError(
                f"--problems.train gives {source} no weight and another source one; write "
                f"{source}=1, or leave out all weights"
            )
    return sources, weights if all(weights) else None


def check_evaluation_sets(texts: Sequence[str]) -> None:
    """Refuse names of ``--problems.eval`` that have weights, or that are named twice.

    Raises:
        UserError: names the set.
    """
    for text in texts:
        if (source := weighted_source(text)) is not None:
            raise UserError(
                f"--problems.eval {text}: evaluation sets have no weights, as each is measured "
                f"by itself; write {source}"
            )
        if texts.count(text) > 1:
            raise UserError(f"--problems.eval names {text} twice; name each set once")


def counts_of_epoch(weights: Sequence[float], size: int) -> list[int]:
    """Divide the ``size`` problems of an epoch in proportion to ``weights``.

    What is left after rounding down goes to the largest remainders (Hamilton's method).

    >>> counts_of_epoch([2, 1], 31)  # 20.67 and 10.33
    [21, 10]
    """
    # Divided first, so that the sum of large weights does not overflow.
    shares = [weight / max(weights) for weight in weights]
    quotas = [size * share / sum(shares) for share in shares]
    counts = [int(quota) for quota in quotas]
    by_remainder = sorted(range(len(counts)), key=lambda i: counts[i] - quotas[i])
    for index in by_remainder[: size - sum(counts)]:
        counts[index] += 1
    return counts


def short_names(texts: Sequence[str]) -> list[str]:
    """Return a short name without ``/`` for each source, distinct if their texts are.

    >>> short_names(["data/gsm8k/train.parquet", "data/math/train.parquet", "chains?max_length=4"])
    ['gsm8k-train', 'math-train', 'chains']
    """
    parts = [_parts(text) for text in texts]
    for length in range(1, max(map(len, parts), default=0) + 1):
        names = ["-".join(each[-length:]) for each in parts]
        if len({*names}) == len({*texts}):
            return names
    names = [text.replace("/", "-") for text in texts]
    if len({*names}) == len({*texts}):
        return names
    return [f"{name} {number}" for number, name in enumerate(names, start=1)]


def _parts(text: str) -> tuple[str, ...]:
    path = PurePath(text.partition("?")[0])
    folders = [part for part in path.parent.parts if part != path.anchor]
    return (*folders, path.stem if path.suffix.lower() in SUFFIXES else path.name)
