"""``--agents.ROLE.system TEXT|@FILE``: as a flag, in a file of settings, printed, and stored."""

import json
from pathlib import Path
from typing import Any

import pytest

from coterie import train
from coterie.cli.command_line import parse
from coterie.cli.text_or_file import text_or_file
from coterie.datatypes import UserError
from coterie.training.config.train_settings import restore

FLAG = "--agents.alice.system"


@pytest.fixture
def clerk(tmp_path: Path) -> Path:
    file = tmp_path / "clerk.txt"
    file.write_text('\ufeffYou are a "clerk".\nBe → brief.\n', encoding="utf-8")
    return file


SAID = 'You are a "clerk".\nBe → brief.'


def system_of(argv: list[str]) -> str:
    return parse(argv).agents["alice"].system


def test_a_flag_is_a_text_or_the_text_of_a_file(clerk: Path) -> None:
    assert system_of([]) == ""
    assert system_of([FLAG, " Be brief. "]) == "Be brief."
    assert system_of([FLAG, f"@{clerk}"]) == SAID


def test_config_json_holds_the_text_itself(clerk: Path) -> None:
    settings = parse([FLAG, f"@{clerk}"])
    clerk.unlink()
    plain = json.loads(json.dumps(settings.plain()))
    assert plain["agents"]["alice"]["system"] == SAID
    assert restore(plain) == settings


def test_a_file_of_settings_may_name_a_file_and_is_printed_with_the_text(
    clerk: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config = tmp_path / "run.toml"
    config.write_text(f'[agents.alice]\nsystem = "@{clerk}"\n', encoding="utf-8")
    assert system_of(["--config", str(config)]) == SAID
    with pytest.raises(SystemExit):
        parse(["--config", str(config), "--print-config"])
    clerk.unlink()
    config.write_text(capsys.readouterr().out, encoding="utf-8")
    assert system_of(["--config", str(config)]) == SAID


@pytest.mark.parametrize("suffix", [".toml", ".yaml"])
def test_a_file_of_settings_names_files_beside_itself(
    suffix: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, refused: Any
) -> None:
    folder = tmp_path / "settings"
    (folder / "texts").mkdir(parents=True)
    (folder / "texts" / "clerk.txt").write_text("Beside the settings.")
    (tmp_path / "texts").mkdir()
    (tmp_path / "texts" / "clerk.txt").write_text("Where the run starts.")
    config = folder / f"run{suffix}"

    def write(name: str) -> None:
        toml = f'[agents.alice]\nsystem = "@{name}"\n'
        yaml = f'agents: {{alice: {{system: "@{name}"}}}}\n'
        config.write_text(toml if suffix == ".toml" else yaml)

    write("texts/clerk.txt")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(folder / "texts"))
    assert system_of(["--config", f"settings/run{suffix}"]) == "Beside the settings."
    # A flag is relative to where it is typed.
    flag = [FLAG, "@texts/clerk.txt"]
    assert system_of(["--config", f"settings/run{suffix}", *flag]) == "Where the run starts."
    write("~/clerk.txt")
    assert system_of(["--config", f"settings/run{suffix}"]) == "Beside the settings."
    write("nowhere.txt")
    sentence = refused(train.main, "--config", f"settings/run{suffix}")
    assert f"the file {str(Path('settings/nowhere.txt'))!r} cannot be read" in sentence


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (None, "cannot be read (No such file or directory); write @FILE"),
        (b" \n", "holds no text"),
        (b"\xff\xfe\x00", "is not UTF-8 text"),
        (b"@home", "begins with @"),
    ],
)
def test_a_file_without_a_text_is_refused(
    content: bytes | None, why: str, tmp_path: Path, refused: Any
) -> None:
    file = tmp_path / "file.txt"
    if content is not None:
        file.write_bytes(content)
    with pytest.raises(UserError):
        text_or_file(f"@{file}")
    sentence = refused(train.main, FLAG, f"@{file}")
    assert FLAG in sentence
    assert why in sentence
    config = tmp_path / "run.toml"
    config.write_text(f'[agents.alice]\nsystem = "@{file}"\n', encoding="utf-8")
    assert f"agents.alice.system: the {'text' if 'begins' in why else 'file'}" in refused(
        train.main, "--config", config
    )
