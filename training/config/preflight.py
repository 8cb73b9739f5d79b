"""The checks between the command line and the first model: validate, then open the problems.

Bounds stand beside the fields, and rules within a section in its class. Rules across sections are
here.
"""

import os
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from coterie import envs
from coterie.agents.models.instructions import fit_instructions
from coterie.agents.team.graders import build_scorer, check_graders
from coterie.agents.team.model_specs import (
    check_engines,
    check_models,
    check_tool_templates,
    local_models,
    model_spec,
)
from coterie.agents.team.settings import AgentSettings
from coterie.agents.team.teachers import check_teachers
from coterie.agents.vllm.settings import usual_device
from coterie.algorithms.custom import try_custom_parts
from coterie.algorithms.settings import check_moments
from coterie.cli.arguments import command
from coterie.cli.extras import CHECKS
from coterie.cli.output_paths import check_folder
from coterie.cli.plugins import load
from coterie.datatypes import UserError, named_below, refuse, unvalidated, validate
from coterie.envs.contract import why_not_roles
from coterie.envs.env_spec import never_rereads
from coterie.envs.kinds import is_other
from coterie.envs.registry import ask
from coterie.envs.tools import offered_tools
from coterie.evaluation import evaluation_of
from coterie.experts.naming import is_human
from coterie.problems.opening import is_here
from coterie.problems.prepare import PreparedProblems, prepare
from coterie.problems.stream import ProblemStream
from coterie.training.config.idle_settings import idle_in_algorithm, idle_model_settings
from coterie.training.config.role_sampling import learner_temperature
from coterie.training.config.run_settings import RunSettings
from coterie.training.config.train_settings import (
    Choice,
    TrainSettings,
    check_readable,
    make_env,
)
from coterie.training.hosts import lives_elsewhere, load_host
from coterie.training.prompt_limit import opening_prompts
from coterie.training.run.directory import check_new
from coterie.training.warmup import check_warmup, prepare_warmup

_MOST_THREADS = 4 * (os.cpu_count() or 1)


def preflight(settings: TrainSettings) -> PreparedProblems:
    """Refuse settings that cannot work; returns the problems, which the checks have to open.

    Raises:
        UserError: one sentence that names the flag.
    """
    validate(settings, "--")
    check_together(settings)
    return open_problems(settings)


def check_together(settings: TrainSettings) -> None:
    """Refuse sections that do not go together, or that need what this machine does not have.

    Raises:
        UserError: one sentence that names the flag.
    """
    run, rollout = settings.run, settings.rollout
    refuse(
        (
            run.threads > _MOST_THREADS,
            f"--threads must be 0 to {_MOST_THREADS}, four for each processor here",
        ),
        (
            rollout.overlap and run.engine == "local",
            "--rollout.overlap needs --engine vllm or tinker: this process cannot sample while it "
            "learns",
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
        *_people(settings.agents),
        *_idle_learners(settings.choice.env, settings.env, settings.agents),
        *_not_for_this_environment(settings),
        *idle_in_algorithm(settings),
    )
    check_warmup(settings.warmup, settings.agents)
    check_readable(settings.choice, settings.env, settings.algo)
    algorithms = settings.algorithms
    check_environment(settings.choice, settings.env, run.group_by)
    load_host(run.engine).check(settings)
    elsewhere, agents = lives_elsewhere(settings), settings.agents
    if elsewhere:  # whose devices are not this process's
        agents = {role: replace(agent, device="auto") for role, agent in agents.items()}
    check_models(agents)
    for role, agent in settings.agents.items():
        if agent.trained:
            device = None if elsewhere else usual_device(agent.device).partition(":")[0]
            with named_below(agent.learner_at(role)):
                check_moments(settings.learner_of(role), device)
    if settings.choice.resume is None:
        refuse(*idle_model_settings(settings))
    check_tools(settings.agents, settings.choice, settings.env)
    check_engines(run.engine, settings.vllm, settings.agents, here=not elsewhere)
    check_teachers(agents, algorithms)
    for role, algorithm in settings.learned_by.items():
        temperature = learner_temperature(rollout, settings.agents[role])
        if algorithm.distillation.teacher and run.engine == "vllm" and temperature not in (0, 1):
            raise UserError(
                f"{algorithms.flag(role, 'distillation.teacher')}: a teacher in vLLM scores at "
                f"temperature 1, and {role} learns at {temperature:g}: set "
                "--rollout.learner-temperature 1, or --engine local"
            )
    # What follows computes: parts of a custom algorithm, and the memory that models need.
    fit_instructions(map(model_spec, local_models(settings.players).values()))
    for at, algorithm in {
        "--algo.": algorithms.usual,
        **{algorithms.at(role): own for role, own in algorithms.by_role.items()},
    }.items():
        with named_below(at):
            try_custom_parts(algorithm)
    for path in CHECKS:
        load(path, "a check of settings")(settings)
    _check_folder(settings.choice.resume, run)


def open_problems(settings: TrainSettings) -> PreparedProblems:
    """Open the problems of a run, and check that each can be graded.

    Raises:
        UserError: a set cannot be read or graded, or has nothing for the warm-up.
    """
    problems = with_warmup(settings, prepare(settings.problems, settings.run.seed))
    # Generators, which have no size, make only problems that need no grader.
    training = (
        source[index] for source in problems.train.sources for index in range(source.size or 0)
    )
    every = (*problems.evaluation, *training)
    check_graders(settings.scoring, every)
    if (
        settings.problems.choice_seed
        and settings.choice.resume is None
        and not any("choice_seed" in problem.meta for problem in every)
    ):
        raise UserError(
            "--problems.choice-seed orders the options of sets that list the right one first, such "
            "as gpqa, and there is none here; leave it out"
        )
    return problems


def open_problems_here(settings: TrainSettings) -> PreparedProblems | None:
    """:func:`open_problems` if all sources are on this machine; else only check their names.

    Raises:
        UserError: as for :func:`open_problems`.
    """
    here = [is_here(text, "train") for text in settings.problems.sources]
    here += [is_here(text, "eval") for text in settings.problems.evaluated]
    return open_problems(settings) if all(here) else None


def _check_folder(resume: Path | None, run: RunSettings) -> None:
    if resume is not None:
        check_folder(resume, "--resume", folders=("checkpoints", "evaluation"))
    elif not run.doctor:
        check_new(run.run_dir or Path("runs"), may_hold_runs=run.run_dir is None)


def with_warmup(settings: TrainSettings, problems: PreparedProblems) -> PreparedProblems:
    """``problems`` with the worked solutions that roles imitate first (``--warmup.steps``).

    Raises:
        UserError: there are none, or such a role has no prompt at the beginning of an episode.
    """
    worked, fingerprints = worked_solutions(settings, problems)
    if not worked:
        return problems
    choice = settings.choice
    env = settings.make_env(source=problems.train.source)
    roles_with_prompt: set[str] = set()
    if not is_other(choice.env):
        roles_with_prompt = set(opening_prompts(env, next(iter(worked.values())).at(0)))
    env.close()
    if missing := [role for role in worked if role not in roles_with_prompt]:
        raise UserError(
            f"--warmup.steps: {choice.env} does not ask {missing[0]} the problem directly, so "
            f"there is nothing to imitate; say --agents.{missing[0]}.warmup none"
        )
    return replace(problems, worked=worked, fingerprints=problems.fingerprints | fingerprints)


def worked_solutions(
    settings: TrainSettings, problems: PreparedProblems
) -> tuple[dict[str, ProblemStream], dict[str, str]]:
    """What :func:`prepare_warmup` returns for the settings of a run and its problems.

    Raises:
        UserError: a set without worked solutions.
    """
    # Solutions of judged problems and programs are not graded.
    with unvalidated():
        scoring = replace(settings.scoring, programs=False, judge="")
    scorer = build_scorer(scoring)
    try:
        return prepare_warmup(
            settings.warmup,
            settings.agents,
            settings.problems,
            problems,
            settings.run.seed,
            scorer.check,
        )
    finally:
        scorer.close()


def _people(agents: Mapping[str, AgentSettings]) -> Iterator[tuple[bool, str]]:
    """Refusals of roles that a person would play in training."""
    for role, agent in agents.items():
        yield (
            is_human(agent.model),
            f"{role} is played by {agent.model}, but a person cannot play in training; a "
            f"person plays in {command('benchmark.py')} --cross-play or {command('train.py')} "
            "--evaluate RUN",
        )


def _idle_learners(
    name: str, env: Any, agents: Mapping[str, AgentSettings]
) -> Iterator[tuple[bool, str]]:
    """Refusals of trained roles that never act in training."""
    spec = envs.spec(name)
    trainable = tuple(ask(spec, "learns", env) if spec.learns else agents)
    for role, agent in agents.items():
        yield (
            agent.trained and role not in trainable,
            f"{role} is trained, but only {', '.join(trainable)} can learn here; set --train-role",
        )


def _not_for_this_environment(settings: TrainSettings) -> Iterator[tuple[bool, str]]:
    """The refusals of the environment, and of self-distillation if it has no traces to read
    again."""
    spec = envs.spec(settings.choice.env)
    others = [
        other.name for other in envs.registered() if other.rereads not in (None, never_rereads)
    ]
    if spec.check is not None:
        yield from ask(spec, "check", settings.env, settings)
    learned, flag = settings.learned_by, settings.algorithms.flag
    itself = next((role for role in learned if learned[role].distillation.from_itself), None)
    if itself and spec.rereads is not None and not ask(spec, "rereads", settings.env):
        at = flag(itself, "distillation.beta").removesuffix("beta")
        yield (
            True,
            f"{settings.choice.env} has no trace read again, so nothing is distilled: leave out "
            f"{at}beta, name a model that reads all traces with {at}teacher, or take --env "
            f"{' or '.join(others)}",
        )


def check_environment(choice: Choice, settings: Any, group_by: str | None) -> None:
    """Build the environment once, with a byte vocabulary, for its own checks.

    Args:
        choice: names the environment and the roles.
        settings: the environment's.
        group_by: key of the groups in which traces are compared; None: the environment's.

    Raises:
        UserError: it refuses its settings, or has other roles, or no such group key.
    """
    env, spec = make_env(choice, settings), envs.spec(choice.env)
    if why := why_not_roles(choice.roles, env.possible_agents):
        own = choice.roles == tuple(spec.roles)
        way_out = "name the former in its EnvSpec" if own else "leave out --roles"
        raise UserError(f"--env {choice.env}: {why}; {way_out}")
    known = env.metadata.get("group_keys", ("problem+role",))
    if group_by not in (None, *known):
        raise UserError(
            f"--group-by {group_by}: {choice.env} has no such group; known: {', '.join(known)}"
        )
    env.close()
    evaluation_of(spec)


def check_tools(agents: Mapping[str, AgentSettings], choice: Choice, settings: Any) -> None:
    """Refuse tools of the environment that a role's chat template cannot offer; the models are
    already checked.

    Raises:
        UserError: names the role and its model.
    """
    env = make_env(choice, settings)
    check_tool_templates(agents, offered_tools(env))
    env.close()
