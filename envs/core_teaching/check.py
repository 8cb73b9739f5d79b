"""What core-teaching refuses of a run before any model is loaded."""

from collections.abc import Iterator
from typing import Any

from coterie.envs.core_teaching.settings import CoreTeachingSettings


def check(settings: CoreTeachingSettings, run: Any) -> Iterator[tuple[bool, str]]:
    """:attr:`coterie.envs.EnvSpec.check`: traces are read again, and learned from, or neither; and
    reward terms of one's own give what they must.

    Raises:
        UserError: a reward term of one's own fails when it is tried.
    """
    beta = run.algo.distillation.beta
    yield (
        settings.reread == "none" and beta > 0,
        "--algo.distillation.beta does nothing while no trace is read again; set it to 0, or "
        "--env.reread, such as wrong",
    )
    yield (
        settings.reread != "none" and beta == 0,
        f"--env.reread {settings.reread} does nothing without --algo.distillation.beta, such as "
        "1; without both: --env.reread none",
    )
    if settings.terms:
        _try_terms(settings)


def _try_terms(settings: CoreTeachingSettings) -> None:
    """Call them on traces as a question may have them: right, wrong, empty, hinted; and on one."""
    from coterie.datatypes import Problem, Verdict
    from coterie.envs.core_teaching.scoring import Trace
    from coterie.envs.core_teaching.terms import own_terms
    from coterie.rewards.rescue import COLD, HINT

    right, wrong = Verdict(True, "4", "exact"), Verdict(False, None, "none")
    traces = [
        Trace("alice_0", "alice", COLD, "2 + 2 = 4\nAnswer: 4", right),
        Trace("alice_1", "alice", COLD, "", wrong),
        Trace("bob_0", "bob", COLD, "2 + 2 = 5", wrong),
        Trace("bob_1", "bob", HINT, "4", right, taught_by="alice_0"),
    ]
    problem = Problem("dry-run", "What is 2 + 2?", "4")
    for some in (traces, traces[:1]):
        own_terms(settings.terms, some, problem)
