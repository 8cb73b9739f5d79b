"""What the table of extras names, and how the core reaches it."""

import json
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path

import pytest

from coterie import __main__
from coterie.cli import extras
from coterie.cli.command_line import parse, read_run
from coterie.cli.plugins import load
from coterie.extras.cluster.settings import ClusterSettings
from coterie.training.hosts import lives_elsewhere

ROOT = Path(__file__).resolve().parents[2]


def paths() -> Iterator[str]:
    """Every module, and every ``module:attribute``, of the table."""
    for program in extras.PROGRAMS.values():
        yield f"{program.module}:main"
    for comparison in extras.COMPARISONS.values():
        yield f"{comparison.module}:{comparison.settings}"
        yield f"{comparison.module}:{comparison.run}"
    for kind in extras.ENVIRONMENT_KINDS.values():
        if find_spec(kind.package):
            yield f"{kind.module}:spec"
    yield from extras.SETTINGS.values()
    yield from extras.INSTEAD_OF_TRAINING.values()
    yield from (*extras.HOSTS.values(), extras.SINK, *extras.CHECKS)
    yield f"{extras.PROGRAM_GRADER}:grader_of"


@pytest.mark.parametrize("path", sorted(set(paths())))
def test_every_entry_of_the_table_can_be_loaded(path: str) -> None:
    assert load(path, "a line of the table")


def test_the_table_names_every_folder() -> None:
    folders = {path.parent.name for path in (ROOT / "extras").glob("*/__init__.py")}
    modules = [kind.module for kind in extras.ENVIRONMENT_KINDS.values()]
    assert {path.split(".")[2] for path in [*paths(), *modules]} == folders


def test_the_table_imports_no_extra() -> None:
    code = (
        "import sys, coterie.cli.extras\nprint([m for m in sys.modules if 'coterie.extras' in m])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert done.stdout == "[]\n"


def test_each_program_of_the_core_is_reached(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert __main__.main(["--help"]) == 0
    shown = capsys.readouterr().out
    for program in ("train", "benchmark", "report", "check", "cache"):
        assert f"\n  {program} " in shown
    assert __main__.main(["benchmark", "--help"]) == 0
    assert "usage: coterie benchmark" in capsys.readouterr().out
    assert __main__.main(["report", str(tmp_path / "none")]) == 2
    assert capsys.readouterr().err.startswith("coterie report: ")
    assert __main__.main(["check", "nobody"]) == 2
    assert "unknown env 'nobody'" in capsys.readouterr().err
    assert __main__.main(["train", "--env", "nobody"]) == 2


def test_help_shows_the_flags_of_extras(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        parse(["--env", "core-teaching", "--help-all"])
    shown = capsys.readouterr().out.replace(",", " ")
    for flag in ("doctor", "plan", "card", "track", "cluster.address", "scoring.programs"):
        assert f" --{flag} " in shown
    assert " --agents.bob.engine-replicas " in shown


def test_each_program_is_reached(capsys: pytest.CaptureFixture[str]) -> None:
    assert __main__.main(["--help"]) == 0
    shown = capsys.readouterr().out
    for program in ("chat", "push", "serve"):
        assert f"\n  {program} " in shown
        with pytest.raises(SystemExit):
            __main__.main([program, "--help"])
    assert "usage: coterie serve" in capsys.readouterr().out


def test_an_unknown_program_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert __main__.main(["fly"]) == 2
    known = "train, benchmark, report, check, cache, chat, push, serve"
    assert capsys.readouterr().err == f"coterie: unknown program 'fly'; known: {known}\n"


def stored(tmp_path: Path, *flags: str) -> Path:
    """A run's directory with its settings."""
    config = parse(["--steps", "3", *flags]).plain()
    (tmp_path / "config.json").write_text(json.dumps(config))
    return tmp_path


def test_a_run_is_read_as_it_was_written(tmp_path: Path) -> None:
    run = stored(tmp_path, "--cluster.cpus", "0.5", "--track", "wandb")
    assert "cluster" in json.loads((run / "config.json").read_text())
    settings = read_run(run)
    assert settings == parse(["--steps", "3", "--cluster.cpus", "0.5", "--track", "wandb"])
    assert not lives_elsewhere(settings)


def test_resume_shows_the_settings_that_may_change(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = stored(tmp_path)
    with pytest.raises(SystemExit):
        parse(["--resume", str(run), "--help"])
    shown = capsys.readouterr().out
    assert "Continue a run exactly where its last checkpoint stands." in shown
    assert "Training steps in all. (default: 3)" in shown
    for flag in ("--cluster.address ", "--agents.bob.engine-replicas ", "--steps INT"):
        assert flag in shown


def test_sections_are_typed() -> None:
    settings = parse(["--cluster.cpus", "0.5"])
    assert settings.section(ClusterSettings) == ClusterSettings(cpus=0.5)
    assert replace(settings, cluster=ClusterSettings()) == parse([])
