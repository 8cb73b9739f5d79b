"""Ask for completions that are not stored yet, and store them as they come."""

import dataclasses
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import envs
from envs.bytes_codec import BytesCodec
from evaluation.suite.suites import settings_of
from experts import ExpertPool, ScriptedPolicy, ScriptedSettings
from launch.suite.asked import Asked
from launch.suite.completions import Record
from rewards.grading.scorer import AnswerScorer
from rollouts import Collector
from rollouts.collect import Task
from teams.team import Team
from vocabulary import (
    Completion,
    Episode,
    Policy,
    Problem,
    Prompt,
    Sampling,
    TokenCodec,
    Trajectory,
    derive_seed,
)

# What stands for a token where an agent speaks bytes: English has about four to one.
BYTES_PER_TOKEN = 4
_LIMITS = ("max_new_tokens", "eval_max_new_tokens", "reply_tokens")
_EXPERT = "expert"


class _Timed:
    """Remembers how long each call was waited for."""

    def __init__(self, policy: Policy) -> None:
        self._policy = policy
        self._seconds: dict[tuple[str, int], float] = {}

    async def __call__(self, prompt: Prompt, sampling: Sampling) -> Completion:
        start = time.perf_counter()
        completion = await self._policy(prompt, sampling)
        self._seconds[prompt.agent, prompt.seed] = time.perf_counter() - start
        return completion

    def take(self, agent: str, seed: int) -> float:
        """Seconds of the call; it is forgotten."""
        return self._seconds.pop((agent, seed), 0.0)


async def sample(
    asked: Asked,
    team: Team,
    wanted: Sequence[tuple[Problem, int]],
    *,
    sampling: Mapping[str, Any],
    seed: int,
    batch: int,
    store: Callable[[Iterable[Record]], None],
    done: Callable[[int], None],
) -> str | None:
    """Play an episode for every (problem, number of the sample); why one failed, if any did.

    A completion depends on its problem and number, not on what else is asked for: more of either
    can be added later. Failures are not stored, so that they are asked for again.

    Args:
        sampling: ``temperature`` and ``top_p``.
        batch: episodes that are stored together.
        done: told how many more have been played.
    """
    suite, mine = asked.suite, team.codecs[asked.agent]
    roles = envs.spec(suite.env).roles
    spoken = team.codecs[asked.experts[0]] if asked.experts else mine
    silent = ScriptedPolicy(ScriptedSettings("silent"), spoken)
    timed = {suite.seat: _Timed(team.policies[asked.agent])}
    if asked.experts:
        timed[_EXPERT] = _Timed(_experts(asked, team, spoken))
    units = {suite.seat: tokens_per_count(mine), _EXPERT: tokens_per_count(spoken)}
    settings = _limited(settings_of(suite), mine, spoken)
    scorer = AnswerScorer()
    collector = Collector(
        lambda: envs.make(  # type: ignore[arg-type,return-value]
            suite.env,
            settings=settings,
            codecs={role: mine if role == suite.seat else spoken for role in roles},
            scorer=scorer,
        ),
        {role: timed.get(role, silent) for role in roles},
        sampling=Sampling(getattr(settings, "max_new_tokens", 256), **sampling),
        scorer=scorer,
        concurrency=batch,
    )
    mode = suite.workflow if asked.experts and suite.workflow else suite.mode
    failure: str | None = None
    try:
        for start in range(0, len(wanted), batch):
            tasks = [
                # Agents that share weights must not share their luck.
                Task(
                    problem,
                    derive_seed(seed, "suite", asked.agent, problem.id),
                    replica=number,
                    mode=mode,
                )
                for problem, number in wanted[start : start + batch]
            ]
            records: list[Record] = []
            for task, episode in zip(tasks, await collector.collect(tasks), strict=True):
                row = next(r for r in reversed(episode.trajectories) if r.role == suite.seat)
                if row.status == "ok":
                    records.append(_record(task, episode, row, asked, timed, units))
                else:
                    failure = row.status.removeprefix("failed: ")
            store(records)
            done(len(tasks))
    finally:
        scorer.close()
    return failure


def _experts(asked: Asked, team: Team, spoken: TokenCodec) -> Policy:
    """Whoever sits on the seats of the role ``expert``."""
    policies = {name: team.interpreter(name, spoken) for name in asked.experts}
    # The pool goes by places: one agent may sit on several.
    return ExpertPool({str(place): policies[name] for place, name in enumerate(asked.experts)})


def tokens_per_count(codec: TokenCodec) -> int:
    """How many of the codec's units make a token."""
    return BYTES_PER_TOKEN if isinstance(codec, BytesCodec) else 1


def _limited(settings: Any, mine: TokenCodec, experts: TokenCodec) -> Any:
    """The settings with their limits in the units that are spoken."""
    if settings is None:
        return None
    factors: dict[str, int] = dict.fromkeys(_LIMITS, tokens_per_count(mine))
    factors["expert_max_new_tokens"] = tokens_per_count(experts)
    known = {field.name for field in dataclasses.fields(settings)}
    changes = {n: getattr(settings, n) * f for n, f in factors.items() if n in known}
    return dataclasses.replace(settings, **changes)


def _record(
    task: Task,
    episode: Episode,
    row: Trajectory,
    asked: Asked,
    timed: Mapping[str, _Timed],
    units: Mapping[str, int],
) -> Record:
    confidence = row.info.get("confidence")
    used: dict[str, list[float]] = {}
    waited: dict[str, float] = {}
    turn: Counter[str] = Counter()
    for one in episode.trajectories:
        if one.role not in timed:
            continue
        seat = int(one.agent.rpartition("_")[2])
        mine = one.role == asked.suite.seat
        spent = used.setdefault(
            asked.agent if mine else asked.experts[seat % len(asked.experts)], [0.0, 0.0]
        )
        for start, end in one.turns:
            # Every call is given its whole context, as servers bill it.
            spent[0] += start / units[one.role]
            spent[1] += (end - start) / units[one.role]
            stream = derive_seed(task.seed, task.replica, one.agent, turn[one.agent])
            waited[one.agent] = waited.get(one.agent, 0.0) + timed[one.role].take(one.agent, stream)
            turn[one.agent] += 1
    # Experts answer side by side, before the seat does.
    longest = max((s for agent, s in waited.items() if agent != row.agent), default=0.0)
    return {
        "problem": episode.problem_id,
        "sample": task.replica,
        "correct": int(bool(row.info.get("correct"))),
        "answer": row.info.get("answer"),
        "confidence": None if confidence is None else float(confidence),
        "text": "".join(row.texts[1:]),
        "used": used,
        "seconds": round(waited.get(row.agent, 0.0) + longest, 4),
    }
