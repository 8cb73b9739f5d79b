"""Episodes against scripted policies on a small environment written out here."""

import asyncio
import dataclasses
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from coterie.datatypes import (
    Completion,
    Episode,
    Policy,
    PolicyFailure,
    Problem,
    Prompt,
    Sampling,
    ScoreRequests,
    UserError,
)
from coterie.datatypes.pulse import ENDED
from coterie.rollouts import Collector, Deadlines, play, tasks_for
from coterie.rollouts.play import question_shown

SAMPLING = Sampling(max_new_tokens=8)


class TwoTurns:
    """Agents a_0 and b_0; a_0 answers twice, b_0 in the second turn only.

    a_0 reads [1, 2]; after its answer the environment inserts [9]. b_0 reads [5].
    """

    def __init__(self, rewrite: bool = False) -> None:
        self.rewrite = rewrite
        self.agents: list[str] = []
        self.actions: list[dict[str, Any]] = []

    def reset(self, seed: int | None = None, options: dict[str, Any] | None = None) -> Any:
        self.agents = ["a_0", "b_0"]
        self.actions = []
        self.context = np.array([1, 2])
        return self._seen(a=1, b=0), {
            "a_0": {"max_new_tokens": 3, "stop": ("!",), "text": "hi"},
            "b_0": {},
        }

    def step(self, actions: dict[str, Any]) -> Any:
        self.actions.append(actions)
        if len(self.actions) == 1:
            answer = actions.get("a_0", np.zeros(0, dtype=np.int64))
            head = np.array([7, 7]) if self.rewrite else self.context
            self.context = np.concatenate([head, answer, [9]])
            return self._seen(a=1, b=1), {"a_0": 0.5, "b_0": 0.0}, {}, {}, {"a_0": {}, "b_0": {}}
        agents, self.agents = self.agents, []
        infos = {
            "a_0": {
                "reward_terms": {"x": 1.0, "y": 0.5},
                "groups": {"problem": "p"},
                "loss_weight": 0.8,
                "learned_after": np.array([1]),
                "correct": True,
                "episode": {"solved": 1},
            },
            "b_0": {},
        }
        done = dict.fromkeys(agents, True)
        return self._seen(a=0, b=0), {"a_0": 1.0, "b_0": 2.0}, done, {}, infos

    def score_requests(self, actions: dict[str, Any]) -> ScoreRequests:
        return ScoreRequests(embeddings=tuple(sorted(actions)))

    def _seen(self, a: int, b: int) -> dict[str, Any]:
        return {
            "a_0": {"tokens": self.context, "active": a},
            "b_0": {"tokens": np.array([5]), "active": b},
        }


def answering(*ids: int, log: list[Prompt] | None = None) -> Policy:
    async def policy(prompt: Prompt, sampling: Sampling) -> Completion:
        if log is not None:
            log.append(prompt)
        n = len(ids)
        return Completion(
            np.array(ids), np.linspace(-1, -2, n, dtype=np.float32), "stop", weight_version=4
        )

    return policy


async def failing(prompt: Prompt, sampling: Sampling) -> Completion:
    raise PolicyFailure("no answer today")


async def sleeping(prompt: Prompt, sampling: Sampling) -> Completion:
    await asyncio.sleep(60)
    raise AssertionError("never reached")


def run(env: Any, policies: dict[str, Policy], **more: Any) -> Episode:
    options = more.pop(
        "options", {"problem": Problem("p1", "1+1", "2"), "step": 3, "mode": "train"}
    )
    return asyncio.run(play(env, policies, seed=11, options=options, sampling=SAMPLING, **more))


def test_a_trajectory_holds_the_exact_tokens_with_their_mask_and_logprobs() -> None:
    episode = run(TwoTurns(), {"a": answering(3, 4), "b": answering(6)})
    a, b = episode.trajectories
    #                       P  P  a  a  E  a  a
    assert a.tokens.tolist() == [1, 2, 3, 4, 9, 3, 4]
    assert a.mask.tolist() == [False, False, True, True, False, True, True]
    assert a.logprobs.tolist() == [0, 0, -1, -2, 0, -1, -2]
    assert a.turns == ((2, 4), (5, 7))
    assert (a.reward, a.reward_terms) == (1.5, {"x": 1.0, "y": 0.5})
    assert (a.loss_weight, a.groups, a.info) == (0.8, {"problem": "p"}, {"correct": True})
    assert (a.weight_version, a.finish, a.status) == (4, ("stop", "stop"), "ok")
    assert a.learned_after is not None
    assert a.learned_after.tolist() == [1]
    assert b.learned_after is None
    # The environment says nothing of b: one term, grouped with its replicas.
    assert b.tokens.tolist() == [5, 6]
    assert (b.reward, b.reward_terms) == (2.0, {"reward": 2.0})
    assert b.groups == {"problem+role": "p1@11/b"}
    assert (episode.problem_id, episode.step, episode.mode) == ("p1", 3, "train")
    assert episode.info == {"solved": 1}
    assert (episode.gold, episode.kind) == ("2", "math")


def test_without_a_problem_nothing_is_known_to_be_right() -> None:
    episode = run(TwoTurns(), {"a": answering(3), "b": answering(6)}, options={})
    assert (episode.gold, episode.kind) == (None, None)


@pytest.mark.parametrize(
    ("texts", "shown"),
    [(["Q: 1 +\n1 =", "2"], True), (["0 0 0", "4"], False), (["", ""], True), ([], True)],
)
def test_whether_a_question_was_shown(texts: list[str], shown: bool) -> None:
    assert question_shown(Problem("p1", "1 + 1 =", "2"), texts) is shown
    assert question_shown(None, ["0 0 0"]) is False


def test_limits_and_text_of_the_environment_reach_the_policy() -> None:
    seen: list[tuple[str, int, tuple[str, ...], str]] = []

    async def policy(prompt: Prompt, sampling: Sampling) -> Completion:
        seen.append((prompt.agent, sampling.max_new_tokens, sampling.stop, prompt.text))
        return Completion(np.array([3]), np.array([-1.0], dtype=np.float32), "eos")

    run(TwoTurns(), {"a": policy, "b": policy})
    assert seen[0] == ("a_0", 3, ("!",), "hi")
    assert seen[1] == ("a_0", 8, (), "")


@pytest.mark.parametrize(
    ("info", "sentence"),
    [
        ({"stop": "abc"}, "stop of a_0 is 'abc': it must be a list of strings"),
        ({"stop": 5}, "stop of a_0 is 5: it must be a list of strings"),
        ({"max_new_tokens": "x"}, "max_new_tokens of a_0 is 'x': it must be an int"),
    ],
)
def test_limits_that_are_none_are_refused(info: dict[str, Any], sentence: str) -> None:
    class Odd(TwoTurns):
        def reset(self, *args: Any, **kwargs: Any) -> Any:
            observations, infos = super().reset(*args, **kwargs)
            return observations, {**infos, "a_0": info}

    with pytest.raises(UserError, match=sentence):
        run(Odd(), {"a": answering(3), "b": answering(6)})


def test_every_call_has_its_own_random_stream() -> None:
    def seeds(replica: int) -> list[int]:
        log: list[Prompt] = []
        run(TwoTurns(), {"a": answering(3, log=log), "b": answering(3, log=log)}, replica=replica)
        return [prompt.seed for prompt in log]

    assert len({*seeds(0), *seeds(1)}) == 6
    assert seeds(0) == seeds(0)


def test_a_failure_is_data_and_never_a_sample() -> None:
    env = TwoTurns()
    episode = run(env, {"a": answering(3), "b": failing})
    a, b = episode.trajectories
    assert set(env.actions[1]) == {"a_0"}
    assert b.status == "failed: no answer today"
    assert not b.trainable
    assert not b.mask.any()
    assert a.trainable


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
    policies = {"a": answering(3), "b": answering(6)}
    run(TwoTurns(), policies, deadlines=Deadlines(episode_s=10.0))
    run(TwoTurns(), policies, deadlines=Deadlines(episode_s=10.0, call_s=5.0))
    run(TwoTurns(), policies)
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


def test_a_rewritten_context_starts_a_new_row() -> None:
    episode = run(TwoTurns(rewrite=True), {"a": answering(3), "b": answering(6)})
    rows = [row for row in episode.trajectories if row.agent == "a_0"]
    assert [row.tokens.tolist() for row in rows] == [[1, 2, 3], [7, 7, 3, 9, 3]]
    assert [row.mask.tolist() for row in rows] == [
        [False, False, True],
        [False, False, False, False, True],
    ]
    assert [row.reward for row in rows] == [1.5, 1.5]
    assert [row.member for row in episode.trajectories] == ["p1@11/0/a_0"] * 2 + ["p1@11/0/b_0"]


def test_an_episode_that_never_ends_is_cut_off() -> None:
    class Endless(TwoTurns):
        def step(self, actions: dict[str, Any]) -> Any:
            return self._seen(a=1, b=0), {}, {}, {}, {"a_0": {}, "b_0": {}}

    episode = run(Endless(), {"a": answering(3), "b": failing}, deadlines=Deadlines(turns=2))
    assert episode.trajectories[0].status == "failed: episode cut off after 2 turns"


def test_an_episode_may_end_with_its_last_allowed_turn() -> None:
    episode = run(TwoTurns(), {"a": answering(3), "b": answering(6)}, deadlines=Deadlines(turns=2))
    assert [row.status for row in episode.trajectories] == ["ok", "ok"]


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
        run(Growing(), {"a": answering(3), "b": answering(6)})


def test_a_bug_in_a_policy_is_not_swallowed() -> None:
    async def broken(prompt: Prompt, sampling: Sampling) -> Completion:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        run(TwoTurns(), {"a": broken, "b": failing})


class CountingScorer:
    """Remembers how its work came in."""

    def __init__(self) -> None:
        self.batches: list[int] = []

    def prefetch(self, requests: list[ScoreRequests]) -> None:
        self.batches.append(len(requests))


def _collect(concurrency: int, make: Callable[[], Any] = TwoTurns) -> tuple[list[Episode], Any]:
    scorer: Any = CountingScorer()
    collector = Collector(
        make,
        {"a": answering(3), "b": answering(6)},
        sampling=SAMPLING,
        scorer=scorer,
        concurrency=concurrency,
    )
    problems = [Problem(f"p{i}", "q", "g") for i in range(6)]
    tasks = tasks_for(problems, seed=5, step=2, replicas=2)
    return asyncio.run(collector.collect(tasks)), scorer


def test_episodes_come_back_in_order_and_are_scored_in_batches() -> None:
    before = ENDED.done
    episodes, scorer = _collect(concurrency=100)
    assert ENDED.done - before == sum(len(episode.trajectories) for episode in episodes) > 0
    assert [episode.problem_id for episode in episodes] == [f"p{i}" for i in range(6) for _ in "ab"]
    # Twelve episodes of two steps: two batches of twelve.
    assert scorer.batches == [12, 12]
    groups = [episode.trajectories[1].groups["problem+role"] for episode in episodes]
    assert len(set(groups)) == 6
    assert groups[0] == groups[1]


def test_environments_are_reused_up_to_the_concurrency() -> None:
    made = []

    def make() -> TwoTurns:
        made.append(1)
        return TwoTurns()

    episodes, _ = _collect(concurrency=3, make=make)
    assert len(episodes) == 12
    assert len(made) == 3


class Learning(TwoTurns):
    """a_0 learns the turns that it is told."""

    def __init__(self, *turns: int, rewrite: bool = False) -> None:
        super().__init__(rewrite)
        self.turns = turns

    def step(self, actions: dict[str, Any]) -> Any:
        result = super().step(actions)
        if not self.agents:
            result[-1]["a_0"]["trained_turns"] = self.turns
            del result[-1]["a_0"]["learned_after"]
        return result


def test_turns_that_are_not_learned_are_context() -> None:
    policies = {"a": answering(3, 4), "b": answering(6)}
    (row, _) = run(Learning(-1), policies).trajectories
    # 1 2 (3 4) 9 (3 4)
    assert row.mask.tolist() == [False, False, True, True, False, True, True]
    assert row.untrained == ((2, 4),)
    learned = row.as_learned()
    assert learned.mask.tolist() == [False] * 5 + [True] * 2
    assert learned.logprobs[:5].tolist() == [0.0] * 5
    assert learned.tokens.tolist() == row.tokens.tolist()
    (all_, _) = run(Learning(0, 1), policies).trajectories
    assert all_.as_learned().mask.tolist() == all_.mask.tolist()
    (none, _) = run(Learning(), policies).trajectories
    assert not none.as_learned().trainable
    assert none.trainable  # its reward is compared all the same


def test_turns_are_counted_over_all_rows_of_an_agent() -> None:
    policies = {"a": answering(3, 4), "b": answering(6)}
    first, second, _ = run(Learning(1, rewrite=True), policies).trajectories
    assert not first.as_learned().trainable
    assert second.as_learned().mask.tolist() == second.mask.tolist()


def test_learned_after_another_context_nothing_of_the_turns_is_lost() -> None:
    (row, _) = run(Learning(1), {"a": answering(3, 4), "b": answering(6)}).trajectories
    learned = dataclasses.replace(row, learned_after=np.array([8])).as_learned()
    assert learned.tokens.tolist() == [8, 3, 4, 9, 3, 4]
    assert learned.mask.tolist() == [False] * 4 + [True] * 2


@pytest.mark.parametrize("turn", [2, -3])
def test_turns_that_nobody_had_are_refused(turn: int) -> None:
    with pytest.raises(UserError, match=rf"trained_turns of a_0 names turn {turn}, and it had 2"):
        run(Learning(turn), {"a": answering(3), "b": answering(6)})


def test_each_role_is_sampled_in_its_own_way() -> None:
    seen: dict[str, Sampling] = {}

    async def watched(prompt: Prompt, sampling: Sampling) -> Completion:
        seen[prompt.agent] = sampling
        return await answering(3)(prompt, sampling)

    sampling = {"a": Sampling(8, temperature=0.5), "b": Sampling(8, top_p=0.9)}
    task = play(TwoTurns(), {"a": watched, "b": watched}, seed=1, options={}, sampling=sampling)
    asyncio.run(task)
    assert seen["a_0"] == Sampling(8, temperature=0.5)
    assert seen["b_0"] == Sampling(8, top_p=0.9)


class Waiting(TwoTurns):
    """Waits for something outside, which leaves the loop to others."""

    def reset(self, seed: int | None = None, options: dict[str, Any] | None = None) -> Any:
        raise AssertionError("the loop would stand still")

    async def areset(self, seed: int | None = None, options: dict[str, Any] | None = None) -> Any:
        await asyncio.sleep(0.2)
        return super().reset(seed, options)

    async def astep(self, actions: dict[str, Any]) -> Any:
        await asyncio.sleep(0.2)
        return super().step(actions)


async def test_environments_wait_side_by_side() -> None:
    policies = {"a": answering(3), "b": answering(6)}
    start = time.monotonic()
    collector = Collector(Waiting, policies, sampling=SAMPLING)  # type: ignore[arg-type]
    episodes = await collector.collect(tasks_for([Problem("p", "1+1", "2")], seed=1, replicas=10))
    assert [len(episode.trajectories) for episode in episodes] == [2] * 10
    assert time.monotonic() - start < 3  # one after the other they take 6 s


class Threads:
    """One agent that is shown these contexts in turn, after which it writes 9."""

    def __init__(self, *contexts: list[int], branches: bool) -> None:
        self.contexts, self.branches = contexts, branches

    def reset(self, seed: int | None = None, options: dict[str, Any] | None = None) -> Any:
        self.agents, self.left = ["a_0"], list(self.contexts)
        return self.shown(), {"a_0": {}}

    def step(self, actions: dict[str, Any]) -> Any:
        if not self.left:
            self.agents = []
        return self.shown(), {"a_0": 0.5}, {"a_0": not self.agents}, {}, {"a_0": {}}

    def shown(self) -> Any:
        tokens = self.left.pop(0) if self.left else []
        return {"a_0": {"tokens": np.array(tokens, dtype=np.int64), "active": 1}}


@pytest.mark.parametrize(
    ("branches", "rows"),
    [
        (True, [([1, 9, 2, 9], [1, 3]), ([5, 9], [1]), ([1, 9, 3, 9], [3])]),
        (False, [([1, 9], [1]), ([5, 9], [1]), ([1, 9, 2, 9], [3]), ([1, 9, 3, 9], [3])]),
    ],
)
def test_an_agent_goes_on_with_the_row_that_has_its_context(branches: bool, rows: Any) -> None:
    env = Threads([1], [5], [1, 9, 2], [1, 9, 3], branches=branches)
    trajectories = run(env, {"a": answering(9)}).trajectories
    assert [(r.tokens.tolist(), np.flatnonzero(r.mask).tolist()) for r in trajectories] == rows


def test_turns_are_counted_in_the_order_in_which_they_were_played() -> None:
    class Second(Threads):
        def step(self, actions: dict[str, Any]) -> Any:
            *others, _ = super().step(actions)
            return *others, {"a_0": {"trained_turns": [2]}}

    first, second = run(
        Second([1], [5], [1, 9, 2], branches=True), {"a": answering(9)}
    ).trajectories
    assert np.flatnonzero(first.as_learned().mask).tolist() == [3]
    assert not second.as_learned().trainable


class Paying(TwoTurns):
    """Pays a_0 for each of its turns."""

    def __init__(self, *rewards: float, rewrite: bool = False) -> None:
        super().__init__(rewrite)
        self.rewards = rewards

    def step(self, actions: dict[str, Any]) -> Any:
        result = super().step(actions)
        if not self.agents:
            result[-1]["a_0"]["turn_rewards"] = list(self.rewards)
        return result


def test_rewards_of_turns_stand_in_every_row_of_their_agent() -> None:
    policies = {"a": answering(3, 4), "b": answering(6)}
    (row, other) = run(Paying(0.5, 1), policies).trajectories
    assert (row.turn_rewards, row.turn_numbers) == ((0.5, 1.0), (0, 1))
    assert (other.turn_rewards, other.turn_numbers) == ((), ())
    assert "turn_rewards" not in row.info
    rows = run(Paying(0.5, 1, rewrite=True), policies).trajectories[:2]
    assert [row.turn_rewards for row in rows] == [(0.5, 1.0)] * 2
    assert [row.turn_numbers for row in rows] == [(0,), (1,)]


def test_rewards_of_other_turns_are_refused() -> None:
    with pytest.raises(UserError, match="turn_rewards of a_0 has 1 numbers, and it had 2 turns"):
        run(Paying(0.5), {"a": answering(3), "b": answering(6)})


def test_what_an_environment_calls_void_is_no_data() -> None:
    class Void(TwoTurns):
        def step(self, actions: dict[str, Any]) -> Any:
            result = super().step(actions)
            if not self.agents:
                result[-1]["a_0"]["void"] = "the power went"
            return result

    rows = run(Void(), {"a": answering(3), "b": answering(6)}).trajectories
    assert [row.status for row in rows] == ["failed: the power went", "ok"]
    assert "void" not in rows[0].info
