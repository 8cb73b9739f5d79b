"""Help texts as a terminal of 80 columns shows them."""

import contextlib
import inspect
import re
from dataclasses import dataclass

import pytest

from coterie import benchmark, train
from coterie.__main__ import main
from coterie.cli.flags import parse_flags


def helped(monkeypatch, capsys, run, argv):
    monkeypatch.setenv("COLUMNS", "80")
    with contextlib.suppress(SystemExit):
        run(argv)
    return capsys.readouterr().out


@pytest.mark.parametrize(
    ("run", "argv"),
    [
        (main, []),
        (main, ["check", "--help"]),
        (main, ["cache", "--help"]),
        (train.main, ["--help"]),
        (train.main, ["--env", "core-teaching", "--help"]),
        (train.main, ["--env", "core-teaching", "--help-all"]),
        (train.main, ["--env", "eapo-consultation", "--algo", "dapo", "--help"]),
        (benchmark.main, ["--help"]),
        (benchmark.main, ["suite", "--help"]),
    ],
)
def test_no_line_is_longer_no_default_is_empty_and_no_mark_is_left(monkeypatch, capsys, run, argv):
    text = helped(monkeypatch, capsys, run, argv)
    assert [line for line in text.splitlines() if len(line) > 80] == []
    assert re.findall(r"\(default: (?:None|''|)\)", text) == []
    assert re.findall(r"``|:class:", text) == []


def test_paragraphs_are_filled_and_tell_a_default_once(monkeypatch, capsys):
    text = helped(monkeypatch, capsys, train.main, ["--env", "core-teaching", "--help"])
    # Where the source breaks the line, after "to", the terminal does not.
    assert "tokens, to compare systems" in text
    directory = text[text.index("--run-dir") : text.index("--checkpoint-every")]
    assert directory.count("efault") == 1


@dataclass(frozen=True)
class Group:
    """A group of settings."""

    size: int = 1
    """How many."""


@dataclass(frozen=True)
class Grouped:
    """Settings in groups."""

    group: Group = Group()
    """All of them."""


def test_sources_are_read_for_a_help_page_alone(monkeypatch, capsys):
    """Which takes longer than reading the flags."""
    read = []
    getsource = inspect.getsource
    monkeypatch.setattr(inspect, "getsource", lambda of: read.append(of) or getsource(of))
    assert parse_flags(Grouped, ["--group.size", "2"], prog="x").group.size == 2
    assert read == []
    with pytest.raises(SystemExit):
        parse_flags(Grouped, ["--help"], prog="x")
    assert Grouped in read
    text = capsys.readouterr().out
    assert "All of them." in text
    assert "How many." in text
