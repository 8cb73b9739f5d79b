"""A stored baseline stands beside the run that it is a baseline of, and beside no other."""

import shlex
from collections.abc import Callable

import pytest

from coterie.cli.command_line import parse
from coterie.training.run.baseline import baseline
from coterie.training.session import Session


@pytest.mark.parametrize("flags", [(), ("--seed", "7", "--threads", "1", "--eval.every", "9")])
def test_beside_a_run_that_was_told_nothing_else(flags: tuple[str, ...]) -> None:
    alone = baseline(parse(flags))
    assert alone.metrics["pass@1/bob"] > alone.metrics["pass@1/alice"] > 0.5
    assert alone.sentence.endswith(alone.command)
    assert f"mean of {len(alone.seeds)} seeds" in alone.sentence


@pytest.mark.parametrize(
    "flags",
    [
        ("--steps", "331"),
        ("--algo", "grpo"),
        ("--algo.distillation.beta", "0.5"),
        ("--env.k-cold", "4"),
        ("--eval.temperature", "0.1"),
        ("--warmup.steps", "9"),
        ("--scoring.checker", "math-verify"),
        ("--roles", "alice", "carol"),
    ],
)
def test_beside_no_other(flags: tuple[str, ...]) -> None:
    assert not baseline(parse(flags)).metrics


def test_beside_none_of_a_preset_or_another_environment() -> None:
    for flags in (("--preset", "core-gated"), ("--env", "sd-e2", "--algo", "grpo")):
        assert not baseline(parse(flags)).metrics
    chosen = ("--preset", "core-qwen-gsm8k", "--agents.alice.model", "tiny:alice")
    assert not baseline(parse([*chosen, "--agents.bob.model", "tiny:bob"])).metrics


def test_its_command_is_the_same_run_without_the_peer() -> None:
    usual = parse([])
    program, script, *flags = shlex.split(baseline(usual).command)
    assert (program, script) == ("python", "train.py")
    alone = parse(flags)
    assert alone.env.reread == "none"
    assert alone.algo.distillation.beta == 0
    for part in ("agents", "learner", "problems", "rollout", "run"):
        assert getattr(alone, part) == getattr(usual, part)


def test_the_table_has_a_column_of_it(
    opened: Callable[..., Session],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    stored = baseline(parse([]))
    monkeypatch.setattr("coterie.training.runtime.baseline", lambda settings: stored)
    session = opened("--steps", "1", "--problems.held-out", "4", "--eval.enabled")
    outcomes = session.evaluate("before")
    capsys.readouterr()
    session.conclude(outcomes, outcomes)
    said = capsys.readouterr().out
    (line,) = [line for line in said.splitlines() if line.startswith("Pass@1 alice")]
    assert line.endswith(f"{stored.metrics['pass@1/alice']:.3f}".removeprefix("0"))
    assert stored.command in said
