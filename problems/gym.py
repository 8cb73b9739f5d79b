"""Generated problems of reasoning-gym (https://github.com/open-thought/reasoning-gym)."""

import contextlib
import dataclasses
import hashlib
import json
import random
import warnings
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from coterie.datatypes import AnswerKind, Problem, UserError, derive_seed, list_names, suggest

# These tasks draw a template for the whole data set at construction.
_DRAWN_AT_CONSTRUCTION = {"gsm_symbolic"}


class GymSource:
    """A task with its options: an endless :class:`coterie.problems.source.ProblemSource`.

    Each index has its own random stream. (The package uses ``seed + index``, so that neighbouring
    seeds share nearly all problems.) The package is slow to import and is loaded at construction.
    The global random states do not change.
    """

    size = None

    def __init__(
        self, task: str, options: Mapping[str, Any] | None = None, *, seed: int = 0
    ) -> None:
        """Raises:
        UserError: the task is unknown, the checker cannot grade its answers, or it does not take
            an option or a value.
        """
        self.task = task
        self.options = dict(options or {})
        self.seed = seed
        with _silence():
            self._make = _maker(task, self.options)
            self._dataset = self._make(0)

    @property
    def name(self) -> str:
        """The user's name of the task, with its options."""
        settings = "&".join(f"{name}={value}" for name, value in sorted(self.options.items()))
        return f"reasoning-gym:{self.task}" + (f"?{settings}" if settings else "")

    @property
    def fingerprint(self) -> str:
        """SHA-256 of task, options and seed."""
        text = json.dumps([self.task, self.options, self.seed], sort_keys=True, default=str)
        return hashlib.sha256(f"reasoning-gym/1/{text}".encode()).hexdigest()

    def __getitem__(self, index: int) -> Problem:
        if index < 0:
            raise IndexError(f"{self.name} starts at index 0, not {index}")
        seed = derive_seed(self.seed, "reasoning-gym", self.task, index) % 2**32
        with _silence():
            try:
                if self.task in _DRAWN_AT_CONSTRUCTION:
                    item = self._make(seed)[0]
                else:
                    self._dataset.seed = seed
                    item = self._dataset[0]
            except (AssertionError, ArithmeticError, LookupError, TypeError, ValueError) as error:
                raise UserError(
                    f"{self.name} cannot generate problem {index} ({error}); choose other options"
                ) from None
        gold = str(item["answer"]).strip()
        if not gold:
            raise UserError(f"{self.name}: problem {index} has no answer; choose other options")
        return Problem(
            id=f"{self.task}:{self.seed}:{index}",
            question=item["question"].strip(),
            gold=gold,
            kind=TASKS[self.task],
            meta={"task": self.task},
        )


def _maker(task: str, options: dict[str, Any]) -> Any:
    """Return a function seed -> the package's data set of one item."""
    from reasoning_gym.factory import DATASETS

    if task not in TASKS:
        if task in DATASETS:
            raise UserError(
                f"reasoning-gym task {task!r} has answers that plain comparison cannot judge; "
                f"use one of {list_names(TASKS)}"
            )
        raise UserError(f"unknown reasoning-gym task {task!r}; {suggest(task, TASKS)}")
    make_dataset, make_config = DATASETS[task]
    known = [field.name for field in dataclasses.fields(make_config)]
    known = [name for name in known if name not in {"seed", "size"}]
    for option in options:
        if option not in known:
            raise UserError(
                f"reasoning-gym task {task!r} has no option {option!r}; {suggest(option, known)}"
            )

    def make(seed: int) -> Any:
        return make_dataset(make_config(seed=seed, size=1, **options))

    try:
        make(0)
    except (AssertionError, ArithmeticError, LookupError, TypeError, ValueError) as error:
        given = ", ".join(f"{name}={value}" for name, value in options.items())
        raise UserError(
            f"reasoning-gym:{task} does not take {given}: {error or type(error).__name__}"
        ) from None
    return make


@contextlib.contextmanager
def _silence() -> Iterator[None]:
    """Suppress warnings and restore the global random states after the block."""
    python, numpy = random.getstate(), np.random.get_state()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        random.setstate(python)
        np.random.set_state(numpy)


NUMBER_TASKS = (
    "aiw", "basic_arithmetic", "binary_alternation", "chain_sum", "circuit_logic", "count_bits",
    "count_primes", "decimal_chain_sum", "dice", "gcd", "gsm_symbolic", "largest_island", "lcm",
    "leg_counting", "letter_counting", "number_sequence", "products", "rectangle_count",
    "rotten_oranges", "self_reference", "simple_equations", "simple_geometry",
)  # fmt: skip

TEXT_TASKS = (
    "caesar_cipher", "calendar_arithmetic", "color_cube_rotation", "course_schedule",
    "family_relationships", "isomorphic_strings", "mahjong_puzzle",
    "needle_haystack", "ransom_note", "spell_backward", "syllogism",
)  # fmt: skip

TASKS: Mapping[str, AnswerKind] = {
    **dict.fromkeys(NUMBER_TASKS, "number"),
    **dict.fromkeys(TEXT_TASKS, "text"),
}
