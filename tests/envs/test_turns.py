"""Which answers of a conversation are learned, what each is paid, and a run in one's own."""

import json
import math
import sys
import types
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from coterie.datatypes import Problem, UserError
from coterie.envs import Ask, ConversationEnv, Outcome, check_env
from coterie.envs.token_view import TokenView
from coterie.train import main

PROBLEM = Problem(id="p", question="1 + 1 =", gold="2")


class Bare(ConversationEnv):
    """Nothing but who takes part and what is said: two answers, each paid by itself."""

    title = "bare"
    default_roles = ("a",)

    def conversation(self, problem: Problem, options: Any, random: Any) -> Any:
        values = []
        for _ in range(2):
            answers = yield {"a_0": problem.question}
            values.append(len(answers.get("a_0", "")) / 2)
        right = 1.0 * ("2" in answers.get("a_0", ""))
        return Outcome(
            {"a_0": {"length": sum(values), "right": right}},
            episode={"asked": 2, "even": right > 0, "by": "a"},
            turn_rewards={"a_0": values},
        )


def test_settings_may_be_left_out() -> None:
    env = Bare()
    _, infos = env.reset(seed=0, options={"problem": PROBLEM})
    assert infos["a_0"] == {"piece": "message"}
    check_env(TokenView(Bare()))


@dataclass(frozen=True)
class Settings:
    train_turns: str = "all"
    first: bool = True


class Turns(ConversationEnv):
    """a is asked three times; whether it learns the first answer is a setting."""

    title = "turns"
    settings_class = Settings
    default_roles = ("a",)

    def conversation(self, problem: Problem, options: Any, random: Any) -> Any:
        for turn in range(3):
            yield {"a_0": Ask("go on", trained=self.settings.first or turn > 0)}
        return Outcome(terms={"a_0": {"paid": 1.0}})


@pytest.mark.parametrize(
    ("settings", "turns"),
    [(Settings(), None), (Settings(first=False), [1, 2]), (Settings("last"), [2])],
)
def test_which_turns_are_learned(settings: Settings, turns: list[int] | None) -> None:
    env = Turns(settings)
    env.reset(seed=1)
    for _ in range(3):
        infos = env.step({"a_0": "x"})[-1]
    assert infos["a_0"].get("trained_turns") == turns


def test_answers_are_paid_one_by_one() -> None:
    env = Bare()
    env.reset(seed=1)
    env.step({"a_0": "x"})
    infos = env.step({"a_0": "xyz"})[-1]
    assert infos["a_0"]["turn_rewards"] == [0.5, 1.5]


@pytest.mark.parametrize("rewards", [[0.5, math.nan], "12", 1.0])
def test_what_pays_no_answers_is_refused(rewards: Any) -> None:
    class Wrong(Bare):
        def conversation(self, problem: Problem, options: Any, random: Any) -> Any:
            yield {"a_0": "go on"}
            return Outcome({"a_0": {"right": 1.0}}, turn_rewards={"a_0": rewards})

    env = Wrong()
    env.reset(seed=1)
    with pytest.raises(UserError, match=r"turn_rewards.* a list of finite numbers"):
        env.step({"a_0": "x"})


def test_a_run_learns_from_paid_answers_and_its_table_has_what_is_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    module = types.ModuleType("bare_ones")
    monkeypatch.setattr(module, "Bare", Bare, raising=False)
    monkeypatch.setitem(sys.modules, "bare_ones", module)
    monkeypatch.setenv("COLUMNS", "120")
    flags = ["--env", "bare_ones:Bare", "--agents.a.model", "tiny:alice", "--steps", "1"]
    flags += ["--rollout.problems-per-step", "2", "--problems.held-out", "4"]
    assert main([*flags, "--run-dir", str(tmp_path / "run")]) == 0
    after = json.loads((tmp_path / "run" / "summary.json").read_text())["after"]
    assert after["episode/asked"] == 2
    assert after["episode/even"] == after["reward/a/right"]
    assert "episode/by" not in after
    labels = [line.split()[0] for line in capsys.readouterr().out.splitlines() if line.strip()]
    assert {"asked", "even"} <= {*labels}

    lines = (tmp_path / "run" / "episodes.jsonl").read_text().splitlines()
    rows = [row for line in lines for row in json.loads(line)["trajectories"]]
    assert all(len(row["turn_rewards"]) == len(row["turns"]) == 2 for row in rows)
    # A turn has one bonus, and the first none: it learns from the whole reward.
    bonuses = [[set(turn) for turn in row["token_bonus"]] for row in rows if "token_bonus" in row]
    assert len(bonuses) > 4
    assert all(first == {0.0} and len(second) == 1 for first, second in bonuses)
