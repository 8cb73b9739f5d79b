"""Episode workers: the run is the one without them, whoever dies."""

import asyncio
import json
import pickle
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest

from coterie.agents.team.backend import Died
from coterie.agents.team.graders import build_scorer
from coterie.agents.team.recipe import EnvRecipe
from coterie.agents.team.settings import AgentSettings, ScoringSettings
from coterie.cli.command_line import parse
from coterie.datatypes import Completion, PolicyFailure, Problem, Prompt, Sampling, UserError
from coterie.envs import registry
from coterie.envs.bytes_codec import BytesCodec
from coterie.envs.core_teaching import CoreTeachingSettings
from coterie.extras.cluster import episodes, starting
from coterie.extras.cluster.actor import Actor
from coterie.extras.cluster.checks import check_episode_workers
from coterie.extras.cluster.episodes import EpisodeWorkers
from coterie.extras.cluster.settings import ClusterSettings
from coterie.problems.source import ProblemSet
from coterie.rollouts import Collector, Deadlines, tasks_for
from coterie.rollouts.coalesce import Coalescer
from coterie.training.config.preflight import preflight

Play = Callable[..., dict[str, bytes]]
ROOT = Path(__file__).resolve().parents[3]
TWO = ("--cluster.episode-workers", "2", "--cluster.cpus", "0.5")


class Here(Actor):
    """A worker in this process, which is given copies of everything."""

    played: ClassVar[list[tuple[str, list[Any]]]] = []
    """(who was told, what), of every message."""
    dies: ClassVar[list[int]] = []
    """The numbers, from 1, of messages that kill whom they reach."""

    def start(self) -> None:
        arguments = pickle.loads(pickle.dumps(self.arguments))
        self.handle = self.worker(self.name, *arguments, **self.more)

    def begin(self, verb: str, *arguments: Any) -> Any:
        if verb != "play":
            return getattr(self.handle, verb)(*arguments)
        Here.played.append((self.name, pickle.loads(arguments[-1])))
        return len(Here.played), self.handle.play(*arguments)

    def result(self, begun: Any) -> Any:
        return begun

    async def wait(self, begun: Any) -> Any:
        number, answer = begun
        reply = await answer
        if number in Here.dies:
            Here.dies.remove(number)
            raise Died(f"{self.name} has died")
        return reply

    def stop(self) -> None:
        self.handle = None


@pytest.fixture
def here(monkeypatch: pytest.MonkeyPatch) -> type[Here]:
    Here.played, Here.dies = [], []
    monkeypatch.setattr(episodes, "Process", Here)
    return Here


def test_workers_play_what_this_process_plays(
    here: type[Here], play: Play, full: dict[str, bytes], tmp_path: Path
) -> None:
    assert play(tmp_path / "run", *TWO) == full
    rows = json.loads((tmp_path / "run" / "summary.json").read_text())["places"]
    assert [row["process"] for row in rows] == ["episode worker 1", "episode worker 2"]


PROBLEMS = [Problem(f"p{i}", f"{i} + 1 =", f"{i + 1}", "number") for i in range(5)]
PLAIN = Sampling(64)


class Player:
    """Answers in batches as the sampler does, rightly in half of all cases, and fails now and
    then; keeps what it was asked."""

    def __init__(self) -> None:
        self.batches: list[list[tuple[str, int]]] = []
        self._ask = Coalescer(self._answer, key=lambda prompt: (prompt.agent, prompt.seed))

    def _answer(self, prompts: list[Prompt]) -> list[Completion | None]:
        self.batches.append([(prompt.agent, prompt.seed) for prompt in prompts])
        return [self._completion(prompt) for prompt in prompts]

    def _completion(self, prompt: Prompt) -> Completion | None:
        assert prompt.problem is not None
        text = f"\\boxed{{{prompt.problem.gold if prompt.seed % 2 else prompt.seed % 9}}}"
        tokens = np.array(BytesCodec().extend(text), dtype=np.int64)
        logprobs = np.zeros(len(tokens), dtype=np.float32)
        return Completion(tokens, logprobs, "eos") if prompt.seed % 7 else None

    async def __call__(self, prompt: Prompt, sampling: Sampling) -> Completion:
        answer = await self._ask(prompt)
        if answer is None:
            raise PolicyFailure("no answer")
        return answer


def recipe() -> EnvRecipe:
    codecs: Any = {"alice": BytesCodec(), "bob": BytesCodec()}
    settings, source = CoreTeachingSettings(max_new_tokens=64), ProblemSet("five", PROBLEMS)
    return EnvRecipe("core-teaching", settings, ("alice", "bob"), codecs, source, ScoringSettings())


def workers(model: str = "tiny:alice", *, restarts: int = 9) -> EpisodeWorkers:
    settings = ClusterSettings(cpus=0.5, restarts=restarts, episode_workers=2)
    opened = EpisodeWorkers(settings, {"alice": AgentSettings(model)}, vllm=False)
    opened.open(recipe(), threads=1)
    return opened


async def texts(collector: Collector) -> list[str]:
    """Its episodes, as text."""
    tasks = tasks_for(PROBLEMS, seed=3, replicas=2)
    return [repr(episode) for episode in await collector.collect(tasks)]


@pytest.mark.parametrize("concurrency", [3, 100])
async def test_batches_are_those_of_one_process_whoever_dies(
    here: type[Here], concurrency: int
) -> None:
    scorer, _ = build_scorer(ScoringSettings())
    player, other = Player(), Player()
    options: Any = {"sampling": PLAIN, "concurrency": concurrency, "scorer": scorer}
    make_env = partial(recipe().make, scorer)
    alone = Collector(make_env, dict.fromkeys(("alice", "bob"), player), **options)
    many = workers()
    both = many.collector(make_env, dict.fromkeys(("alice", "bob"), other), **options)
    here.dies = [1, 3, 6]
    assert await texts(both) == await texts(alone)
    assert other.batches == player.batches
    # Each problem's replicas are at one worker.
    who: dict[str, set[str]] = {}
    for name, told_him in here.played:
        for _, task, _ in told_him:
            if task is not None:
                who.setdefault(task.problem.id, set()).add(name)
    assert Counter(name for names in who.values() for name in names) == {
        "episode worker 1": 3,
        "episode worker 2": 2,
    }
    assert [actor.restarts for actor in many.actors] != [0, 0]
    assert not here.dies
    many.close()


async def test_in_lock_step_no_worker_goes_on_before_all_are_answered(
    here: type[Here], monkeypatch: pytest.MonkeyPatch
) -> None:
    asked, seen, many = Counter[str](), list[int](), workers()

    async def late(prompt: Prompt, sampling: Sampling) -> Completion:
        asked["now"] += 1
        await asyncio.sleep(0.001 * (prompt.seed % 9))
        asked["now"] -= 1
        completion = Player()._completion(replace(prompt, seed=1))
        assert completion is not None
        return completion

    async def play_on(*more: Any) -> Any:
        seen.append(asked["now"])
        return await EpisodeWorkers.play_on(many, *more)

    monkeypatch.setattr(many, "play_on", play_on)
    await texts(many.collector(None, {"alice": late, "bob": late}, sampling=PLAIN, concurrency=3))
    assert set(seen) == {0}
    many.close()


class Slow(Player):
    """Answers nothing about the first problem before all others have been played."""

    def __init__(self, most: int) -> None:
        super().__init__()
        self.left, self.free, self.asked = most, asyncio.Event(), Counter[tuple[str, int]]()

    async def __call__(self, prompt: Prompt, sampling: Sampling) -> Completion:
        self.asked[prompt.agent, prompt.seed] += 1
        if prompt.problem == PROBLEMS[0]:
            await self.free.wait()
        return await super().__call__(prompt, sampling)

    def end(self) -> None:
        self.left -= 1
        if not self.left:
            self.free.set()


async def test_a_server_keeps_nobody_else_waiting_and_is_asked_once(here: type[Here]) -> None:
    many, player = workers("server:http://127.0.0.1:9/v1?model=x"), Slow(8)
    policies = dict.fromkeys(("alice", "bob"), player)
    collector = many.collector(None, policies, sampling=PLAIN)
    here.dies = [2, 4]  # while others are being asked
    tasks = tasks_for(PROBLEMS, seed=3, replicas=2)
    episodes = await asyncio.wait_for(collector.collect(tasks, done=player.end), 30)
    assert [item.problem_id for item in episodes] == [
        item.id for item in PROBLEMS for _ in range(2)
    ]
    assert set(player.asked.values()) == {1}
    assert not here.dies
    many.close()


async def test_deadlines_are_kept_where_answers_are_waited_for(here: type[Here]) -> None:
    async def never(prompt: Prompt, sampling: Sampling) -> Completion:
        await asyncio.sleep(60)
        raise AssertionError

    many, policies = workers(), {"alice": never, "bob": Player()}
    collector = many.collector(None, policies, sampling=PLAIN, deadlines=Deadlines(call_s=0.02))
    (episode, *_) = await collector.collect(tasks_for(PROBLEMS[:1], seed=3))
    statuses = {row.role: row.status for row in episode.trajectories}
    assert statuses == {"alice": "failed: deadline", "bob": "ok"}
    many.close()


async def test_one_that_dies_too_often_ends_the_run_and_another_run_starts_them_again(
    here: type[Here],
) -> None:
    many = workers(restarts=1)
    collector = many.collector(None, dict.fromkeys(("alice", "bob"), Player()), sampling=PLAIN)
    here.dies = [1, 2, 3]
    with pytest.raises(Died, match=r"episode worker \d has died"):
        await texts(collector)
    assert [actor.handle for actor in many.actors] == [None, None]
    here.dies = []
    assert len(await texts(collector)) == 10
    many.close()
    # Whoever is still being waited for at the end dies once and for all.
    actor, played = many.actors[0], episodes._DealtEpisode(0, tasks_for(PROBLEMS, seed=3)[0], 0)
    starting.start([actor])
    before, here.dies = actor.restarts, [len(here.played) + 1]
    with pytest.raises(Died):
        await many.play_on(actor, (PLAIN, Deadlines()), [played], [played])
    assert actor.restarts == before


UNKNOWN = "do not know --env {}, which was registered in this one; name it by its path"


@pytest.mark.parametrize(
    ("flags", "sentence"),
    [
        ("--cluster.episode-workers -1", "--cluster.episode-workers is -1; it must be"),
        (f"{' '.join(TWO)} --doctor", "in this process: leave out --cluster.episode-workers"),
        (
            f"{' '.join(TWO)} --env known-here --agents.judge.model tiny:bob",
            UNKNOWN.format("known-here"),
        ),
        (f"{' '.join(TWO)} --env ours-here", UNKNOWN.format("ours-here")),
    ],
)
def test_what_workers_cannot_play_is_refused_with_a_sentence(
    monkeypatch: pytest.MonkeyPatch, flags: str, sentence: str
) -> None:
    monkeypatch.syspath_prepend(str(ROOT))
    spec = replace(registry.spec("examples.debate:SPEC"), name="known-here")
    ours = replace(registry.spec("sd-e2"), name="ours-here", shipped=False)
    for registered in (spec, ours):
        monkeypatch.setitem(registry._SPECS, registered.name, registered)
    with pytest.raises(UserError) as refused:
        preflight(parse(flags.split()))
    assert sentence in str(refused.value)


def test_a_judge_of_each_worker_and_what_cannot_be_sent_are_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.syspath_prepend(str(ROOT))
    settings, check = ClusterSettings(episode_workers=1), check_episode_workers
    check(settings, "core-teaching", "server:http://127.0.0.1:9/v1?model=x", (), doctor=False)
    check(settings, "examples.debate:SPEC", "", (), doctor=False)
    with pytest.raises(UserError, match=r"--scoring.judge tiny:bob; serve it"):
        check(settings, "core-teaching", "tiny:bob", (), doctor=False)
    with pytest.raises(UserError, match=r"cannot be sent to another process .*leave it out"):
        check(settings, "core-teaching", "", lambda: None, doctor=False)
    check(ClusterSettings(), "core-teaching", "tiny:bob", lambda: None, doctor=True)


def test_more_than_this_machine_holds_is_refused_and_help_tells_of_the_flag(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with pytest.raises(UserError, match=r"cannot hold this run.*--cluster.episode-workers"):
        EpisodeWorkers(ClusterSettings(episode_workers=4096), {}, vllm=False)
    with pytest.raises(SystemExit):
        parse(["--env", "core-teaching", "--help-all"])
    assert "--cluster.episode-workers" in capsys.readouterr().out
