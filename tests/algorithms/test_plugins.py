"""Algorithms that others wrote: by the path of a module, and by a package's entry point."""

import json
from pathlib import Path

import pytest

from coterie import algorithms
from coterie.datatypes import UserError
from coterie.train import main

MINE = '''
from dataclasses import dataclass

import torch

from coterie.algorithms import Algorithm, Surrogate
from coterie.algorithms.surrogates import Terms, surrogate, token_ratio


@dataclass(frozen=True)
class PlainScore(Surrogate):
    """``-weight A log pi``."""

    weight: float = 1.0
    """Multiplies the score."""


@surrogate.register
def plain_score(choice: PlainScore, logp_BT, old_BT, advantage, mask_BT):
    ratio_BT = token_ratio(logp_BT, old_BT).detach()
    return Terms(-choice.weight * advantage * logp_BT, ratio_BT, torch.zeros_like(mask_BT))


SCORE = Algorithm(surrogate=PlainScore(weight=0.5), scale="none")
NUMBER = 5
'''
SMALL = ("--steps", "1", "--rollout.problems-per-step", "2", "--eval.no-enabled")


@pytest.fixture
def mine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "my_algorithms.py").write_text(MINE, encoding="utf-8")
    monkeypatch.syspath_prepend(str(tmp_path))
    return tmp_path


def register(folder: Path, *lines: str) -> None:
    info = folder / "my_package-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: my-package\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("\n".join(["[coterie.algorithms]", *lines, ""]))


def test_by_the_path_of_a_module(mine: Path, capsys: pytest.CaptureFixture[str]) -> None:
    algo = ("--algo", "my_algorithms:SCORE")
    with pytest.raises(SystemExit):
        main([*algo, "--help"])
    assert "--algo.surrogate.weight" in capsys.readouterr().out
    run = mine / "run"
    flags = ("--algo.surrogate.weight", "0.25", "--run-dir", str(run))
    assert main([*algo, *SMALL, *flags]) == 0
    config = json.loads((run / "config.json").read_text())
    assert config["choice"]["algo"] == "my_algorithms:SCORE"
    assert config["algo"]["surrogate"] == {"weight": 0.25}
    assert main(["--resume", str(run), "--steps", "2"]) == 0
    assert len((run / "metrics.jsonl").read_text().splitlines()) == 2


def test_by_an_entry_point(mine: Path) -> None:
    register(mine, "plain-score = my_algorithms:SCORE", "number = my_algorithms:NUMBER")
    assert algorithms.names()[-2:] == ["number", "plain-score"]
    assert algorithms.get("plain-score").scale == "none"
    with pytest.raises(UserError, match=r"'number' \(entry point my_algorithms:NUMBER of package"):
        algorithms.get("number")


@pytest.mark.usefixtures("mine")
@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("nothing", "unknown algorithm 'nothing'; known: grpo, "),
        ("my_algorithms:NUMBER", "is a int; it must be a coterie.algorithms.Algorithm"),
        ("my_algorithms:LOST", "cannot be loaded: AttributeError: module 'my_algorithms' has no"),
        ("nowhere:SCORE", "cannot be loaded: ModuleNotFoundError: No module named 'nowhere'"),
    ],
)
def test_what_is_no_algorithm(name: str, sentence: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--algo", name]) == 2
    assert sentence in capsys.readouterr().err
