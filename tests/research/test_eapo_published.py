"""The protocol of EAPO as published: both arms are the same learner for as many tokens."""

from typing import Any

from coterie.cli.command_line import parse
from evidence import eapo_published as protocol
from evidence.eapo_published import Run


def test_both_arms_differ_in_the_experts_alone() -> None:
    runs = list(protocol.planned())
    assert len({run.name for run in runs}) == len(runs) == 2 * 10
    ours: Any = parse([*Run("published", 120).flags(), "--run-dir", "x"])
    alone: Any = parse([*Run("alone", 120).flags(1234), "--run-dir", "x"])
    assert (ours.env.consult, alone.env.consult) == ("free", "never")
    assert (ours.run.tokens, alone.run.tokens) == (0, 1234)
    assert (ours.run.steps, ours.run.seed, alone.run.seed) == (100, 120, 120)
    assert (ours.algo, ours.learner, ours.eval) == (alone.algo, alone.learner, alone.eval)
