"""Command lines: mistakes in one line, options once, programs by the name they were started by."""

import contextlib
import sys
from pathlib import Path

import pytest

from coterie import benchmark, train
from coterie.__main__ import main as coterie
from coterie.cli.arguments import check_once, overlay
from coterie.datatypes import UserError

ALL = "(options: python train.py --env core-teaching --algo gspo --help-all)"


def said(argv: list[str], capsys: pytest.CaptureFixture[str]) -> str:
    """What is printed when ``PROGRAM flags`` is refused: always one line, and exit code 2."""
    program, *flags = argv
    mains = {"train": train.main, "benchmark": benchmark.main}
    assert (mains[program](flags) if program in mains else coterie(argv[1:])) == 2
    shown = capsys.readouterr()
    assert shown.err.count("\n") == 1, shown.err
    assert shown.out == ""
    return shown.err.strip()


@pytest.mark.parametrize(
    ("argv", "sentence"),
    [
        ("train --stpes 3", f"train.py: unknown option --stpes; did you mean --steps? {ALL}"),
        ("train --steps x", f"train.py: --steps is 'x'; it must be a whole number {ALL}"),
        ("train --learner.lr a", f"train.py: --learner.lr is 'a'; it must be a number {ALL}"),
        ("train --learner.lr", f"train.py: --learner.lr needs a value {ALL}"),
        (
            "train --agents.bob.tuning foo",
            f"train.py: --agents.bob.tuning is 'foo'; it must be auto, full or lora {ALL}",
        ),
        ("train foo", f"train.py: unexpected argument 'foo' {ALL}"),
        ("train --roles", "--roles: expected at least one argument (options: python train.py"),
        ("train --env core-teachin", "unknown env 'core-teachin'; did you mean 'core-teaching'?"),
        ("train --algo gsop", "unknown algorithm 'gsop'; did you mean 'gspo'"),
        ("coterie train --stpes 3", "(options: coterie train --env core-teaching --algo gspo"),
        ("coterie trian", "coterie: unknown program 'trian'; did you mean 'train'? known: train,"),
        ("coterie report", "coterie report: the following arguments are required: run (opti"),
        ("coterie check --seed x y", "coterie check: --seed: invalid int value: 'x' (options"),
        ("benchmark suit", "unknown comparison 'suit'; did you mean 'suite'?"),
        ("benchmark suite --foo 3", "unknown option --foo (options: python benchmark.py suite"),
    ],
)  # fmt: skip
def test_a_mistake_is_one_line_and_then_the_next_command(
    argv: str, sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert sentence in said(argv.split(), capsys)


@pytest.mark.parametrize(
    ("argv", "flag"),
    [
        ("train --config a.toml --config b.toml", "--config"),
        ("train --resume a --resume b", "--resume"),
        ("train --env core-teaching --env sd-e2", "--env"),
        ("train --steps 3 --steps 4", "--steps"),
        ("train --env.k_cold 3 --env.k-cold 4", "--env.k-cold"),
        ("benchmark --policies a=tiny:alice --policies b=tiny:bob", "--policies"),
        ("coterie report a --out b --out c", "--out"),
    ],
)
def test_an_option_given_twice_is_refused(
    argv: str, flag: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert said(argv.split(), capsys).endswith(f": {flag} is given twice; write it once")


def test_yes_and_no_are_one_option() -> None:
    with pytest.raises(UserError, match=r"--eval\.no-enabled is given twice, as --eval\.enabled b"):
        check_once(["--eval.enabled", "--eval.no-enabled"])
    check_once(["--a", "--b", "--", "--c.a", "-1", "a", "a"])


def test_of_options_that_are_laid_over_others_the_last_is_left() -> None:
    words = ["corea", "--corea", "x", "--steps", "3", "--no-a", "--b", "1", "2", "--steps=4", "--a"]
    assert overlay(words) == ["corea", "--corea", "x", "--b", "1", "2", "--steps=4", "--a"]
    assert overlay([]) == []


@pytest.mark.parametrize(
    ("argv", "start"),
    [
        (["train", "--help"], "usage: coterie train [--env ENV]"),
        (["train", "--env", "sd-e2", "--help"], "usage: coterie train --env sd-e2 --algo gspo"),
        (["benchmark", "--help"], "usage: coterie benchmark COMPARISON"),
        (["benchmark", "suite", "--help"], "usage: coterie benchmark suite"),
    ],
)
def test_help_says_the_name_that_a_program_was_started_by(
    argv: list[str], start: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with contextlib.suppress(SystemExit):
        coterie(argv)
    shown = capsys.readouterr().out
    assert shown.startswith(start)
    assert "train.py" not in shown.partition("\n\n")[0]
    assert train.main(["--steps", "x"]) == 2
    assert capsys.readouterr().err.startswith("train.py: ")  # nothing is left behind


OWN = '''\
from dataclasses import dataclass
from coterie.algorithms import Algorithm, Surrogate

@dataclass(frozen=True)
class Mine(Surrogate):
    """Mine."""

    weight: float = 1.0
    """How much."""

OURS = Algorithm(surrogate=Mine())
'''


def test_an_algorithm_of_ones_own_makes_no_warning(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "own_loss.py").write_text(OWN)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "own_loss", raising=False)
    flags = ["train", "--algo", "own_loss:OURS", "--algo.surrogate.weight", "heavy"]
    assert "--algo.surrogate.weight is 'heavy'; it must be a number" in said(flags, capsys)
