"""Whose trace becomes whose hint, and what of it."""

from typing import Any

import pytest

from .scripted import COLD, HINTED, RESCUE, RIGHT, WRONG, Played, trace


def test_second_tries_see_no_cold_trace(make: Any) -> None:
    marks = {agent: trace(3, f"secret{place}") for place, agent in enumerate(RESCUE)}
    played = Played(make(), {**marks, "bob_1": RIGHT})
    assert all("secret" not in prompt for prompt in played.prompts.values())
    assert played.prompts["alice_2"] == HINTED


def test_an_answer_alone_teaches_nobody(make: Any) -> None:
    answers = {**RESCUE, "bob_1": "<final_answer>2</final_answer>"}
    played = Played(make(), answers)
    assert played.prompts["alice_2"] == COLD
    info = played.infos["alice_2"]
    assert (info["correct"], info["hinted"], info["rescued"], info["control"]) == (
        True, False, False, False,
    )  # fmt: skip


BOTH_RIGHT = {**RESCUE, "alice_0": trace(2, "work A"), "bob_1": trace(2, "work B")}


@pytest.fixture
def hints(make: Any) -> Any:
    """Settings -> role -> its hint; alice_0 and bob_1 are right, and their hints say A and B."""

    def of(answers: dict[str, str] = BOTH_RIGHT, step: int = 0, **settings: Any) -> dict[str, str]:
        return Played(make(**settings), answers, step=step).episode["hints"]

    return of


def test_equals_go_by_the_order_of_the_roles(hints: Any) -> None:
    assert hints() == {"alice": "work A", "bob": "work A"}


def test_the_larger_provisional_reward_wins(hints: Any) -> None:
    # bob_1 starts with another letter than all others: only it earns exploration.
    answers = {**BOTH_RIGHT, "bob_1": "9" + trace(2, "work B")}
    assert hints(answers, w_explore=(0.2,)) == {"alice": "work B", "bob": "work B"}
    said = hints(answers, w_explore=(0.2,), teacher_score="exploitation")
    assert said == {"alice": "work A", "bob": "work A"}


def test_prefer_peer(hints: Any) -> None:
    assert hints(teacher="prefer-peer") == {"alice": "work B", "bob": "work A"}
    alone = {**BOTH_RIGHT, "alice_0": WRONG}
    assert hints(alone, teacher="prefer-peer") == {"alice": "work B", "bob": "work B"}


def test_rotating(hints: Any) -> None:
    said = [hints(step=step, teacher="rotating")["bob"] for step in range(3)]
    assert said == ["work A", "work B", "work A"]
    alone = {**BOTH_RIGHT, "bob_1": WRONG}
    assert hints(alone, step=1, teacher="rotating")["bob"] == "work A"


def test_difficulty_routed(hints: Any) -> None:
    # Two of four are right: easy, so roles take turns.
    assert hints(step=1, teacher="difficulty-routed")["alice"] == "work B"
    # Three of eight are right, two of them bob's: hard, so bob teaches whoever's turn it is.
    answers = {f"{role}_{k}": WRONG for role in ("alice", "bob") for k in range(5)}
    answers |= {"alice_0": trace(2, "work A")}
    answers |= {f"bob_{k}": trace(2, "work B") for k in (1, 3)}
    assert hints(answers, teacher="difficulty-routed", k_cold=4)["alice"] == "work B"


def test_hints_are_capped_in_each_students_tokens(make: Any) -> None:
    class Letters:
        """Two tokens a character."""

        def count(self, text: str) -> int:
            return 2 * len(text)

        def truncate(self, text: str, limit: int, *, keep: str = "head") -> str:
            return text[: limit // 2] if keep == "head" else text[len(text) - limit // 2 :]

    env = make(hint_tokens=6, tokenizers={"bob": Letters()})
    played = Played(env, RESCUE)
    # "7 + 8 = 5 - 3 =": six bytes for alice, three characters for bob; blanks at the end go.
    assert played.episode["hints"] == {"alice": "7 + 8", "bob": "7 +"}


def test_leaks_are_counted(make: Any) -> None:
    answers = {**RESCUE, "bob_1": trace(2, "7 + 8 = 5 - 3 = 2 so")}
    played = Played(make(), answers)
    assert played.infos["alice_2"]["leak"]
    assert played.episode["leaked"] == 2
