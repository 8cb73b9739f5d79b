"""Train a team of language models: ``python train.py --env core-teaching --algo gspo``."""

import sys
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # slow to import
    from coterie.problems.prepare import PreparedProblems
    from coterie.training.config.train_settings import TrainSettings


def main(argv: Sequence[str] | None = None) -> int:
    """Train; return the exit code: 0 done, 1 the doctor found something, 2 a user's mistake, 130
    interrupted."""
    from coterie.cli.arguments import program
    from coterie.cli.commands import run_command

    return run_command(
        lambda: _train(sys.argv[1:] if argv is None else argv),
        program=program("train.py"),
        interrupted="interrupted; continue the run with --resume RUN_DIR",
    )


def _train(argv: Sequence[str]) -> int:
    if any(word.partition("=")[0] == "--evaluate" for word in argv):
        from coterie.evaluation.compare.evaluate_run import evaluate

        return evaluate(argv)

    from coterie.cli.command_line import parse
    from coterie.training.config.role_learning import roles_line

    settings = parse(argv)
    prepare = partial(_prepare_problems, settings, argv)
    if (instead := _instead_of_training(settings)) is not None:
        return instead(settings, prepare)

    problems = prepare()
    print(settings.headline(), flush=True)
    for line in (settings.loss_line(), roles_line(settings)):
        if line:
            print(line, flush=True)
    from coterie.cli.arguments import command
    from coterie.cli.commands import Interruptible, Stop
    from coterie.training.session import open_session

    with Interruptible() as interrupt, open_session(settings, problems) as session:
        interrupt.begin()
        try:
            before = session.evaluate("before")
            warmed_up = session.warm_up(interrupt.check)
            with session.open_logbook() as logbook:
                for step in session.steps_left():
                    interrupt.check()
                    batch = session.sample(step)
                    credit = session.credit(batch)
                    session.sample_ahead(step + 1)
                    metrics = session.update(batch, credit)
                    session.record(step, batch, credit, metrics, logbook)
                    session.evaluate_between(step, logbook)
                    session.checkpoint(step)
            interrupt.check()
            after = session.evaluate("after")
            session.conclude(before, after, warmed_up)
            interrupt.over = True
        except Stop:
            session.save()
            print(f"Saved. Continue with: {command('train.py')} --resume {session.run.path}")
            return 130
    return 0


def _prepare_problems(settings: "TrainSettings", argv: Sequence[str]) -> "PreparedProblems":
    """Check everything before anything is loaded; return the run's problems."""
    from coterie.training.config.idle_settings import idle_in_environment
    from coterie.training.config.model_defaults import defaults_notice, has_large

    notice = defaults_notice(settings, argv)
    if settings.choice.resume is None:
        for line in (notice, *idle_in_environment(settings)):
            if line:
                print(line, flush=True)
    # These imports are slow, so the notice comes first.
    from coterie.training.config.preflight import preflight
    from coterie.training.run.stage_progress import checking

    with checking(slow=has_large(settings.agents)):
        return preflight(settings)


def _instead_of_training(settings: "TrainSettings") -> Callable[..., int] | None:
    """What a flag such as ``--doctor`` does in place of training; None without such a flag."""
    from coterie.cli.extras import INSTEAD_OF_TRAINING
    from coterie.cli.plugins import load

    for flag, path in INSTEAD_OF_TRAINING.items():
        if getattr(settings.run, flag):
            return load(path, f"--{flag}")
    return None


if __name__ == "__mp_main__":  # in processes that a run starts
    from coterie.agents.vllm.processes import end_with_parent

    end_with_parent()
if __name__ == "__main__":
    sys.exit(main())
