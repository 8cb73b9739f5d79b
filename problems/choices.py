"""Multiple choice: how options are written, and in which order."""

import random
import string
from collections.abc import Sequence
from dataclasses import replace

from problems.canonical import canonical
from vocabulary import Problem, derive_seed

LETTERS = string.ascii_uppercase


def render_choices(choices: Sequence[str]) -> str:
    r"""``\nA. first\nB. second``, to be appended to a question."""
    return "".join(f"\n{letter}. {text}" for letter, text in zip(LETTERS, choices))


def permute_choices(problem: Problem, seed: int) -> Problem:
    """The same problem with its options in a random order that depends on (seed, question) only.

    So GPQA main and GPQA diamond show a shared item the same way. ``problem.question`` does not
    hold the options yet; the seed is kept in ``meta["choice_seed"]``.
    """
    rng = random.Random(derive_seed(seed, "choices", canonical(problem.question)))
    order = list(range(len(problem.choices)))
    shuffle(order, rng)
    return replace(
        problem,
        choices=tuple(problem.choices[old] for old in order),
        gold=LETTERS[order.index(LETTERS.index(problem.gold))],
        meta={**problem.meta, "choice_seed": seed},
    )


def shuffle(items: list[int], rng: random.Random) -> None:
    """Fisher-Yates on ``rng.random()``, whose numbers every version of Python keeps."""
    for last in range(len(items) - 1, 0, -1):
        other = int(rng.random() * (last + 1))
        items[last], items[other] = items[other], items[last]
