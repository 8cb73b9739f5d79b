"""Schedules against numbers by hand."""

import math

import pytest

from coterie.envs.eapo_consultation.environment import coin, is_accepted
from coterie.envs.eapo_consultation.fading import (
    Fading,
    acceptance,
    match_budget,
    total,
    turn_budget,
)
from coterie.envs.eapo_consultation.settings import EapoConsultationSettings, fading_of


def test_totals_of_the_paper() -> None:
    # Harmonic number H_317, and the sums of s^-1/2 and s^-2.
    assert total(Fading("inv"), 317) == pytest.approx(6.338, abs=5e-4)
    assert total(Fading("inv"), 317) / 317 == pytest.approx(0.02, abs=5e-5)
    assert total(Fading("inv-sqrt"), 317) == pytest.approx(34.18, abs=5e-3)
    assert total(Fading("inv-sq"), 317) == pytest.approx(1.642, abs=5e-4)
    assert total(Fading("const", rate=0.02), 317) == pytest.approx(6.34)
    # H_10 = 2.929 is 46.2 % of it.
    first = total(Fading("inv"), 10)
    assert first == pytest.approx(2.929, abs=5e-4)
    assert first / total(Fading("inv"), 317) == pytest.approx(0.462, abs=5e-4)


def test_single_steps() -> None:
    assert [acceptance(Fading("inv"), s) for s in (1, 2, 4)] == [1, 0.5, 0.25]
    assert [acceptance(Fading("inv-sq"), s) for s in (1, 2)] == [1, 0.25]
    # 1 / (1 + 40 / 40)
    assert acceptance(Fading("inv", scale=40), 41) == 0.5
    # The first three steps do not count.
    assert [acceptance(Fading("inv", start=3), s) for s in (1, 3, 4, 5)] == [1, 1, 1, 0.5]
    assert [acceptance(Fading("linear", span=4), s) for s in (1, 2, 5, 9)] == [1, 0.75, 0, 0]
    cosine = [acceptance(Fading("cosine", span=4), s) for s in (1, 2, 3, 5, 9)]
    assert cosine == pytest.approx([1, (1 + math.sqrt(0.5)) / 2, 0.5, 0, 0])
    assert acceptance(Fading("inv"), 0) == 1


@pytest.mark.parametrize("schedule", ["inv", "inv-sqrt", "inv-sq", "const", "linear", "cosine"])
@pytest.mark.parametrize("start", [0, 2])
def test_matched_budgets(schedule: str, start: int) -> None:
    fading = match_budget(Fading(schedule, start=start), 20.0, 100)  # type: ignore[arg-type]
    assert total(fading, 100) == pytest.approx(20.0)
    assert fading.start == start


def test_what_no_stretch_gives() -> None:
    with pytest.raises(ValueError, match=r"can sum to 1 to 100 over 100 steps, not to 0\.5"):
        match_budget(Fading("inv"), 0.5, 100)
    with pytest.raises(ValueError, match="can sum to 0 to 100 over 100 steps, not to 101"):
        match_budget(Fading("const"), 101.0, 100)
    settings = EapoConsultationSettings(schedule="const", accept_total=6.4)
    assert fading_of(settings).rate == pytest.approx(0.02)


def test_turn_budget() -> None:
    # 10 rounds to 0 in 11 steps: one less each step.
    budgets = [turn_budget(s, first=10, last=0, anneal=11) for s in range(1, 14)]
    assert budgets == [10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0, 0, 0]
    assert turn_budget(500, first=10, last=0, anneal=0) == 10
    # 4 - 3 / 2 = 2.5 is rounded to even.
    assert [turn_budget(s, first=4, last=1, anneal=3) for s in (1, 2, 3, 4)] == [4, 2, 1, 1]


def test_coins() -> None:
    draws = [coin(seed, replica, 0, 1) for seed in range(40) for replica in range(40)]
    assert min(draws) > 0
    assert max(draws) <= 1
    assert sum(draws) / 1600 == pytest.approx(0.5, abs=0.03)
    assert len(set(draws)) == 1600
    assert coin(1, None, 0, 1) == coin(1, None, 0, 1) != coin(1, 0, 0, 1)
    assert coin(1, 0, 0, 1) != coin(1, 0, 0, 2) != coin(1, 0, 1, 2)


def test_a_draw_at_the_bound_is_let_in() -> None:
    assert is_accepted(0.25, 0.25)
    assert not is_accepted(0.2500001, 0.25)
    assert is_accepted(1.0, 1.0)
    assert not is_accepted(2**-63, 0.0)
