"""Episodes against scripted policies: what is asked, what fails, when it ends."""

import asyncio
import sys
import time
from types import SimpleNamespace
from typing import Any

import pytest

from coterie.datatypes import Completion, Problem, Prompt, Sampling, UserError
from coterie.rollouts import Deadlines, play
from coterie.rollouts.play import question_shown

from .scripted import SAMPLING, TwoTurns, answering, failing, run, sleeping


def test_without_a_problem_nothing_is_known_to_be_right() -> None:
    episode = run(TwoTurns(), options={})
    assert (episode.gold, episode.kind) == (None, None)


@pytest.mark.parametrize(
    ("texts", "shown"),
    [(["Q: 1 +\n1 =", "2"], True), (["0 0 0", "4"], False), (["", ""], True), ([], True)],
)
def test_whether_a_question_was_shown(texts: list[str], shown: bool) -> None:
    assert question_shown(Problem("p1", "1 + 1 =", "2"), texts) is shown
    assert question_shown(None, ["0 0 0"]) is False


def test_limits_and_text_of_the_environment_reach_the_policy_and_each_role_has_its_own() -> None:
    log: list[tuple[Prompt, Sampling]] = []
    policy = answering(3, log=log)
    sampling = {"a": Sampling(8, temperature=0.5), "b": Sampling(8, top_p=0.9)}
    run(TwoTurns(), {"a": policy, "b": policy}, sampling=sampling)
    assert [(prompt.agent, prompt.text, asked) for prompt, asked in log] == [
        ("a_0", "hi", Sampling(3, temperature=0.5, stop=("!",))),
        ("a_0", "", Sampling(8, temperature=0.5)),
        ("b_0", "", Sampling(8, top_p=0.9)),
    ]


def test_outside_of_training_an_environment_says_how_a_turn_is_sampled() -> None:
    class Cool(TwoTurns):
        given: Any = {"temperature": 0, "top_p": 0.5}  # noqa: RUF012

        def reset(self, *args: Any, **kwargs: Any) -> Any:
            observations, infos = super().reset(*args, **kwargs)
            return observations, {**infos, "a_0": self.given}

    log: list[tuple[Prompt, Sampling]] = []
    cool, policy = Cool(), answering(3, log=log)
    policies = {"a": policy, "b": policy}
    (row, *_) = run(cool, policies, options={"mode": "eval"}).trajectories
    asked = [(sampling.temperature, sampling.top_p) for _, sampling in log]
    assert asked[:2] == [(0, 0.5), (SAMPLING.temperature, SAMPLING.top_p)]
    assert "temperature" not in row.info
    with pytest.raises(UserError, match="temperature of a_0 is the run's while it trains"):
        run(cool, policies)
    for bad in ("hot", -1, float("nan"), True):
        cool.given = {"temperature": bad}
        with pytest.raises(UserError, match="it must be a number of at least 0"):
            run(cool, policies, options={"mode": "eval"})


def test_every_call_has_its_own_random_stream() -> None:
    def seeds(replica: int) -> list[int]:
        log: list[tuple[Prompt, Sampling]] = []
        policy = answering(3, log=log)
        run(TwoTurns(), {"a": policy, "b": policy}, replica=replica)
        return [prompt.seed for prompt, _ in log]

    assert len({*seeds(0), *seeds(1)}) == 6
    assert seeds(0) == seeds(0)


def test_a_failure_is_data_and_never_a_sample() -> None:
    env = TwoTurns()
    a, b = run(env, {"a": answering(3), "b": failing}).trajectories
    assert set(env.actions[1]) == {"a_0"}
    assert b.status == "failed: no answer today"
    assert not b.trainable
    assert not b.mask.any()
    assert a.trainable


def test_what_an_environment_calls_void_is_no_data() -> None:
    rows = run(TwoTurns(void="the power went")).trajectories
    assert [row.status for row in rows] == ["failed: the power went", "ok"]
    assert "void" not in rows[0].info


def test_a_missed_deadline_is_a_failure() -> None:
    episode = run(TwoTurns(), {"a": answering(3), "b": sleeping}, deadlines=Deadlines(call_s=0.01))
    assert [row.status for row in episode.trajectories] == ["ok", "failed: deadline"]
    episode = run(TwoTurns(), {"a": sleeping, "b": sleeping}, deadlines=Deadlines(episode_s=0.01))
    assert [row.status for row in episode.trajectories] == ["failed: deadline"] * 2


def test_an_answer_that_came_while_the_loop_stood_still_is_in_time() -> None:
    async def computing(prompt: Prompt, sampling: Sampling) -> Completion:
        await asyncio.sleep(0)
        time.sleep(0.6)  # a local model: nothing else runs meanwhile
        return await answering(3)(prompt, sampling)

    async def server(prompt: Prompt, sampling: Sampling) -> Completion:
        for _ in range(3):  # several steps, as a response over the network takes
            await asyncio.sleep(0.02)
        return await answering(6)(prompt, sampling)

    episode = run(TwoTurns(), {"a": computing, "b": server}, deadlines=Deadlines(call_s=0.5))
    assert [row.status for row in episode.trajectories] == ["ok", "ok"]


def test_an_episode_has_one_deadline_over_all_its_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    limits: list[float | None] = []

    async def wait(calls: list[asyncio.Future[Any]], limit_s: float | None) -> float:
        limits.append(limit_s)
        await asyncio.wait(calls)
        return 6.0

    monkeypatch.setattr(sys.modules["coterie.rollouts.play"], "wait_for_all", wait)
    run(TwoTurns(), deadlines=Deadlines(episode_s=10.0))
    run(TwoTurns(), deadlines=Deadlines(episode_s=10.0, call_s=5.0))
    run(TwoTurns())
    assert limits == [10.0, 4.0, 5.0, 4.0, None, None]


async def test_a_cancelled_episode_leaves_no_call_behind() -> None:
    ended = False

    async def waiting(prompt: Prompt, sampling: Sampling) -> Completion:
        nonlocal ended
        try:
            return await sleeping(prompt, sampling)
        finally:
            ended = True

    episode = asyncio.create_task(
        play(TwoTurns(), {"a": waiting, "b": failing}, seed=1, options={}, sampling=SAMPLING)
    )
    await asyncio.sleep(0.01)
    episode.cancel()
    with pytest.raises(asyncio.CancelledError):
        await episode
    assert ended


def test_an_episode_is_cut_off_after_its_last_allowed_turn() -> None:
    class Endless(TwoTurns):
        def step(self, actions: dict[str, Any]) -> Any:
            return self.seen(a=1, b=0), {}, {}, {}, {"a_0": {}, "b_0": {}}

    two = Deadlines(turns=2)
    row, *_ = run(Endless(), deadlines=two).trajectories
    assert row.status == "failed: episode cut off after 2 turns"
    assert {row.status for row in run(TwoTurns(), deadlines=two).trajectories} == {"ok"}
    # The environment in a view may need more.
    view: Any = Endless()
    view.unwrapped = SimpleNamespace(most_turns=3)
    row, *_ = run(view, deadlines=two).trajectories
    assert row.status == "failed: episode cut off after 3 turns"


def test_an_agent_that_had_ended_keeps_its_reward_if_the_episode_is_cut_off() -> None:
    class Uneven(TwoTurns):
        def step(self, actions: dict[str, Any]) -> Any:
            observations, rewards, _, _, infos = super().step(actions)
            self.agents = self.agents or ["a_0"]
            return observations, rewards, {}, {}, infos

    a, b = run(Uneven(), deadlines=Deadlines(turns=2)).trajectories
    assert a.status == "failed: episode cut off after 2 turns"
    assert (b.status, b.reward) == ("ok", 2.0)


def test_a_bug_in_a_policy_is_not_swallowed() -> None:
    async def broken(prompt: Prompt, sampling: Sampling) -> Completion:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        run(TwoTurns(), {"a": broken, "b": failing})


@pytest.mark.parametrize("listed", [True, False])
def test_an_agent_that_was_not_there_at_reset_is_refused(listed: bool) -> None:
    class Growing(TwoTurns):
        def step(self, actions: dict[str, Any]) -> Any:
            observations, rewards, *rest = super().step(actions)
            if listed:
                self.agents = [*self.agents, "c_0"]
            else:
                rewards["c_0"] = 1.0
            return observations, rewards, *rest

    with pytest.raises(UserError, match="'c_0' was not there at reset"):
        run(Growing())


@pytest.mark.parametrize(
    ("said", "sentence"),
    [
        ({"first": {"stop": "abc"}}, "stop of a_0 is 'abc': it must be a list of strings"),
        ({"first": {"stop": 5}}, "stop of a_0 is 5: it must be a list of strings"),
        ({"first": {"max_new_tokens": "x"}}, "max_new_tokens of a_0 is 'x': it must be an int"),
        ({"trained_turns": [2]}, "trained_turns of a_0 names turn 2, and it had 2"),
        ({"trained_turns": [-3]}, "trained_turns of a_0 names turn -3, and it had 2"),
        ({"turn_rewards": [0.5]}, "turn_rewards of a_0 has 1 numbers, and it had 2 turns"),
    ],
)
def test_an_info_that_makes_no_sense_is_refused(said: dict[str, Any], sentence: str) -> None:
    with pytest.raises(UserError, match=sentence):
        run(TwoTurns(**said))
