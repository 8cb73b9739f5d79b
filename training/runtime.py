"""The composition root: the parts of a run, each built from its own settings."""

import asyncio
from collections.abc import Callable, Collection, Coroutine, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import torch
from rich.console import Console

from coterie import envs
from coterie.agents.models import checksums
from coterie.agents.models.threads import fix_threads
from coterie.agents.team.backend import LearningSetup
from coterie.agents.team.graders import build_scorer
from coterie.agents.team.model_specs import pin_commits
from coterie.agents.team.teachers import with_commit
from coterie.agents.team.team import Team, build_team
from coterie.algorithms.imitation import Imitation
from coterie.algorithms.role_algorithms import RoleAlgorithms
from coterie.datatypes import UserError
from coterie.evaluation import evaluation_of
from coterie.problems.prepare import PreparedProblems
from coterie.rewards.grading.scorer import AnswerScorer
from coterie.rollouts import Collector, Deadlines
from coterie.training.config.model_defaults import has_large
from coterie.training.config.role_sampling import learner_temperature, role_sampling
from coterie.training.config.run_settings import RunSettings
from coterie.training.config.train_settings import TrainSettings, replicas_of
from coterie.training.examiner import Examiner
from coterie.training.hosts import load_host
from coterie.training.prompt_limit import drop_long_prompts
from coterie.training.run import checkpoint, checkpoint_paths
from coterie.training.run.baseline import baseline
from coterie.training.run.checkpointer import Checkpointer
from coterie.training.run.conclusion import Conclusion, tell
from coterie.training.run.directory import RunDirectory, default_path
from coterie.training.run.durable_files import write_whole
from coterie.training.run.number_formats import tell_computing
from coterie.training.run.provenance import (
    check_unchanged,
    report_changed_plugins,
    write_environment,
)
from coterie.training.run.recorder import StepRecorder
from coterie.training.run.stage_progress import loading
from coterie.training.run.summary import places_table
from coterie.training.run.symptoms import Observer
from coterie.training.sampling import StepSampler
from coterie.training.warmup_stage import WarmUp

T = TypeVar("T")


@dataclass(frozen=True)
class Runtime:
    """The parts of a run. :attr:`closing` closes them all."""

    settings: RunSettings
    algorithms: RoleAlgorithms
    evaluate_every: int
    """Steps between evaluations; 0: none between the first and the last."""
    directory: RunDirectory
    console: Console
    slow: bool
    """Whether a model is not tiny, so that progress is printed even off a terminal."""
    runner: asyncio.Runner
    closing: ExitStack
    team: Team
    make_env: Callable[[], Any]
    """Builds an environment that speaks the team's vocabularies."""
    scorer: AnswerScorer
    sampler: StepSampler
    warmup: WarmUp
    examiner: Examiner
    observer: Observer
    checkpointer: Checkpointer
    recorder: StepRecorder
    conclusion: Conclusion

    def run_async(self, work: Coroutine[Any, Any, T]) -> T:
        """Run ``work`` to its end on the run's own event loop."""
        return _on_loop(self.runner, work)


def build(settings: TrainSettings, problems: PreparedProblems) -> Runtime:
    """Build a new run in a new directory, or one that continues from its last checkpoint.

    :mod:`coterie.training.run.checkpointer` lists what happens in order on ``--resume``.

    Args:
        settings: of the whole run.
        problems: opened by :func:`coterie.training.config.preflight.preflight`.

    Raises:
        UserError: a part cannot be loaded, started or restored; then a new directory is deleted.
    """
    choice = settings.choice
    if choice.resume:
        directory = RunDirectory.reopen(choice.resume)
        directory.lock()
        try:
            check_unchanged(directory, settings.players, problems.fingerprints)
            report_changed_plugins(directory, print)
            if (newest := checkpoint_paths.latest(directory.checkpoints)) is not None:
                checkpoint.check(newest, print)
        except UserError:
            directory.close()
            raise
        runtime = assemble(settings, problems, directory, settings.plain())
        _keep_steps(directory, settings.run.steps, newest)
    else:
        settings = _at_commits(settings)
        path = settings.run.run_dir or default_path(choice.env, choice.algo)
        config = settings.plain()
        directory = RunDirectory.create(path, config)
        try:
            runtime = assemble(settings, problems, directory, config)
        except UserError:
            directory.discard()
            raise
    write_environment(directory, settings.players, problems.fingerprints)
    return runtime


def _keep_steps(directory: RunDirectory, steps: int, newest: Path | None) -> None:
    """Store the number of steps that ``--resume RUN --steps N`` asks for, so that the next
    ``--resume RUN`` goes on to the same end, and does not take the change for damage."""
    config = directory.config()
    if config["run"]["steps"] != steps:
        config["run"]["steps"] = steps
        directory.write_json("config.json", config)
        if newest is not None:
            sums = newest / checksums.NAME
            with directory.writing(str(sums)):
                write_whole(sums, checksums.with_checksum(newest, "../../config.json"))


def _at_commits(settings: TrainSettings) -> TrainSettings:
    """``settings`` with the commit of every model from the hub, teachers included."""
    agents = {
        role: replace(agent, algo=with_commit(agent.algo)) if agent.algo else agent
        for role, agent in settings.agents.items()
    }
    return replace(settings, algo=with_commit(settings.algo), agents=pin_commits(agents))


def assemble(
    settings: TrainSettings,
    problems: PreparedProblems,
    directory: RunDirectory,
    config: Mapping[str, Any],
) -> Runtime:
    """Load, start and restore all parts; on an error those that are open are closed.

    Args:
        settings: of the whole run.
        problems: its problems.
        directory: of the run; it is closed with the runtime.
        config: the settings as JSON data.

    Raises:
        UserError: a part cannot be loaded, started or restored.
    """
    with ExitStack() as closing:
        closing.callback(directory.close)
        return _assemble(settings, problems, directory, config, closing)


def _assemble(
    settings: TrainSettings,
    problems: PreparedProblems,
    directory: RunDirectory,
    config: Mapping[str, Any],
    closing: ExitStack,
) -> Runtime:
    choice, rollout, run = settings.choice, settings.rollout, settings.run
    console, runner = Console(), closing.enter_context(asyncio.Runner())
    say = partial(tell, console)
    slow = has_large(settings.agents)
    fix_threads(run.threads)
    torch.manual_seed(run.seed)

    vllm = settings.vllm if run.engine == "vllm" else None
    agents = settings.agents
    host = load_host(run.engine)
    backend = host.build(
        getattr(settings, host.section),
        agents,
        vllm=vllm,
        threads=run.threads,
        directory=directory,
    )
    models = [agent.model for agent in settings.players.values()]
    with loading(console, models, lines=slow):
        team = build_team(
            agents,
            learning=_learning(settings),
            vllm=vllm,
            seed=run.seed,
            backend=backend,
        )
    closing.callback(lambda: _on_loop(runner, team.aclose()))
    _on_loop(runner, team.backend.start())
    tell_computing(team, agents, say)
    for note in problems.notes:
        say(note)
    if rows := team.backend.places():
        console.print(places_table(rows))
    scorer = build_scorer(settings.scoring)
    make_env = partial(
        settings.make_env, codecs=team.codecs, scorer=scorer, source=problems.train.source
    )
    closing.callback(scorer.close)
    collector = partial(
        Collector,
        make_env,
        team.policies,
        scorer=scorer,
        deadlines=Deadlines(rollout.call_deadline_s, rollout.episode_deadline_s),
        concurrency=rollout.concurrency,
    )
    dropped = drop_long_prompts(problems.train, make_env, rollout.max_prompt_tokens, say)
    env = make_env()
    sampler = StepSampler(
        team,
        collector(sampling=role_sampling(rollout, agents)),
        problems.train,
        settings.algorithms,
        rollout,
        group_key=run.group_by or env.metadata.get("default_group", "problem+role"),
        replicas=replicas_of(settings, env.metadata),
        agents=len(env.possible_agents),
        seed=run.seed,
    )
    closing.callback(lambda: _on_loop(runner, sampler.aclose()))
    warmup = WarmUp(team, problems.worked, make_env, settings.warmup, scorer.check)
    warmup.drop_long(say)
    for sentence in warmup.other_forms().values():
        say(sentence)
    evaluation = settings.eval
    examiner = Examiner(
        evaluation_of(envs.spec(choice.env)),
        collector(sampling=role_sampling(rollout, agents, evaluation)),
        problems.evaluation if evaluation.enabled else (),
        sets_of_problem=problems.sets_of_problem,
        roles=choice.roles,
        env_settings=settings.env,
        settings=evaluation,
        seed=run.seed,
        run=directory,
    )
    observer = Observer(settings, team.trained, sampler.group_key, say)
    checkpointer = Checkpointer(directory, team, keep=run.keep_checkpoints, tell=say)
    if choice.resume:
        checkpointer.restore(problems.train)
    resumed = bool(checkpointer.progress.step)
    return Runtime(
        settings=run,
        algorithms=settings.algorithms,
        evaluate_every=settings.eval.every,
        directory=directory,
        console=console,
        slow=slow,
        runner=runner,
        team=team,
        make_env=make_env,
        scorer=scorer,
        sampler=sampler,
        warmup=warmup,
        examiner=examiner,
        observer=observer,
        checkpointer=checkpointer,
        recorder=StepRecorder(
            directory, team, checkpointer.tally, observer, run, say, resumed=resumed
        ),
        conclusion=Conclusion(
            directory,
            console,
            team,
            examiner,
            config=config,
            baseline=baseline(settings),
            dropped=dropped,
            terms=_terms(choice.env, settings.env),
        ),
        closing=closing.pop_all(),
    )


def _terms(name: str, env: Any) -> Collection[str] | None:
    weighted = envs.spec(name).terms
    return None if weighted is None else weighted(env)


def _learning(settings: TrainSettings) -> LearningSetup:
    rollout, warmup = settings.rollout, settings.warmup
    learning = {role: agent for role, agent in settings.agents.items() if agent.trained}
    return LearningSetup(
        settings.algo,
        settings.learner,
        temperature=rollout.learner_temperature or rollout.temperature,
        total_steps=settings.run.steps,
        imitation=Imitation(warmup.steps, warmup.lr) if warmup.steps else None,
        temperatures={role: learner_temperature(rollout, a) for role, a in learning.items()},
        algorithms=settings.algorithms.by_role,
        learners={role: a.learner for role, a in learning.items() if a.learner},
    )


def _on_loop(runner: asyncio.Runner, work: Coroutine[Any, Any, T]) -> T:
    # Runner.run would handle SIGINT itself, and print a task's whole result.
    return runner.get_loop().run_until_complete(work)
