"""Checks before any model is loaded: of settings against each other, and against the machine.

Each class of settings refuses its own impossible values; checks across classes are here.
"""

import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from coterie import envs
from coterie.agents.team.graders import build_scorer, check_graders
from coterie.agents.team.model_specs import check_engines, check_models
from coterie.algorithms.custom import try_custom_parts
from coterie.algorithms.settings import check_moments
from coterie.cli.extras import CHECKS
from coterie.cli.output_paths import check_folder
from coterie.cli.plugins import load
from coterie.datatypes import UserError, check_numbers, refuse
from coterie.envs.env_spec import never_rereads
from coterie.envs.kinds import is_other
from coterie.envs.registry import ask
from coterie.evaluation import evaluation_of
from coterie.problems.prepare import PreparedProblems, prepare
from coterie.training.config.train_settings import TrainSettings, check_readable
from coterie.training.hosts import lives_elsewhere, load_host
from coterie.training.prompt_limit import opening_prompts
from coterie.training.run.directory import check_new
from coterie.training.warmup import prepare_warmup

_MOST_THREADS = 4 * (os.cpu_count() or 1)


def preflight(settings: TrainSettings) -> PreparedProblems:
    """Refuse settings that cannot work; returns the problems, which it had to open.

    Raises:
        UserError: one sentence that names the flag.
    """
    check_numbers(settings)
    run, rollout = settings.run, settings.rollout
    refuse(
        (
            run.threads > _MOST_THREADS,
            f"--threads must be 0 to {_MOST_THREADS}, four for each processor here",
        ),
        (
            rollout.overlap and run.engine != "vllm",
            "--rollout.overlap needs --engine vllm: this process cannot sample while it learns",
        ),
        (
            rollout.overlap and settings.vllm.sleep_level > 0,
            "--rollout.overlap keeps engines busy while the learner updates, so they cannot sleep; "
            "leave out --vllm.sleep-level",
        ),
        (
            not any(agent.trained for agent in settings.agents.values()),
            "no role is trained; name one with --train-role",
        ),
        *_idle_learners(settings),
        *_not_for_this_environment(settings),
    )
    check_readable(settings)
    try_custom_parts(settings.algo)
    check_environment(settings)
    load_host().check(settings)
    check_moments(settings.learner)
    elsewhere = lives_elsewhere(settings)
    check_models(
        {role: replace(agent, device="auto") for role, agent in settings.agents.items()}
        if elsewhere  # whose devices are not this process's
        else settings.agents
    )
    check_engines(run.engine, settings.vllm, settings.agents, here=not elsewhere)
    for path in CHECKS:
        load(path, "a check of settings")(settings)
    if settings.choice.resume is not None:
        check_folder(settings.choice.resume, "--resume", folders=("checkpoints", "evaluation"))
    elif not run.doctor:
        check_new(run.run_dir or Path("runs"), may_hold_runs=run.run_dir is None)
    problems = with_warmup(settings, prepare(settings.problems, run.seed))
    # Generators have no problem that needs a grader.
    source = problems.train.source
    training = (source[place] for place in range(source.size or 0))
    check_graders(settings.scoring, (*problems.evaluation, *training))
    return problems


def with_warmup(settings: TrainSettings, problems: PreparedProblems) -> PreparedProblems:
    """``problems`` with the worked solutions that roles imitate first (``--warmup.steps``).

    Raises:
        UserError: there are none, or the environment does not ask such a role about them at once.
    """
    agents, evaluation = settings.agents, problems.evaluation
    # Neither a judge nor programs are needed: answers to such problems stand as they are.
    scoring = replace(settings.scoring, programs=False, judge="")
    scorer, graders = build_scorer(scoring)
    try:
        worked, prints = prepare_warmup(
            settings.warmup, agents, settings.problems, evaluation, settings.run.seed, scorer.check
        )
    finally:
        scorer.close()
        graders.close()
    if not worked:
        return problems
    choice = settings.choice
    env = settings.make_env(source=problems.train.source)
    asked: set[str] = set()
    if not is_other(choice.env):
        asked = set(opening_prompts(env, next(iter(worked.values())).at(0)))
    env.close()
    if missing := [role for role in worked if role not in asked]:
        raise UserError(
            f"--warmup.steps: {choice.env} does not ask {missing[0]} the problem directly, so "
            f"there is nothing to imitate; say --agents.{missing[0]}.warmup none"
        )
    return replace(problems, worked=worked, fingerprints={**problems.fingerprints, **prints})


def _idle_learners(settings: TrainSettings) -> Iterator[tuple[bool, str]]:
    """Refusals of roles that should learn but are never asked in training."""
    spec = envs.spec(settings.choice.env)
    asked = tuple(ask(spec, "learns", settings.env) if spec.learns else settings.agents)
    for role, agent in settings.agents.items():
        yield (
            agent.trained and role not in asked,
            f"{role} is trained, but {', '.join(asked)} alone can learn here; name who "
            "learns with --train-role",
        )


def _not_for_this_environment(settings: TrainSettings) -> Iterator[tuple[bool, str]]:
    """The environment's own refusals, and distillation where it has no traces to read."""
    spec = envs.spec(settings.choice.env)
    others = [
        other.name for other in envs.registered() if other.rereads not in (None, never_rereads)
    ]
    if spec.check is not None:
        yield from ask(spec, "check", settings.env, settings)
    yield (
        settings.algo.distillation.beta > 0
        and spec.rereads is not None
        and not ask(spec, "rereads", settings.env),
        f"{settings.choice.env} has no traces of peers to learn from: leave out "
        f"--algo.distillation.beta, or take --env {' or '.join(others)}",
    )


def check_environment(settings: TrainSettings) -> None:
    """Build the environment once, with a byte vocabulary, for its own checks.

    Raises:
        UserError: it refuses its settings, or has no such group key.
    """
    choice = settings.choice
    env = settings.make_env()
    known = env.metadata.get("group_keys", ("problem+role",))
    if settings.run.group_by not in (None, *known):
        raise UserError(
            f"--group-by {settings.run.group_by}: {choice.env} has no such group; "
            f"known: {', '.join(known)}"
        )
    env.close()
    evaluation_of(envs.spec(choice.env))
