"""Rewards of turns: what was paid before a turn is no merit of it."""

import dataclasses

import numpy as np
import pytest

from coterie.algorithms import (
    Algorithm,
    Learner,
    LearnerSettings,
    assign_credit,
    get,
    informative_groups,
)
from coterie.algorithms.turn_credit import by_token, paid_before
from coterie.datatypes import Trajectory, UserError

PLAIN = LearnerSettings(importance_correction="none")
NO_SCALE = Algorithm(scale="none")


def row(reward: float, paid: tuple[float, ...], numbers: tuple[int, ...], **fields) -> Trajectory:
    """A row with the turns ``numbers`` of an agent that was ``paid`` for all of its turns."""
    count = len(numbers)
    return Trajectory(
        agent="a_0",
        role="a",
        tokens=np.arange(2 * count + 1),
        mask=np.array([False, *[False, True] * count]),
        logprobs=np.zeros(2 * count + 1, np.float32),
        reward=reward,
        reward_terms={"turns": sum(paid), "end": reward - sum(paid)},
        groups={"problem": "p"},
        turns=tuple((2 * i + 2, 2 * i + 3) for i in range(count)),
        turn_rewards=paid,
        turn_numbers=numbers,
        **fields,
    )


FIRST = row(3.0, (1.0, 2.0, 0.0), (0, 1, 2))
SECOND = row(2.0, (0.0, 1.0), (0, 1))


def test_who_has_ended_was_paid_for_everything() -> None:
    paid = paid_before([(1.0, 2.0, 0.0), (0.0, 1.0), ()])
    assert paid.tolist() == [[0, 1, 3], [0, 0, 1], [0, 0, 0]]


def test_hand_derived() -> None:
    """Rewards 3 and 2. To go: 3, 2, 0 and 2, 2, (1): what the second has left at its end."""
    credit = assign_credit([FIRST, SECOND], "problem", NO_SCALE)
    # whole rewards: 3 - 2.5 and 2 - 2.5
    np.testing.assert_allclose(credit.advantage_B, [0.5, -0.5])
    # turn 0: 3 | 2 -> +.5 -.5; turn 1: 2 | 2 -> 0 0; turn 2: 0 | 1 -> -.5
    np.testing.assert_allclose(credit.turn_bonus[0], [0.0, -0.5, -1.0])
    np.testing.assert_allclose(credit.turn_bonus[1], [0.0, 0.5])


def test_equal_rewards_that_are_paid_at_other_turns_have_a_signal() -> None:
    """Both have 2. After the first turn one has 1 to come, the other 2."""
    pair = [row(2.0, (1.0, 1.0), (0, 1)), row(2.0, (0.0, 2.0), (0, 1))]
    assert informative_groups(pair, "problem") == {"p"}
    assert informative_groups([pair[0], pair[0]], "problem") == set()


def test_each_turn_is_scaled_as_rewards_are() -> None:
    credit = assign_credit([FIRST, SECOND], "problem", Algorithm(ddof=0, epsilon=0))
    np.testing.assert_allclose(credit.advantage_B, [1, -1])
    # Differences +-.5, 0 0, -+.5 over deviations of .5; 0 where nothing differs.
    np.testing.assert_allclose(credit.turn_bonus[0], [0, -1, -2])
    np.testing.assert_allclose(credit.turn_bonus[1], [0, 1])


def test_over_a_running_average_turns_learn_from_what_is_to_come() -> None:
    """Rewards to go are compared with .5 less what had been paid by then: on average 0, .5, 2."""
    average = Algorithm(baseline="role-average", scale="none")
    other = dataclasses.replace(row(5.0, (9.0, 0.0), (0, 1)), role="b", agent="b_0")
    credit = assign_credit([FIRST, SECOND, other], "problem", average, {"a": 0.5, "b": 4.0})
    assert credit.advantage_B.tolist() == [2.5, 1.5, 1.0]
    # 3 - .5, 2 - 0, 0 - (-1.5) and 2 - .5, 2 - 0
    assert (credit.advantage_B[0] + credit.turn_bonus[0]).tolist() == [2.5, 2.0, 1.5]
    assert (credit.advantage_B[1] + credit.turn_bonus[1]).tolist() == [1.5, 2.0]
    assert 2 not in credit.turn_bonus
    # The average itself is one of whole rewards: .95 (.95 x .5 + .05 x 3) + .05 x 2
    assert credit.averages["a"] == pytest.approx(0.69375)


def test_who_is_paid_as_all_are_learns_alike_at_every_turn() -> None:
    average = Algorithm(baseline="role-average", scale="none")
    rows = [row(1.0, (1.0, 0.0), (0, 1), member=f"e/a_{i}") for i in range(3)]
    credit = assign_credit(rows, "problem", average, {"a": 1.0})
    assert credit.advantage_B.tolist() == [0, 0, 0]
    assert credit.turn_bonus == {}


def test_turns_keep_their_number_in_whatever_row_they_are() -> None:
    """The first agent's middle turn is in a row of its own; a failed row comes before both."""
    paid = FIRST.turn_rewards
    ends = row(3.0, paid, (0, 2), member="e/a_0")
    middle = row(3.0, paid, (1,), member="e/a_0")
    rows = [dataclasses.replace(SECOND, status="failed: x"), ends, middle, SECOND]
    bonus = assign_credit(rows, "problem", NO_SCALE).turn_bonus
    assert {place: value.tolist() for place, value in bonus.items()} == {
        1: [0.0, -1.0],
        2: [-0.5],
        3: [0.0, 0.5],
    }


@pytest.mark.parametrize("paid", [(), (0.0, 0.0, 0.0)])
def test_without_paid_turns_there_is_no_bonus(paid: tuple[float, ...]) -> None:
    rows = [row(3.0, paid, (0, 1, 2) if paid else ()), row(2.0, (), ())]
    rows = [dataclasses.replace(each, mask=np.array([True] * len(each.tokens))) for each in rows]
    assert assign_credit(rows, "problem", NO_SCALE).turn_bonus == {}


def test_terms_of_whole_episodes_know_no_turns() -> None:
    combined = Algorithm(combine="normalise-then-sum")
    with pytest.raises(UserError, match="a_0 is paid by turns"):
        assign_credit([FIRST, SECOND], "problem", combined)


def split(rows: list[Trajectory]) -> list[Trajectory]:
    """Rows whose sampled tokens are two turns, the second of two tokens."""
    out = []
    for each in rows:
        places = np.flatnonzero(each.mask)
        start, cut, end = int(places[0]), int(places[-2]), int(places[-1]) + 1
        mask = np.arange(len(each.tokens)) >= start
        turns = ((start, cut), (cut, end))
        logprobs = np.where(mask, -3.7, 0).astype(np.float32)
        out.append(dataclasses.replace(each, mask=mask, logprobs=logprobs, turns=turns))
    return out


def gradient(tiny, rows, advantages, bonus=()) -> dict[str, np.ndarray]:
    """The gradient of an update in which the weights stay."""
    model = tiny()
    learner = Learner(model, dataclasses.replace(get("dr-grpo"), length=10), PLAIN)
    learner._step = lambda loss, done: 0.0
    learner.update(rows, advantages, dict(bonus))
    return {name: p.grad.numpy().copy() for name, p in model.parameters().items()}


def test_a_bonus_is_the_advantage_of_its_turn(tiny, make_rows) -> None:
    """Under constant-length the loss is a sum over tokens: each turn by itself, with its own
    advantage and the other turn left out, adds up to both with a bonus."""
    rows = split(make_rows(4))
    advantages, bonus = np.array([1.0, -0.5, 0.0, 0.25]), {0: [0.0, 2.0], 2: [0.0, -1.0]}
    bonus = {place: np.array(value) for place, value in bonus.items()}
    parts = []
    for turn in (0, 1):
        alone = [dataclasses.replace(r, untrained=(r.turns[1 - turn],)) for r in rows]
        own = [a + bonus[i][turn] if i in bonus else a for i, a in enumerate(advantages)]
        parts.append(gradient(tiny, alone, own))
    both = gradient(tiny, rows, advantages, bonus)
    assert max(np.abs(value).max() for value in both.values()) > 1e-4
    for name, value in both.items():
        np.testing.assert_allclose(value, parts[0][name] + parts[1][name], rtol=1e-3, atol=1e-6)


@pytest.mark.parametrize("name", ["grpo", "gspo", "cispo", "sapo", "gspo-paper"])
def test_a_bonus_on_every_turn_is_a_larger_advantage(name, tiny, make_rows) -> None:
    rows = split(make_rows(4))
    bonus = {place: np.full(2, 0.75) for place in range(4)}
    changed = []
    for advantage, more in ((0.25, bonus), (1.0, {})):
        model = tiny()
        Learner(model, get(name), PLAIN).update(rows, np.full(4, advantage), more)
        changed.append(model.weights())
    for key in changed[0]:
        np.testing.assert_allclose(changed[0][key], changed[1][key], rtol=0, atol=1e-7)


def test_the_log_is_given_the_bonus_of_each_token_that_is_learned(tiny, make_rows) -> None:
    first, second = split(make_rows(2))
    second = dataclasses.replace(second, untrained=(second.turns[0],), learned_after=np.array([5]))
    learner = Learner(tiny(), get("grpo"), PLAIN)
    failed = dataclasses.replace(first, status="failed: x")
    learner.update([failed, first, second], [0, 0, 0], {2: np.array([0.5, 2.0])})
    assert list(learner.token_bonus) == [2]
    expected = np.zeros(len(second.tokens))
    expected[-2:] = 2.0
    assert learner.token_bonus[2].tolist() == expected.tolist()
    assert not by_token(first, None).any()
