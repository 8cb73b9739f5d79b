"""Papers' tables in miniature: what they run, that it can be run, and what becomes of it."""

import importlib
import json
import shlex
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import tyro

from coterie import benchmark, train
from coterie.papers import TABLES
from coterie.papers.preset import Variant
from coterie.training.command_line import parse

VARIANTS = {v: None for table in TABLES.values() for v in table.variants}
SMALL = ("--steps", "1", "--train", "problems.held-out=4", "rollout.problems-per-step=2")


@pytest.fixture
def inside(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """Commands run inside this process, where torch is loaded already."""
    ran: list[list[str]] = []

    def run(command: list[str], check: bool) -> Any:
        program, arguments = command[2].removeprefix("coterie."), command[3:]
        ran.append([program, *arguments])
        main = {"train": train.main, "benchmark": benchmark.main}[program]
        return subprocess.CompletedProcess(command, main(arguments))

    monkeypatch.setattr("coterie.comparison.sweep.subprocess.run", run)
    return ran


def test_every_table_of_the_papers_is_known(capsys: pytest.CaptureFixture[str]) -> None:
    numbers = {"core": range(1, 7), "corea": range(1, 16), "eapo": range(1, 12)}
    assert set(TABLES) == {f"{paper}-{n}" for paper, ns in numbers.items() for n in ns}
    assert benchmark.main(["sweep"]) == 0
    shown = capsys.readouterr().out
    for name, table in TABLES.items():
        assert name in shown
        assert bool(table.why_not) != bool(table.variants or table.comparison)
        assert table.why_not in shown
        assert table.why_not or table.columns


@pytest.mark.parametrize("variant", VARIANTS, ids=lambda variant: variant.name)
def test_every_variant_can_be_trained(variant: Variant) -> None:
    if variant.program == "distill":
        from coterie.training.distill import Distillation

        tyro.cli(Distillation, args=[*variant.flags, "--out", "x"])
    else:
        from coterie import envs

        settings = parse([*variant.flags, "--seed", "1", "--run-dir", "x"])
        envs.make(settings.choice.env, settings=settings.env, roles=settings.choice.roles).close()


def test_variants_of_one_name_are_the_same() -> None:
    flags: dict[str, set[Any]] = {}
    for variant in VARIANTS:
        flags.setdefault(variant.name, set()).add(variant.flags)
    assert all(len(some) == 1 for some in flags.values())


def test_the_pools_of_table_3_are_one_model_each() -> None:
    """EAPO, table 3: the policy's own model, another of like strength, and the expert."""
    players = [
        parse([*variant.flags, "--run-dir", "x"]).agents["expert"].model
        for variant in TABLES["eapo-3"].variants
    ]
    assert players == ["tiny:policy", "tiny:pupil", "tiny:expert"]


@pytest.mark.parametrize("name", [name for name, table in TABLES.items() if table.comparison])
def test_every_comparison_can_be_asked_for(
    name: str, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    flags = ("--seeds", "7", "--dry-run", "--out", str(tmp_path))
    assert benchmark.main(["sweep", name, *flags]) == 0
    *_, last = capsys.readouterr().out.strip().splitlines()
    python, program, command, *arguments = shlex.split(last)
    assert (python, program) == ("python", "benchmark.py")
    module, settings, _ = benchmark._COMPARISONS[command]
    asked = tyro.cli(getattr(importlib.import_module(module), settings), args=arguments)
    assert asked.seed == 7
    # Every variant's run stands in it, and nothing is left to be filled in.
    for variant in TABLES[name].variants:
        assert f"runs/{variant.name}-7" in last
    assert "{" not in last.replace("{solution}", "")


def test_a_table_from_its_runs_and_what_becomes_of_a_kill(
    inside: list[list[str]], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    flags = ["sweep", "core-1", *SMALL, "--out", str(tmp_path), "--seeds"]
    assert benchmark.main([*flags, "0", "1"]) == 0
    assert [command[-1] for command in inside] == [
        str(tmp_path / "runs" / f"{name}-{seed}")
        for name in ("core-alice-bob", "core-alice-bob-sd-e2", "core-alice-bob-alone")
        for seed in (0, 1)
    ]
    found = json.loads((tmp_path / "core-1.json").read_text())["rows"]
    assert list(found) == ["Base", "CoRe", "SD-E2", "each for itself"]
    summaries = [
        json.loads((tmp_path / "runs" / f"core-alice-bob-{seed}" / "summary.json").read_text())
        for seed in (0, 1)
    ]
    for row, when in (("Base", "before"), ("CoRe", "after")):
        values = [one[when]["pass@1/alice"] for one in summaries]
        assert found[row]["alice @1"]["values"] == values
        assert found[row]["alice @1"]["mean"] == pytest.approx(sum(values) / 2)
    assert "In place of the paper's" in capsys.readouterr().out
    # Nothing is left; another seed is added to what is there.
    inside.clear()
    assert benchmark.main([*flags, "0", "1"]) == 0
    assert inside == []
    assert benchmark.main([*flags, "0", "1", "2", "--dry-run"]) == 0
    assert capsys.readouterr().out.count("--seed 2") == 3
    # Two runs of one seed pair up.
    first, second = (tmp_path / "runs" / f"core-alice-bob{end}-0" for end in ("", "-alone"))
    assert benchmark.main(["compare", "--resamples", "20", str(first), str(second)]) == 0
    assert "core-teaching, 4 problems, after training" in capsys.readouterr().out
    # One run was cut off after its last step, the other before its first checkpoint.
    for run in (first, second):
        (run / "summary.json").unlink()
    shutil.rmtree(second / "checkpoints")
    assert benchmark.main([*flags, "0"]) == 0
    assert inside[0] == ["train", "--resume", str(first)]
    assert inside[1][-2:] == ["--run-dir", str(second)]
    assert (second / "summary.json").is_file()
    # Other settings are not put beside these.
    assert benchmark.main(["sweep", "core-1", "--steps", "2", "--out", str(tmp_path)]) == 2
    assert "with another --steps; name another folder with --out" in capsys.readouterr().err


def test_a_failure_stops_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def run(command: list[str], check: bool) -> Any:
        return subprocess.CompletedProcess(command, 137)

    monkeypatch.setattr("coterie.comparison.sweep.subprocess.run", run)
    assert benchmark.main(["sweep", "core-1", "--out", str(tmp_path)]) == 2
    message = capsys.readouterr().err
    assert "ended with exit code 137; the same sweep goes on from there" in message


def test_a_table_from_comparisons(inside: list[list[str]], tmp_path: Path) -> None:
    flags = ["sweep", "eapo-8", "--out", str(tmp_path), "--seeds", "0", "1"]
    few = ("questions=4", "samples=1", "resamples=20")
    assert benchmark.main([*flags, "--compare", *few]) == 0
    assert [command[:2] for command in inside] == [["benchmark", "eapo"]] * 2
    found = json.loads((tmp_path / "eapo-8.json").read_text())["rows"]
    assert list(found) == ["Wrong experts", "Useless experts", "Experts"]
    for seed in (0, 1):
        results = json.loads((tmp_path / "eapo-8" / f"seed-{seed}" / "results.json").read_text())
        one = results["systems"]["useless"]
        assert found["Useless experts"]["avg@n"]["values"][seed] == one["avg@n"]["value"]
        assert found["Useless experts"]["tokens"]["values"][seed] == pytest.approx(one["tokens"])


@pytest.mark.parametrize(
    ("flags", "sentence"),
    [
        (["core-9"], "unknown table 'core-9'"),
        (["core-3"], "has no miniature"),
        (["core-1", "--seeds", "0", "0"], "none twice"),
        (["core-1", "--seeds", "-1"], "--seeds must be 0 to 2^63 - 1"),
        (["core-1", "--steps", "0"], "--steps must be at least 1"),
        (["core-1", "--train", "steps"], "write NAME=VALUE"),
        (["core-1", "--compare", "--questions=4"], "write NAME=VALUE"),
    ],
)
def test_mistakes(flags: list[str], sentence: str, capsys: Any, tmp_path: Path) -> None:
    if "--questions=4" in flags:
        flags = [*flags[:-2], "--compare=--questions=4"]
    assert benchmark.main(["sweep", *flags, "--out", str(tmp_path)]) == 2
    assert sentence in capsys.readouterr().err


def test_a_flag_that_train_lacks_is_refused_before_the_first_run(
    capsys: Any, tmp_path: Path, inside: list[list[str]]
) -> None:
    with pytest.raises(SystemExit) as left:
        benchmark.main(["sweep", "core-1", "--train", "bogus=1", "--out", str(tmp_path)])
    assert left.value.code == 2
    assert "--bogus" in capsys.readouterr().err
    assert inside == []
