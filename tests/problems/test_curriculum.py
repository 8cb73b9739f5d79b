"""The order of an epoch by what was measured before it."""

import json
from typing import Any

import pytest

from coterie.datatypes import Problem
from coterie.problems.curriculum import Order, Played
from coterie.problems.source import ProblemSet
from coterie.problems.stream import Position, ProblemStream
from tests.problems.conftest import golds, numbered


def stream(order: Order, n: int = 6, **more: Any) -> ProblemStream:
    return ProblemStream(numbered(n), 4, order=order, **more)


def played(**rewards: tuple[float, bool]) -> dict[str, Played]:
    return {f"s:{name[1:]}": Played(*measured) for name, measured in rewards.items()}


def test_the_first_epoch_is_shuffled() -> None:
    shuffled = stream("shuffled").take(6)
    for order in ("easy-first", "adaptive"):
        assert stream(order).take(6) == shuffled


def test_the_easiest_problems_come_first() -> None:
    problems = stream("easy-first")
    problems.take(6)
    problems.measure(played(p0=(0.5, True), p1=(0.0, False), p2=(1.0, False), p3=(0.25, True)))
    problems.measure(played(p4=(0.75, True), p1=(0.9, True)))  # the newest counts
    # 2 (1.0), 1 (.9), 4 (.75), 0 (.5), 3 (.25), and 5, which was not measured.
    assert golds(problems.take(6)) == [2, 1, 4, 0, 3, 5]
    # An epoch without measurements keeps what is known.
    assert golds(problems.take(6)) == [2, 1, 4, 0, 3, 5]


def test_all_right_and_all_wrong_come_later() -> None:
    problems, shuffled = stream("adaptive"), stream("shuffled")
    problems.take(6)
    problems.measure(
        played(p0=(1.0, False), p1=(0.0, False), p2=(0.5, True), p3=(0.25, True), p4=(1.0, False))
    )
    shuffled.take(6)
    rank = {2: 0, 3: 0, 5: 1, 0: 2, 1: 2, 4: 2}  # mixed, not measured, no difference
    usual = golds(shuffled.take(6))
    assert golds(problems.take(6)) == sorted(usual, key=rank.__getitem__)
    # Problem 0 is mixed now, and moves to the front; 2 is solved, and moves to the end.
    problems.measure(played(p0=(0.5, True), p2=(1.0, False)))
    rank |= {0: 0, 2: 2}
    assert golds(problems.take(6)) == sorted(golds(shuffled.take(6)), key=rank.__getitem__)


def test_an_epoch_keeps_the_order_that_it_began_with() -> None:
    problems = stream("easy-first")
    problems.take(6)
    problems.measure(played(p0=(1.0, False), p1=(0.8, True), p2=(0.6, True), p3=(0.4, True)))
    begun = golds(problems.take(2))
    problems.measure(played(p0=(0.0, False), p3=(1.0, False)))
    assert begun + golds(problems.take(2)) == [0, 1, 2, 3]
    assert golds([problems.at(cursor) for cursor in range(6, 10)]) == [0, 1, 2, 3]
    problems.take(2)
    assert golds(problems.take(4)) == [3, 1, 2, 0]


def test_a_step_across_two_epochs_fixes_the_order_when_it_is_drawn() -> None:
    problems = stream("easy-first")
    problems.take(5)
    problems.measure(played(p1=(0.5, True), p2=(1.0, False)))
    assert golds(problems.take(3))[1:] == [2, 1]


def test_a_weighted_epoch_keeps_its_counts() -> None:
    sources = (
        ProblemSet("a", [Problem(f"a:{i}", f"a {i}", "0") for i in range(4)]),
        ProblemSet("b", [Problem(f"b:{i}", f"b {i}", "0") for i in range(12)]),
    )
    mixed = ProblemStream(sources, 1, epoch_size=12, weights=(1, 1), order="easy-first")

    def epoch() -> list[str]:
        """The sources of an epoch's problems; those of b are measured as easier."""
        taken = mixed.take(12)
        mixed.measure({problem.id: Played(float(problem.id[0] == "b"), True) for problem in taken})
        return [problem.id[0] for problem in taken]

    assert sorted(epoch()) == ["a"] * 6 + ["b"] * 6
    # The other half of b is not measured yet.
    assert epoch() == ["a"] * 6 + ["b"] * 6
    assert epoch() == ["b"] * 6 + ["a"] * 6


@pytest.mark.parametrize("order", ["easy-first", "adaptive"])
@pytest.mark.parametrize("epoch_size", [None, 4, 9])
def test_resuming_is_exact(order: Order, epoch_size: int | None) -> None:
    """Each step draws three problems and measures them; a checkpoint stands between two steps."""

    def step(problems: ProblemStream) -> list[int]:
        taken = golds(problems.take(3))
        measured = {
            f"s:{n}": Played((n * 7 % 5) / 5 * (problems.cursor % 2), n % 3 > 0) for n in taken
        }
        problems.measure(measured)
        return taken

    def begin() -> ProblemStream:
        return stream(order, 7, epoch_size=epoch_size)

    whole, whole_steps, saved = begin(), [], []
    for _ in range(16):
        place = whole.position
        saved.append(json.dumps([place.cursor, place.difficulty]))
        whole_steps.append(step(whole))
    for first in range(16):
        resumed = begin()
        resumed.position = Position(*json.loads(saved[first]))
        assert [step(resumed) for _ in range(first, 16)] == whole_steps[first:]
        assert resumed.position == whole.position
