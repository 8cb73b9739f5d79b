"""Sample the responses that are missing, and store each batch when it completes."""

import asyncio
import dataclasses
import gc
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from typing import Any

import numpy as np
from rich.console import Console

from coterie import envs
from coterie.agents.team.graders import build_scorer
from coterie.agents.team.settings import AgentSettings
from coterie.agents.team.team import Team, build_team
from coterie.datatypes import (
    Completion,
    Episode,
    Policy,
    Problem,
    Prompt,
    Sampling,
    TokenCodec,
    Trajectory,
    UserError,
    derive_seed,
    ids_per_token,
    role_of,
)
from coterie.envs.registry import ask
from coterie.evaluation.compare.jobs import Job, Lineup, why_unplayed
from coterie.evaluation.compare.output import show_plain
from coterie.evaluation.compare.responses import Record
from coterie.evaluation.compare.settings import ComparisonSettings
from coterie.experts import ExpertPool, ScriptedPolicy, ScriptedSettings
from coterie.experts.naming import is_human
from coterie.experts.scripted import StoredPolicy
from coterie.rewards.grading.scorer import AnswerScorer
from coterie.rollouts import Collector
from coterie.rollouts.collect import Task
from coterie.training.config.benchmark_defaults import are_tiny
from coterie.training.run.cut_off import is_cut_off
from coterie.training.run.stage_progress import loading, stage

_LIMITS = ("max_new_tokens", "eval_max_new_tokens", "reply_tokens")
_MAX_NEW_TOKENS = 256


def sample_jobs(jobs: Sequence[Job], settings: ComparisonSettings, console: Console) -> None:
    """Sample all missing responses, with as few models in memory at a time as possible.

    A response depends only on its problem and sample number, so that problems and samples can be
    added later. Failed episodes are not stored; the next call samples them again.

    Raises:
        UserError: a model cannot be loaded, or the environment asks a role without a policy.
    """
    groups: dict[tuple[frozenset[AgentSettings], bool], list[Job]] = {}
    for job in jobs:
        models = frozenset(policy.settings for policy in job.lineup.needed.values())
        groups.setdefault((models, job.lineup.team), []).append(job)
    scorer = build_scorer(settings.scoring)
    try:
        for group in groups.values():
            _sample_group(group, settings, scorer, console)
            # Models have reference cycles, and those of the next group need their memory.
            gc.collect()
    finally:
        scorer.close()


def _sample_group(
    jobs: Sequence[Job],
    settings: ComparisonSettings,
    scorer: AnswerScorer,
    console: Console,
) -> None:
    """Load the models of the jobs, sample, and let go of the models; all are of teams or none."""
    needed = {name: policy for job in jobs for name, policy in job.lineup.needed.items()}
    models = [policy.model for policy in needed.values()]
    with loading(console, models, lines=not are_tiny(models)):
        team = build_team(
            {name: policy.settings for name, policy in needed.items()},
            vllm=settings.vllm if settings.engine == "vllm" else None,
            seed=settings.seed,
            together=jobs[0].lineup.team,
        )

    async def sample_all() -> None:
        async with team.open():
            for job in jobs:
                wanted = job.missing()
                failure = await sample(job, team, wanted, settings, scorer, console)
                if failure:
                    left = len(job.missing())
                    show_plain(
                        console,
                        f"{job.title}: {left} of {len(wanted)} failed ({failure}); the same "
                        "command asks for them again",
                    )

    # One event loop for the whole group: server connections belong to their loop.
    asyncio.run(sample_all())


async def sample(
    job: Job,
    team: Team,
    wanted: Sequence[tuple[Problem, int]],
    settings: ComparisonSettings,
    scorer: AnswerScorer,
    console: Console,
) -> str | None:
    """Play the episodes ``wanted``, (problem, number) each, and store their responses, batch by
    batch; return the reason of the last failure, or None."""
    lineup = job.lineup
    roles = lineup.roles or envs.spec(lineup.env).roles
    known = {role: team.codecs[players[0].name] for role, players in lineup.policies.items()}
    answering = lineup.role if lineup.role in known else next(iter(known))
    # Silent roles use the codec of the role that answers.
    codecs = {role: known.get(role, known[answering]) for role in roles}
    timed = {role: _Timed(_policy(lineup, role, team, codecs[role])) for role in lineup.policies}
    silent = ScriptedPolicy(ScriptedSettings("silent"), codecs[answering])
    others = {
        role: silent if lineup.silent is None or role in lineup.silent else _Nobody(role, job.title)
        for role in roles
    }
    env_settings = _in_ids(lineup.settings, codecs, answering)
    usual = _MAX_NEW_TOKENS * ids_per_token(codecs[answering])
    longest = getattr(env_settings, "max_new_tokens", usual)
    # A person plays one episode after the other, and an interruption loses only the last one.
    people = any(is_human(policy.model) for policy in lineup.needed.values())
    batch = 1 if people else settings.batch

    def make() -> Any:
        return envs.make(
            lineup.env,
            settings=env_settings,
            codecs=codecs,
            scorer=scorer,
            roles=lineup.roles or None,
        )

    collector = Collector(
        make,
        {**others, **timed},
        sampling=Sampling(longest, settings.temperature, settings.top_p),
        scorer=scorer,
        concurrency=batch,
    )
    failure: str | None = None
    first = wanted[0][0] if wanted else None
    each = expected_answers(make, lineup, first) if lineup.team else lineup.answers
    answers = len(wanted) * each
    # Tiny models answer too fast to need a progress display.
    slow = not are_tiny([policy.model for policy in lineup.needed.values()])
    # A display that refreshes itself would write over what the person types.
    with nullcontext() if people else stage(console, job.title, answers, lines=slow):
        for start in range(0, len(wanted), batch):
            tasks = [
                Task(
                    problem,
                    derive_seed(settings.seed, *lineup.stream, problem.id),
                    replica=episode,
                    mode=lineup.mode,
                )
                for problem, episode in wanted[start : start + batch]
            ]
            records: list[Record] = []
            for task, episode in zip(tasks, await collector.collect(tasks), strict=True):
                seconds = _seconds_of_calls(task, episode, timed)
                recorded, reason = _records(task, episode, lineup, codecs, seconds)
                records += recorded
                failure = reason or failure
            job.stored.append(records)
    return failure


def _records(
    task: Task,
    episode: Episode,
    lineup: Lineup,
    codecs: Mapping[str, TokenCodec],
    seconds: Mapping[str, float],
) -> tuple[list[Record], str]:
    """(what is stored of an episode, why some of it is missing)."""
    if lineup.team:
        rows = [row for row in episode.trajectories if row.role in lineup.policies]
        failed = [row.status for row in rows if row.status != "ok"]
        if failed:
            return [], failed[0].removeprefix("failed: ")
        return [_record_of_team(task, episode, lineup, codecs, seconds)] if rows else [], ""
    records: list[Record] = []
    failure = ""
    answers = [row for row in episode.trajectories if row.role == lineup.role]
    for index, row in enumerate(answers[-lineup.answers :]):
        if row.status == "ok":
            number = task.replica * lineup.answers + index
            records.append(_record(number, episode, row, lineup, codecs, seconds))
        else:
            failure = row.status.removeprefix("failed: ")
    return records, failure


def expected_answers(make: Callable[[], Any], lineup: Lineup, problem: Problem | None) -> int:
    """Estimate how many agents of the team's policies answer in an episode: each role as many as
    the first question asks of one role."""
    env = make()
    try:
        seats = Counter(map(role_of, env.possible_agents))
        if not hasattr(env, "areset"):  # which would start a program
            observations, _ = env.reset(seed=0, options={"problem": problem, "mode": lineup.mode})
            first = Counter(role_of(a) for a, seen in observations.items() if seen.get("active", 1))
            most = max(first.values(), default=0)
            seats = Counter({role: min(count, most) for role, count in seats.items()})
        return sum(seats[role] for role in lineup.policies)
    finally:
        env.close()


class _Nobody:
    """Raises an error if the environment asks a role without a policy."""

    def __init__(self, role: str, title: str) -> None:
        self._sentence = why_unplayed(role, title)

    async def __call__(self, prompt: Prompt, sampling: Sampling) -> Completion:
        raise UserError(self._sentence)


class _Timed:
    """Records the duration of each call to a policy."""

    def __init__(self, policy: Policy) -> None:
        self._policy = policy
        self._seconds: dict[tuple[str, int], float] = {}

    async def __call__(self, prompt: Prompt, sampling: Sampling) -> Completion:
        start = time.perf_counter()
        completion = await self._policy(prompt, sampling)
        self._seconds[prompt.agent, prompt.seed] = time.perf_counter() - start
        return completion

    def take(self, agent: str, seed: int) -> float:
        """Return the call's duration in seconds and delete it; 0 if there was none."""
        return self._seconds.pop((agent, seed), 0.0)


def _policy(lineup: Lineup, role: str, team: Team, codec: TokenCodec) -> Policy:
    """The policy of ``role``; several policies take its agents in turn."""
    if lineup.replies is not None and role != lineup.role:
        return StoredPolicy(lineup.replies, codec)
    players = lineup.policies[role]
    if len(players) == 1:
        return team.interpreter(players[0].name, codec)
    # Keyed by index, as one policy may occur several times.
    return ExpertPool(
        {str(index): team.interpreter(player.name, codec) for index, player in enumerate(players)}
    )


def _in_ids(settings: Any, codecs: Mapping[str, TokenCodec], role: str) -> Any:
    """Convert the token limits of the settings to ids of the codecs."""
    if settings is None:
        return None
    factors: dict[str, int] = dict.fromkeys(_LIMITS, ids_per_token(codecs[role]))
    if "expert" in codecs:
        factors["expert_max_new_tokens"] = ids_per_token(codecs["expert"])
    known = {field.name for field in dataclasses.fields(settings)}
    changes = {n: getattr(settings, n) * f for n, f in factors.items() if n in known}
    return dataclasses.replace(settings, **changes)


def _seconds_of_calls(
    task: Task, episode: Episode, timed: Mapping[str, _Timed]
) -> dict[str, float]:
    """Agent -> total seconds of its calls."""
    seconds: dict[str, float] = {}
    turn: Counter[str] = Counter()
    for row in episode.trajectories:
        for _ in row.turns if row.role in timed else ():
            # The collector seeds each call so, which identifies it.
            call = derive_seed(task.seed, task.replica, row.agent, turn[row.agent])
            taken = timed[row.role].take(row.agent, call)
            seconds[row.agent] = seconds.get(row.agent, 0.0) + taken
            turn[row.agent] += 1
    return seconds


def _record(
    number: int,
    episode: Episode,
    row: Trajectory,
    lineup: Lineup,
    codecs: Mapping[str, TokenCodec],
    seconds: Mapping[str, float],
) -> Record:
    # With several responses per episode, each is charged its own tokens and the helpers'.
    helpers = [
        helper
        for helper in episode.trajectories
        if helper.role in lineup.policies and (lineup.answers == 1 or helper.role != lineup.role)
    ]
    # Helpers answer in parallel, before the answering role.
    others = {helper.agent for helper in helpers} - {row.agent}
    longest = max((seconds.get(agent, 0.0) for agent in others), default=0.0)
    confidence = row.info.get("confidence")
    if "correct" not in row.info:
        raise UserError(
            f"{lineup.env} does not say whether {row.role} is right; with --team for each role, "
            "the team's reward counts"
        )
    return {
        "problem": episode.problem_id,
        "sample": number,
        "correct": int(bool(row.info.get("correct"))),
        "answer": row.info.get("answer"),
        "confidence": None if confidence is None else float(confidence),
        "text": "".join(row.texts[1:]),
        "used": _used(helpers if lineup.answers == 1 else [*helpers, row], lineup, codecs),
        "seconds": round(seconds.get(row.agent, 0.0) + longest, 4),
        **_cut([row], lineup, codecs),
        **{name: _extra_value(row, name) for name in lineup.extra_values},
    }


def _record_of_team(
    task: Task,
    episode: Episode,
    lineup: Lineup,
    codecs: Mapping[str, TokenCodec],
    seconds: Mapping[str, float],
) -> Record:
    # An agent whose context was reset has several rows, each with its full reward.
    rows = [row for row in episode.trajectories if row.role in lineup.policies]
    last = {row.agent: row for row in rows}
    # A role that cannot learn, such as an expert, earns nothing and counts for nothing.
    spec = envs.spec(lineup.env)
    learns = lineup.policies if spec.learns is None else ask(spec, "learns", lineup.settings)
    infos = [row.info for row in last.values() if row.role == lineup.role]
    right = [float(info["correct"]) for info in infos if info.get("correct") is not None]
    # Of several agents' answers no single one is what the mean is about.
    own = infos[0] if len(infos) == 1 else {}
    turns: dict[str, float] = {}
    for agent, row in last.items():
        # Agents of one role answer in parallel; roles answer in sequence.
        turns[row.role] = max(turns.get(row.role, 0.0), seconds.get(agent, 0.0))
    return {
        "problem": episode.problem_id,
        "sample": task.replica,
        "correct": sum(right) / len(right) if right else None,
        **({"answer": own["answer"]} if "answer" in own else {}),
        "confidence": own.get("confidence"),
        "text": "\n".join(f"{agent}: {''.join(row.texts[1:])}" for agent, row in last.items()),
        "used": _used(rows, lineup, codecs),
        "seconds": round(sum(turns.values()), 4),
        **_cut(rows, lineup, codecs),
        "earned": {
            agent: reward
            for agent, reward in episode.rewards.items()
            if role_of(agent) in lineup.policies
        },
        "scored": [agent for agent, row in last.items() if row.role in learns],
        "outcome": {a: row.info["outcome"] for a, row in last.items() if "outcome" in row.info},
    }


def _cut(
    rows: Sequence[Trajectory], lineup: Lineup, codecs: Mapping[str, TokenCodec]
) -> dict[str, int]:
    """``cut``: how many agents' answers were cut off at the token limit; nothing if none was."""
    limit, _ = lineup.limit
    agents = {row.agent for row in rows if is_cut_off(row, limit, ids_per_token(codecs[row.role]))}
    return {"cut": len(agents)} if agents else {}


def _used(
    rows: Sequence[Trajectory], lineup: Lineup, codecs: Mapping[str, TokenCodec]
) -> dict[str, list[float]]:
    """Policy -> [prompt tokens, sampled tokens]."""
    used: dict[str, list[float]] = {}
    for row in rows:
        players = lineup.policies[row.role]
        unit = ids_per_token(codecs[row.role])
        player = players[_agent_number(row.agent) % len(players)]
        spent = used.setdefault(player.name, [0.0, 0.0])
        for (start, end), (prompt, sampled) in zip(row.turns, row.usage, strict=True):
            # Each call is charged its whole context, as servers bill it, and what they count.
            spent[0] += prompt or start / unit
            spent[1] += sampled or (end - start) / unit
    return used


def _extra_value(row: Trajectory, name: str) -> Any:
    if name == "tokens":
        return row.tokens.tolist()
    if name == "turns":
        return [list(turn) for turn in row.turns]
    return mean_probability(row) if name == "probability" else float(row.info[name])


def mean_probability(row: Trajectory) -> float:
    """Arithmetic mean of the sampled tokens' probabilities at the sampling temperature."""
    sampled = row.logprobs[row.mask].astype(np.float64)
    return float(np.exp(sampled).mean()) if len(sampled) else 0.0


def _agent_number(agent: str) -> int:
    number = agent.rpartition("_")[2]
    return int(number) if number.isdecimal() else 0
