"""Whose trace becomes whose hint, and what of it."""

import dataclasses
from typing import Any

from coterie.datatypes import Problem

from .scripted import COLD, HINTED, PLAIN, RESCUE, RIGHT, WRONG, Played, trace


def test_second_tries_see_no_cold_trace(make: Any, problem: Problem) -> None:
    marks = {agent: trace(3, f"secret{place}") for place, agent in enumerate(RESCUE)}
    played = Played(make(), {**marks, "bob_1": RIGHT}, problem=problem)
    assert all("secret" not in prompt for prompt in played.prompts.values())
    assert played.prompts["alice_2"] == HINTED


def test_an_answer_alone_teaches_nobody(make: Any, problem: Problem) -> None:
    answers = {**RESCUE, "bob_1": "<final_answer>2</final_answer>"}
    played = Played(make(), answers, problem=problem)
    assert played.prompts["alice_2"] == COLD
    info = played.infos["alice_2"]
    assert (info["correct"], info["hinted"], info["rescued"], info["control"]) == (
        True, False, False, False,
    )  # fmt: skip


BOTH_RIGHT = {**RESCUE, "alice_0": trace(2, "work A"), "bob_1": trace(2, "work B")}


class TestTeachers:
    """alice_0 and bob_1 are right; alice's hint says A, bob's says B."""

    def hints(self, make: Any, problem: Problem, **changes: Any) -> dict[str, str]:
        step = changes.pop("step", 0)
        answers = changes.pop("answers", BOTH_RIGHT)
        env = make(
            dataclasses.replace(PLAIN, **changes), roles=changes.pop("roles", ("alice", "bob"))
        )
        return Played(env, answers, problem=problem, step=step).episode["hints"]

    def test_equals_go_by_the_order_of_the_roles(self, make: Any, problem: Problem) -> None:
        assert self.hints(make, problem) == {"alice": "work A", "bob": "work A"}

    def test_the_larger_provisional_reward_wins(self, make: Any, problem: Problem) -> None:
        # bob_1 starts with another letter than all others: only it earns exploration.
        answers = {**BOTH_RIGHT, "bob_1": "9" + trace(2, "work B")}
        changes: dict[str, Any] = {"w_explore": (0.2,), "answers": answers}
        assert self.hints(make, problem, **changes) == {"alice": "work B", "bob": "work B"}
        changes["teacher_score"] = "exploitation"
        assert self.hints(make, problem, **changes) == {"alice": "work A", "bob": "work A"}

    def test_prefer_peer(self, make: Any, problem: Problem) -> None:
        changes = {"teacher": "prefer-peer"}
        assert self.hints(make, problem, **changes) == {"alice": "work B", "bob": "work A"}
        alone = {**BOTH_RIGHT, "alice_0": WRONG}
        assert self.hints(make, problem, answers=alone, **changes) == {
            "alice": "work B",
            "bob": "work B",
        }

    def test_rotating(self, make: Any, problem: Problem) -> None:
        changes = {"teacher": "rotating"}
        assert self.hints(make, problem, step=0, **changes)["bob"] == "work A"
        assert self.hints(make, problem, step=1, **changes)["bob"] == "work B"
        assert self.hints(make, problem, step=2, **changes)["bob"] == "work A"
        alone = {**BOTH_RIGHT, "bob_1": WRONG}
        assert self.hints(make, problem, step=1, answers=alone, **changes)["bob"] == "work A"

    def test_difficulty_routed(self, make: Any, problem: Problem) -> None:
        changes: dict[str, Any] = {"teacher": "difficulty-routed"}
        # Two of four are right: easy, so roles take turns.
        assert self.hints(make, problem, step=1, **changes)["alice"] == "work B"
        # Three of eight are right, two of them bob's: hard, so bob teaches whoever's turn it is.
        answers = {f"{role}_{k}": WRONG for role in ("alice", "bob") for k in range(5)}
        answers |= {"alice_0": trace(2, "work A")}
        answers |= {f"bob_{k}": trace(2, "work B") for k in (1, 3)}
        changes |= {"answers": answers, "k_cold": 4}
        assert self.hints(make, problem, step=0, **changes)["alice"] == "work B"


def test_hints_are_capped_in_each_students_tokens(make: Any, problem: Problem) -> None:
    class Letters:
        """Two tokens a character."""

        def count(self, text: str) -> int:
            return 2 * len(text)

        def truncate(self, text: str, limit: int, *, keep: str = "head") -> str:
            return text[: limit // 2] if keep == "head" else text[len(text) - limit // 2 :]

    env = make(dataclasses.replace(PLAIN, hint_tokens=6), tokenizers={"bob": Letters()})
    played = Played(env, RESCUE, problem=problem)
    # "7 + 8 = 5 - 3 =": six bytes for alice, three characters for bob; blanks at the end go.
    assert played.episode["hints"] == {"alice": "7 + 8", "bob": "7 +"}


def test_leaks_are_counted(make: Any, problem: Problem) -> None:
    answers = {**RESCUE, "bob_1": trace(2, "7 + 8 = 5 - 3 = 2 so")}
    played = Played(make(), answers, problem=problem)
    assert played.infos["alice_2"]["leak"]
    assert played.episode["leaked"] == 2
