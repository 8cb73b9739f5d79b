"""What the extras of this repository register, and what is said where one of them is not here."""

import json
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from dataclasses import replace
from importlib.machinery import ModuleSpec
from importlib.metadata import EntryPoint
from importlib.util import find_spec
from pathlib import Path

import pytest

from coterie import __main__, benchmark, train
from coterie.cli import extras, missing_extras
from coterie.cli.command_line import parse, read_run
from coterie.datatypes import UserError
from coterie.training.config import train_settings
from coterie.training.config.missing import IDLE
from coterie.training.hosts import hosts, lives_elsewhere

ROOT = Path(__file__).resolve().parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
REGISTERED = PROJECT["entry-points"]["coterie.extras"]


def forget() -> None:
    """Have the extras read again."""
    for kept in (extras.extras, train_settings.sections, train_settings.settings_class):
        kept.cache_clear()


@pytest.fixture(autouse=True)
def fresh() -> Iterator[None]:
    forget()
    yield
    forget()


@pytest.fixture
def no_extras(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if the folder extras/ were gone."""
    monkeypatch.setattr(extras, "_is_here", lambda module: not module.startswith("coterie."))
    forget()


def test_every_folder_is_registered_and_the_core_knows_what_it_adds() -> None:
    folders = {path.parent.name for path in (ROOT / "extras").glob("*/__init__.py")}
    assert (
        folders == set(REGISTERED) == set(missing_extras.ADDED) == {e.name for e in extras.extras()}
    )
    for extra in extras.extras():
        added = {*extra.programs, *extra.comparisons, *extra.environments, *extra.settings}
        assert added == set(missing_extras.ADDED[extra.name])
        assert extra.settings.keys() <= IDLE.keys()


def test_idle_settings_of_a_section_are_its_defaults() -> None:
    for name, idle in IDLE.items():
        default = train_settings.sections()[name]()
        assert {setting: getattr(default, setting) for setting in idle} == idle


def test_registering_imports_no_more_than_the_words_of_the_core() -> None:
    code = (
        "import sys\nfrom coterie.cli.extras import extras\nassert extras()\n"
        "print(sorted(m for m in sys.modules if m.startswith('coterie.')\n"
        "    and not m.startswith('coterie.datatypes')), 'torch' in sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True
    )
    names = sorted(["coterie.extras", *(f"coterie.extras.{name}" for name in REGISTERED)])
    assert done.stdout.strip() == f"{names} False"


@pytest.mark.parametrize("noted", [{}, {"gone": "coterie.extras.gone:EXTRA"}])
def test_a_checkout_whose_installation_is_older(
    noted: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    entries = [EntryPoint(name, path, "coterie.extras") for name, path in noted.items()]
    monkeypatch.setattr(extras.Plugins, "entries", lambda self: entries)
    assert {extra.name for extra in extras.extras()} == set(REGISTERED)


def test_an_installation_without_a_checkout(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    entries = [EntryPoint("ops", REGISTERED["ops"], "coterie.extras")]
    monkeypatch.setattr(extras.Plugins, "entries", lambda self: entries)
    monkeypatch.setattr(extras, "_PROJECT", tmp_path / "pyproject.toml")
    assert [extra.name for extra in extras.extras()] == ["ops"]


def test_an_extra_of_another_copy_of_the_package_is_not_here(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """An editable installation finds what this tree lacks in the tree that was installed."""

    class Installed:
        @staticmethod
        def find_spec(name: str, *_: object) -> ModuleSpec | None:
            return ModuleSpec(name, None) if name == "coterie.extras.gone" else None

    monkeypatch.setattr(sys, "meta_path", [*sys.meta_path, Installed])
    monkeypatch.setitem(REGISTERED, "gone", "coterie.extras.gone:EXTRA")
    assert find_spec("coterie.extras.gone") is not None
    entries = [EntryPoint(name, path, "coterie.extras") for name, path in REGISTERED.items()]
    monkeypatch.setattr(extras, "_entries", lambda: entries)
    assert {extra.name for extra in extras.extras()} == set(REGISTERED) - {"gone"}


def test_what_is_registered_must_be_an_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    entries = [EntryPoint("mine", "json:loads", "coterie.extras")]
    monkeypatch.setattr(extras, "_entries", lambda: entries)
    with pytest.raises(UserError, match=r"extra 'mine' \(entry point json:loads\) must be a "):
        extras.extras()


def test_flags_are_there_where_the_extra_is(capsys: pytest.CaptureFixture[str]) -> None:
    shown = shown_help(capsys)
    for flag in FLAGS:
        assert f" --{flag} " in shown.replace(",", " ")


FLAGS = (
    *("doctor", "plan", "card", "track", "cluster.address"),
    *("agents.bob.engine-replicas", "agents.alice.learner-devices"),
)


def shown_help(capsys: pytest.CaptureFixture[str]) -> str:
    with pytest.raises(SystemExit):
        parse(["--env", "core-teaching", "--help-all"])
    return capsys.readouterr().out


@pytest.mark.usefixtures("no_extras")
def test_help_without_extras_shows_none_of_their_flags(capsys: pytest.CaptureFixture[str]) -> None:
    shown = shown_help(capsys)
    assert " --steps " in shown
    assert " --agents.bob.engine-device " in shown
    assert not [flag for flag in FLAGS if f"--{flag}" in shown]


@pytest.mark.usefixtures("no_extras")
@pytest.mark.parametrize(
    ("argv", "flag", "extra"),
    [
        (["--doctor"], "--doctor", "ops"),
        (["--plan", "--card", "24"], "--plan", "ops"),
        (["--track", "wandb"], "--track", "ops"),
        (["--cluster.address", "local"], "--cluster.address", "cluster"),
        (["--agents.bob.engine-replicas", "2"], "--agents.bob.engine-replicas", "cluster"),
        (["--agents.bob.learner-devices=2"], "--agents.bob.learner-devices", "cluster"),
        (["--resume", "x", "--cluster.cpus", "2"], "--cluster.cpus", "cluster"),
    ],
)
def test_a_flag_of_an_extra_that_is_not_here(
    argv: list[str], flag: str, extra: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert train.main(["--steps", "1", *argv]) == 2
    said = capsys.readouterr().err
    assert said.startswith(f"train.py: {flag} needs the extra {extra!r}, which is not here: ")
    assert f"get the folder extras/{extra} of the repository back" in said
    assert said.count("\n") == 1


def test_each_program_is_reached(capsys: pytest.CaptureFixture[str]) -> None:
    assert __main__.main(["--help"]) == 0
    shown = capsys.readouterr().out
    for program in ("doctor", "push", "serve"):
        assert f"\n  {program} " in shown
        with pytest.raises(SystemExit):
            __main__.main([program, "--help"])
    assert "usage: coterie serve" in capsys.readouterr().out
    assert __main__.main(["doctor", "--env", "nobody"]) == 2


@pytest.mark.usefixtures("no_extras")
def test_programs_of_an_extra_that_is_not_here(capsys: pytest.CaptureFixture[str]) -> None:
    for program in ("doctor", "push", "serve"):
        assert __main__.main([program]) == 2
        said = capsys.readouterr().err
        assert said.startswith(f"coterie: coterie {program} needs the extra 'ops', which is not")
    assert __main__.main(["fly"]) == 2
    assert "unknown program 'fly'; known: train, benchmark, report, check, cache\n" in (
        capsys.readouterr().err
    )
    assert __main__.main(["--help"]) == 0
    assert "serve" not in capsys.readouterr().out


@pytest.mark.usefixtures("no_extras")
def test_a_kind_of_environments_and_a_comparison_of_an_extra_that_is_not_here(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(missing_extras, "ADDED", {"toys": ("toy", "contest")})
    assert train.main(["--env", "toy:chess"]) == 2
    assert "env 'toy:chess' needs the extra 'toys', which is not here" in capsys.readouterr().err
    assert benchmark.main(["contest"]) == 2
    assert "benchmark.py contest needs the extra 'toys'" in capsys.readouterr().err


def stored(tmp_path: Path, *flags: str) -> Path:
    """A run's directory as it is written where all extras are."""
    config = parse(["--steps", "3", *flags]).plain()
    (tmp_path / "config.json").write_text(json.dumps(config))
    return tmp_path


def test_a_run_is_read_as_it_was_written(tmp_path: Path) -> None:
    run = stored(tmp_path, "--cluster.cpus", "0.5", "--track", "wandb")
    assert "cluster" in json.loads((run / "config.json").read_text())
    settings = read_run(run)
    assert settings == parse(["--steps", "3", "--cluster.cpus", "0.5", "--track", "wandb"])
    assert not lives_elsewhere(settings)
    assert len(hosts()) == 1


def test_what_may_change_when_a_run_goes_on(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], request: pytest.FixtureRequest
) -> None:
    run = stored(tmp_path)

    def shown() -> str:
        with pytest.raises(SystemExit):
            parse(["--resume", str(run), "--help"])
        return capsys.readouterr().out

    movable = ("--cluster.address ", "--agents.bob.engine-replicas ")
    assert all(flag in shown() for flag in (*movable, "--steps INT"))
    request.getfixturevalue("no_extras")
    assert "Continue a run exactly where its last checkpoint stands." in (text := shown())
    assert "Training steps in all. (default: 3)" in text
    assert not any(flag in text for flag in movable)


@pytest.mark.parametrize(
    ("flags", "sentence"),
    [
        ((), None),
        (("--cluster.cpus", "2"), None),  # does nothing by itself
        (("--cluster.address", "auto"), "--cluster.address auto needs the extra 'cluster'"),
        (("--agents.bob.engine-replicas", "1"), "--agents.ROLE.engine-replicas needs the extra"),
        (("--track", "trackio"), "--track needs the extra 'ops', which is not here"),
    ],
)
def test_a_run_that_needs_an_extra_that_is_not_here(
    flags: tuple[str, ...], sentence: str | None, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    run = stored(tmp_path, *flags)
    request.getfixturevalue("no_extras")
    if sentence is None:
        assert read_run(run) == parse(["--steps", "3"])
        return
    with pytest.raises(missing_extras.MissingExtra) as refused:
        read_run(run)
    assert str(refused.value).startswith(sentence)


def test_a_file_of_settings(tmp_path: Path, request: pytest.FixtureRequest) -> None:
    file = tmp_path / "run.toml"
    file.write_text('[cluster]\naddress = "none"\n')
    assert parse(["--config", str(file)]) == parse([])
    request.getfixturevalue("no_extras")
    assert parse(["--config", str(file)]) == parse([])
    file.write_text('[cluster]\naddress = "local"\n')
    with pytest.raises(UserError, match=r"--cluster.address local needs the extra 'cluster'"):
        parse(["--config", str(file)])


def test_sections_are_typed(request: pytest.FixtureRequest) -> None:
    from coterie.extras.cluster.settings import ClusterSettings

    settings = parse(["--cluster.cpus", "0.5"])
    assert settings.section(ClusterSettings) == ClusterSettings(cpus=0.5)
    changed = replace(settings, cluster=ClusterSettings())
    assert changed == parse([])
    request.getfixturevalue("no_extras")
    assert "cluster" not in parse([]).plain()
