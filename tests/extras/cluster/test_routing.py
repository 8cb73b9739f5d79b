"""Who is asked: the engine that knows the beginning of the prompt, and no engine too much."""

from collections import Counter

import numpy as np
import pytest

from coterie.extras.cluster.bases import choose

PROMPTS = [np.random.default_rng(i).integers(0, 300, 400) for i in range(300)]


def named(count: int) -> list[str]:
    return [f"engine {i + 1} of bob" for i in range(count)]


@pytest.mark.parametrize(("count", "deviations"), [(3, 8.2), (4, 7.5), (8, 5.7)])
def test_without_load_each_engine_has_its_share_of_prompts(count: int, deviations: float) -> None:
    # 300 / count each, with a deviation of sqrt(300 * (1 / count) * (1 - 1 / count)).
    asked = Counter(choose(prompt, named(count), {}) for prompt in PROMPTS)
    assert all(abs(asked[name] - 300 / count) < 4 * deviations for name in named(count))


def test_prompts_that_begin_alike_are_asked_of_one_engine_and_stay_when_another_goes() -> None:
    for prompt in PROMPTS:
        name = choose(prompt, named(3), {})
        assert choose(np.append(prompt[:256], 7), named(3), {}) == name
        if name != "engine 3 of bob":
            assert choose(prompt, named(2), {}) == name


def test_no_engine_holds_more_than_a_quarter_above_its_share() -> None:
    # One prompt, again and again: by its beginning alone, one engine would answer all of them.
    load: Counter[str] = Counter()
    for _ in range(8):
        load[choose(PROMPTS[0], named(4), load)] += 1
    assert [*load.values()] == [8]
    for _ in range(92):
        load[choose(PROMPTS[0], named(4), load)] += 1
    # ceil(1.25 * 100 / 4) = 32.
    assert len(load) == 4
    assert max(load.values()) == 32


def test_other_prompts_stay_where_there_is_room() -> None:
    load = {"engine 1 of bob": 16, "engine 2 of bob": 8}
    # ceil(1.25 * 25 / 2) = 16: the first is full.
    assert {choose(prompt, named(2), load) for prompt in PROMPTS} == {"engine 2 of bob"}
    assert choose(PROMPTS[0], named(1), {"engine 1 of bob": 99}) == "engine 1 of bob"
