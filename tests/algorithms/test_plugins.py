"""Algorithms that others wrote: by the path of a module, and by a package's entry point."""

import json
import sys
from pathlib import Path

import pytest

from coterie import algorithms
from coterie.benchmark import main as benchmark
from coterie.datatypes import UserError
from coterie.train import main

MINE = '''
from dataclasses import dataclass

import torch

from coterie.algorithms import Algorithm, Surrogate, Terms, surrogate, token_ratio


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


@dataclass(frozen=True)
class Silent(Surrogate):
    names: frozenset = frozenset({"a"})


@dataclass(frozen=True)
class Broken(Surrogate):
    weight: float = 1.0


@surrogate.register
def broken(choice: Broken, logp_BT, old_BT, advantage, mask_BT):
    return Terms(logp_BT.detach(), logp_BT, mask_BT)


@dataclass(frozen=True)
class Failing(Surrogate):
    weight: float = 1.0


@surrogate.register
def failing(choice: Failing, logp_BT, old_BT, advantage, mask_BT):
    return logp_BT[7, 7, 7]


@surrogate.register
def kept(choice: Silent, logp_BT, old_BT, advantage, mask_BT):
    return plain_score(PlainScore(), logp_BT, old_BT, advantage, mask_BT)


@dataclass(frozen=True)
class Formless(Surrogate):
    weight: float = 1.0


@dataclass(frozen=True)
class Late(Surrogate):
    """Passes the trial, which has two rows."""

    how: str = "returns"


@surrogate.register
def late(choice: Late, logp_BT, old_BT, advantage, mask_BT):
    if len(logp_BT) > 2 and choice.how == "returns":
        return None
    if len(logp_BT) > 2:
        raise SystemExit("two\\nlines")
    return plain_score(PlainScore(), logp_BT, old_BT, advantage, mask_BT)


LATE, EXITS = Algorithm(surrogate=Late()), Algorithm(surrogate=Late("exits"))
SILENT, BROKEN = Algorithm(surrogate=Silent()), Algorithm(surrogate=Broken())
FAILING, FORMLESS = Algorithm(surrogate=Failing()), Algorithm(surrogate=Formless())


def rank(reward_M, group_M):
    import numpy as np

    return np.array([np.mean(r > reward_M[group_M == g]) - 0.25 for r, g in zip(reward_M, group_M)])


def few(reward_M, group_M):
    return reward_M[:1]
'''
UNDERIVED = """
from dataclasses import dataclass

from coterie.algorithms import Algorithm, Surrogate


@dataclass(frozen=True)
class Mine:
    weight: float = 1.0


class Undecorated(Surrogate):
    weight: float = 1.0


{name} = Algorithm(surrogate={kind}())
"""
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


def test_by_the_path_of_a_module_it_trains_resumes_and_is_evaluated(
    mine: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    algo = ("--algo", "my_algorithms:SCORE")
    with pytest.raises(SystemExit):
        main([*algo, "--help"])
    assert "--algo.surrogate.weight" in capsys.readouterr().out
    run = mine / "run"
    flags = ("--algo.surrogate.weight", "0.25", "--problems.held-out", "4", "--run-dir", str(run))
    assert main([*algo, "--steps", "1", "--rollout.problems-per-step", "2", *flags]) == 0
    config = json.loads((run / "config.json").read_text())
    assert config["choice"]["algo"] == "my_algorithms:SCORE"
    assert config["algo"]["surrogate"] == {"weight": 0.25}
    assert main(["--resume", str(run), "--steps", "2"]) == 0
    assert len((run / "metrics.jsonl").read_text().splitlines()) == 2
    assert main(["--evaluate", str(run), "--samples", "1", "--out", str(mine / "again.json")]) == 0
    suite = ["suite", "--policies", f"alice={run}", "--questions", "2", "--samples", "1"]
    assert benchmark([*suite, "--out", str(mine / "suite")]) == 0


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
        ("my_algorithms:NUMBER", "is a int; it must be a coterie.algorithms.Algorithm"),
        (
            "my_algorithms:SILENT",
            "its setting surrogate is Silent(names=frozenset({'a'})), which",
        ),
        ("my_algorithms:BROKEN", "must give a finite loss that depends on the log-probabilities"),
        ("my_algorithms:FAILING", "algo.surrogate Failing raised IndexError"),
        ("my_algorithms:FORMLESS", "algo.surrogate Formless has no formula: decorate a function"),
        ("nowhere:SCORE", "No module named 'nowhere'. Start with `coterie` in its folder, or"),
    ],
)
def test_what_is_no_algorithm(name: str, sentence: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--algo", name]) == 2
    assert sentence in capsys.readouterr().err


@pytest.mark.parametrize("kind", ["Mine", "Undecorated"])
def test_a_loss_that_a_run_could_not_read_back_is_refused_when_it_is_named(
    kind: str, mine: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (mine / "underived.py").write_text(UNDERIVED.format(name="A", kind=kind), encoding="utf-8")
    try:
        assert main(["--algo", "underived:A", *SMALL, "--run-dir", str(mine / "run")]) == 2
    finally:
        sys.modules.pop("underived", None)
    sentence = f"is a {kind}: derive it from coterie.algorithms.Surrogate and make it a frozen"
    assert sentence in capsys.readouterr().err
    assert not (mine / "run").exists()


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("my_algorithms:LATE", "Late must give coterie.algorithms.Terms: three tensors (B, T)"),
        ("my_algorithms:EXITS", "algo.surrogate Late raised SystemExit: two lines"),
    ],
)
def test_a_loss_that_fails_in_an_update_is_one_sentence(
    name: str, sentence: str, mine: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["--algo", name, *SMALL, "--run-dir", str(mine / "run")]) == 2
    assert sentence in capsys.readouterr().err


def test_an_own_advantage_trains_and_resumes(mine: Path) -> None:
    run = mine / "run"
    flags = ("--algo.advantage", "my_algorithms:rank", "--run-dir", str(run))
    assert main([*flags, *SMALL]) == 0
    assert json.loads((run / "config.json").read_text())["algo"]["advantage"] == (
        "my_algorithms:rank"
    )
    assert main(["--resume", str(run), "--steps", "2"]) == 0
    worth = {
        row["advantage"]
        for line in (run / "episodes.jsonl").read_text().splitlines()
        for row in json.loads(line)["trajectories"]
    }
    # Of three traces a group: those that beat none, one or two thirds of it.
    assert worth <= {-0.25, 1 / 3 - 0.25, 2 / 3 - 0.25}
    assert len(worth) > 1


@pytest.mark.usefixtures("mine")
@pytest.mark.parametrize(
    ("path", "sentence"),
    [
        ("my_algorithms:few", "it must give 5 finite numbers, one for each reward"),
        ("my_algorithms:NUMBER", "is a int; it must be a function"),
        ("my_algorithms:nobody", "cannot be loaded: AttributeError"),
        ("rank", "Is a colon missing?"),
    ],
)
def test_what_is_no_advantage(
    path: str, sentence: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = tmp_path / "run"
    assert main(["--algo.advantage", path, *SMALL, "--run-dir", str(run)]) == 2
    assert sentence in capsys.readouterr().err
    assert not run.exists()
