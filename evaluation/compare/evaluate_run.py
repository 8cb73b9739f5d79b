"""Evaluate the models of a run again, without training: ``train.py --evaluate runs/x``."""

import asyncio
import dataclasses
import json
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
import tyro
from annotated_types import Ge
from rich.console import Console
from rich.markup import escape

from coterie import envs
from coterie.agents.team.graders import build_scorer, check_graders
from coterie.agents.team.model_specs import after_training, check_engines, check_models
from coterie.agents.team.players import has_human
from coterie.agents.team.settings import AgentSettings
from coterie.agents.team.team import build_team
from coterie.cli.arguments import command
from coterie.cli.command_line import choose, read_run
from coterie.cli.flags import parse_flags
from coterie.cli.output_paths import check_file
from coterie.datatypes import UserError, Validated, derive_seed, user_path
from coterie.datatypes.validation import Seed
from coterie.evaluation import evaluation_of
from coterie.evaluation.by_set import estimate
from coterie.evaluation.evaluation import Evaluation, Outcomes, Resampled
from coterie.evaluation.json_values import as_json
from coterie.evaluation.metrics.means import mean_present
from coterie.evaluation.run_table import HEADINGS, lines
from coterie.evaluation.table import make_table
from coterie.problems.prepare import HeldOut, prepare_evaluation
from coterie.rollouts import Collector, Deadlines
from coterie.training.config.model_defaults import fitted
from coterie.training.config.preflight import check_environment, check_tools
from coterie.training.config.role_sampling import role_sampling
from coterie.training.config.run_settings import RunSettings
from coterie.training.config.train_settings import Choice, TrainSettings, defaults
from coterie.training.examiner import Examiner
from coterie.training.run.conclusion import tell
from coterie.training.run.cut_off import cut_off, limit_of
from coterie.training.run.directory import RunDirectory
from coterie.training.run.durable_files import write_or_keep
from coterie.training.run.provenance import report_changed_problems
from coterie.training.run.stage_progress import stage
from coterie.training.run.symptoms import AnswerCounts, count

# Sections, and settings of a run, that only training reads; an evaluation has its own seed and
# engine.
_TRAINING = {
    *("algo", "learner", "rollout"),
    *(field.name.replace("_", "-") for field in dataclasses.fields(RunSettings)),
} - {"seed", "engine"}
# Settings of other sections that only training reads.
_IN_TRAINING = (
    *("problems.limit", "problems.epoch-size", "problems.order", "problems.decontaminate"),
    *("eval.enabled", "eval.every"),
)


@dataclass(frozen=True)
class EvaluateSettings(Validated):
    """Evaluate the trained models of a run again, in the same way or with other settings."""

    samples: Annotated[int, Ge(1)] = 1
    """How often each problem is played; intervals are over problems."""
    out: Path | None = None
    """File for metrics and outcomes; default: RUN/evaluation/again.json."""
    seed: Seed = 0
    """Seed of everything random; default: the run's."""
    engine: Literal["local", "vllm"] = "local"
    """What samples from models; default: the run's, or local after --engine tinker."""


def evaluate(argv: Sequence[str]) -> int:
    """Evaluate, show and store; returns the exit code.

    Args:
        argv: the command line, with ``--evaluate``.

    Raises:
        UserError: a flag of training, a run that has not ended, a role that nobody plays, or
            whatever else is wrong before a model is loaded.
    """
    settings, how, run, before = _parse(argv)
    path = how.out or run / "evaluation" / "again.json"
    check_file(path, "--out")
    check_environment(settings.choice, settings.env, settings.run.group_by)
    check_models(settings.agents)
    check_tools(settings.agents, settings.choice, settings.env)
    check_engines(how.engine, settings.vllm, settings.agents)
    problems = prepare_evaluation(settings.problems, how.seed)
    check_graders(settings.scoring, problems.problems)
    console = Console()
    for note in problems.notes:
        tell(console, note)
    report_changed_problems(
        RunDirectory.reopen(run),
        before.problems,
        settings.problems,
        problems.fingerprints,
        partial(tell, console),
    )
    evaluation = evaluation_of(envs.spec(settings.choice.env))
    each = evaluation.answers(settings.choice.roles, settings.env)
    answers = how.samples * len(problems.problems) * each
    # A display that refreshes itself would write over what a person types.
    people = has_human(settings.agents)
    with nullcontext() if people else stage(console, "evaluating", answers):
        outcomes, counts, failed = asyncio.run(_examine(settings, how, run, evaluation, problems))
    measured = [
        estimate(evaluation, sample, settings.eval.resamples, how.seed) for sample in outcomes
    ]
    names = dict.fromkeys(name for sample in measured for name in sample)
    metrics = {
        name: _mean([sample[name] for sample in measured if name in sample]) for name in names
    }
    shown = lines({}, metrics, evaluation.table(settings.choice.roles, metrics))
    cells = [(escape(line.label), [escape(line.after)]) for line in shown]
    console.print(make_table("", HEADINGS[0], ["value"], cells))
    broken_off, requested = sum(c.broken_off for c in counts), sum(c.answers for c in counts)
    limit, flag = limit_of(settings.env, evaluated=True)
    if sentence := cut_off(broken_off, requested, limit, flag):
        tell(console, sentence)
    content = {
        "metrics": as_json(metrics),
        "outcomes": outcomes,
        "samples": how.samples,
        "config": settings.plain(),
    }
    write_or_keep(path, json.dumps(content, indent=1) + "\n")
    failures = f"{failed} answers failed and are excluded; " if failed else ""
    console.print(f"{failures}written: {path}", soft_wrap=True, markup=False)
    return 0


def _parse(argv: Sequence[str]) -> tuple[TrainSettings, EvaluateSettings, Path, TrainSettings]:
    """(the settings of the evaluation, its own flags, the run, the run's settings)."""
    named, rest = choose(argv)
    run = user_path(str(named.pop("evaluate")))
    env = str(named.pop("env", ""))
    flags = {word.split("=")[0] for word in rest if word.startswith("--")}
    wrong = [*(f"--{name.replace('_', '-')}" for name in named), *sorted(filter(_trains, flags))]
    if wrong:
        raise UserError(f"--evaluate trains nothing; leave out {' '.join(wrong)}")
    stored = read_run(run)
    settings = dataclasses.replace(stored, agents=_players(run, stored, env, flags))
    if env and env != stored.choice.env:
        choice = Choice(env, stored.choice.algo, tuple(settings.agents))
        fit = fitted(defaults(choice), settings.agents)
        settings = dataclasses.replace(settings, choice=choice, env=fit.env)
    roles = dataclasses.make_dataclass(
        "Agents", [(r, AgentSettings, agent) for r, agent in settings.agents.items()], frozen=True
    )
    parts = {n: getattr(settings, n) for n in ("problems", "scoring", "vllm", "eval")}
    parts |= {"agents": roles()} | ({} if settings.env is None else {"env": settings.env})
    # What learned on a server of others is evaluated here.
    engine = "vllm" if stored.run.engine == "vllm" else "local"
    base = EvaluateSettings(seed=stored.run.seed, engine=engine)
    fields: list[Any] = [(name, type(value), value) for name, value in parts.items()]
    # An empty name: its flags have no prefix.
    fields.append(("again", Annotated[EvaluateSettings, tyro.conf.arg(name="")], base))
    kind = dataclasses.make_dataclass("Evaluate", fields, frozen=True)
    prog = f"{command('train.py')} --evaluate {run}"
    parsed = parse_flags(kind, rest, prog=prog, description=EvaluateSettings.__doc__)
    values = {name: getattr(parsed, name) for name in parts}
    values["agents"] = {role: getattr(parsed.agents, role) for role in settings.agents}
    return dataclasses.replace(settings, **values), parsed.again, run, stored


def _trains(flag: str) -> bool:
    """Whether only training reads what a flag sets."""
    name = flag.strip("-").replace("_", "-").removeprefix("no-").replace(".no-", ".")
    return name.partition(".")[0] in _TRAINING or name in _IN_TRAINING


def _players(
    run: Path, stored: TrainSettings, env: str, flags: set[str]
) -> dict[str, AgentSettings]:
    """Role -> its model: the trained one, or the run's frozen one."""
    known: dict[str, AgentSettings] = {}
    for role, agent in stored.agents.items():
        folder = run / "final" / role
        if agent.trained and not folder.is_dir():
            way_out = f"{command('train.py')} --resume {run}"
            raise UserError(f"{run} is a run that has not ended: {way_out}")
        known[role] = after_training(agent, folder) if agent.trained else agent
    trained = [role for role, agent in stored.agents.items() if agent.trained]
    roles = envs.spec(env).roles if env and env != stored.choice.env else tuple(known)
    players: dict[str, AgentSettings] = {}
    for role in roles:
        player = known.get(role) or (known[trained[0]] if len(trained) == 1 else None)
        if player is None and f"--agents.{role}.model" not in flags:
            raise UserError(
                f"{run} has no model for the role {role} of {env}; name one with "
                f"--agents.{role}.model"
            )
        players[role] = player or AgentSettings("", trained=False)
        if f"--agents.{role}.model" in flags:
            # The commit is of the model that the run had.
            players[role] = dataclasses.replace(players[role], revision=None)
    return players


async def _examine(
    settings: TrainSettings,
    how: EvaluateSettings,
    run: Path,
    evaluation: Evaluation,
    problems: HeldOut,
) -> tuple[list[Outcomes], list[AnswerCounts], int]:
    """(the outcomes of each sample, the counts of its answers, answers that failed)."""
    choice, rollout, evaluation_settings = settings.choice, settings.rollout, settings.eval
    vllm = settings.vllm if how.engine == "vllm" else None
    team = build_team(settings.agents, vllm=vllm, seed=how.seed)
    # A person plays one episode after the other, and takes as long as it takes.
    people = has_human(settings.agents)
    deadlines = Deadlines(rollout.call_deadline_s, rollout.episode_deadline_s)
    scorer = build_scorer(settings.scoring)
    collector = Collector(
        lambda: settings.make_env(codecs=team.codecs, scorer=scorer),
        team.policies,
        sampling=role_sampling(rollout, settings.agents, evaluation_settings),
        scorer=scorer,
        deadlines=Deadlines() if people else deadlines,
        concurrency=1 if people else rollout.concurrency,
    )
    limit, _ = limit_of(settings.env, evaluated=True)
    outcomes: list[Outcomes] = []
    counts: list[AnswerCounts] = []
    failed = 0
    try:
        async with team.open():
            for sample in range(how.samples):
                examiner = Examiner(
                    evaluation,
                    collector,
                    problems.problems,
                    sets_of_problem=problems.sets_of_problem,
                    roles=choice.roles,
                    env_settings=settings.env,
                    settings=evaluation_settings,
                    # The first sample equals the run's own evaluation after training.
                    seed=derive_seed(how.seed, "again", sample) if sample else how.seed,
                    run=RunDirectory.reopen(run),
                )
                outcomes.append(await examiner.examine())
                counts.append(count(examiner.episodes, choice.roles, "problem+role", limit=limit))
                failed += examiner.failed.total()
    finally:
        scorer.close()
    return outcomes, counts, failed


def _mean(samples: Sequence[Resampled]) -> Resampled:
    """Mean over samples of the same problems, whose resamples are paired."""
    value = float(mean_present([sample.value for sample in samples]))
    drawn = np.stack([sample.replicates for sample in samples])
    return Resampled(value, mean_present(drawn, axis=0), samples[0].count)
