"""What can be found wrong before any model is loaded."""

import math
import os
from collections.abc import Iterator
from pathlib import Path

import envs
from algorithms import validate
from algorithms.settings import check_settings
from evaluation import evaluation_of
from launch.numbers import check_no_nan, check_resamples, check_seeds, check_temperature
from launch.rundir import check_new
from launch.train_settings import TrainSettings
from problems.prepare import PreparedProblems, prepare
from teams.graders import check_graders
from teams.models import check_engines, check_models
from vocabulary import UserError

_MOST_THREADS = 4 * (os.cpu_count() or 1)


def preflight(settings: TrainSettings) -> PreparedProblems:
    """Refuse settings that cannot work; gives the problems, which it had to open.

    Raises:
        UserError: one sentence that names the flag.
    """
    check_no_nan(settings)
    run, rollout, how = settings.run, settings.rollout, settings.eval
    scoring, limits = settings.scoring, (rollout.call_deadline_s, rollout.episode_deadline_s)
    learned = rollout.learner_temperature
    for wrong, sentence in [
        (run.steps < 1, f"--steps is {run.steps}; it must be at least 1"),
        (run.tokens < 0, "--tokens must not be negative; 0 leaves the end to --steps"),
        (run.checkpoint_every < 1, "--checkpoint-every must be at least 1"),
        (run.keep_checkpoints < 1, "--keep-checkpoints must be at least 1"),
        (
            not 0 <= run.threads <= _MOST_THREADS,
            f"--threads must be 0 to {_MOST_THREADS}, four for each processor here",
        ),
        (run.transcripts_every < 0, "--transcripts-every must not be negative"),
        (rollout.problems_per_step < 1, "--rollout.problems-per-step must be at least 1"),
        (rollout.replicas < 0, "--rollout.replicas must not be negative"),
        (rollout.concurrency < 1, "--rollout.concurrency must be at least 1"),
        (rollout.max_staleness < 0, "--rollout.max-staleness must not be negative"),
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
            rollout.overlap and rollout.max_staleness < 1,
            "--rollout.overlap samples with weights one update old; --rollout.max-staleness must "
            "allow 1",
        ),
        (
            not 0 < rollout.temperature < math.inf,
            "--rollout.temperature must be above 0 to explore, and finite",
        ),
        (
            learned is not None and not 0 < learned < math.inf,
            "--rollout.learner-temperature must be above 0, and finite",
        ),
        (
            any(limit is not None and not limit > 0 for limit in limits),
            "--rollout.call-deadline-s and --rollout.episode-deadline-s must be above 0; without "
            "them there is no limit",
        ),
        (not 0 < rollout.top_p <= 1, "--rollout.top-p must be above 0 and at most 1"),
        (rollout.top_k < 0, "--rollout.top-k must not be negative"),
        (
            how.top_p is not None and not 0 < how.top_p <= 1,
            "--eval.top-p must be above 0 and at most 1",
        ),
        (scoring.workers < 1, "--scoring.workers must be at least 1"),
        (not scoring.deadline_s > 0, "--scoring.deadline-s must be above 0"),
        (settings.problems.epoch_size == 0, "--problems.epoch-size must be at least 1"),
        (how.every < 0, "--eval.every must not be negative"),
        (how.every > 0 and not how.enabled, "--eval.every needs --eval.enabled"),
        (how.resamples < 1, "--eval.resamples must be at least 1"),
        (
            not any(agent.trained for agent in settings.agents.values()),
            "no role is trained; name one with --train-role",
        ),
        *_idle_learners(settings),
    ]:
        if wrong:
            raise UserError(sentence)
    check_seeds([run.seed])
    check_temperature(how.temperature or 0.0, "--eval.temperature")
    check_resamples(how.resamples, "--eval.resamples")
    validate(settings.algo)
    check_settings(settings.learner, run.steps)
    _check_environment(settings)
    check_models(settings.agents)
    check_engines(run.engine, settings.vllm, settings.agents)
    if settings.choice.resume is None and not run.doctor:
        check_new(run.run_dir or Path("runs"), may_hold_runs=run.run_dir is None)
    problems = prepare(settings.problems, run.seed)
    # Generators have no problem that needs a grader.
    source = problems.train.source
    training = (source[place] for place in range(source.size or 0))
    check_graders(settings.scoring, (*problems.evaluation, *training))
    return problems


def _idle_learners(settings: TrainSettings) -> Iterator[tuple[bool, str]]:
    """Roles that would learn in an environment that does not ask them in training."""
    asked = getattr(settings.env, "learners", tuple(settings.agents))
    for role, agent in settings.agents.items():
        yield (
            agent.trained and role not in asked,
            f"{role} is trained, but {', '.join(asked)} alone can learn here (--env.learners); "
            f"name who learns with --train-role",
        )


def _check_environment(settings: TrainSettings) -> None:
    """Build it once, speaking bytes: its own checks are the best ones."""
    choice = settings.choice
    env = envs.make(
        choice.env,
        settings=settings.env,
        roles=choice.roles if settings.env is not None else None,
    )
    known = env.metadata.get("group_keys", ("problem+role",))
    if settings.run.group_by not in (None, *known):
        raise UserError(
            f"--group-by {settings.run.group_by}: {choice.env} has no such group; "
            f"known: {', '.join(known)}"
        )
    env.close()
    evaluation_of(envs.spec(choice.env))
