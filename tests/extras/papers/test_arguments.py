"""Command lines of the papers' comparisons: mistakes in one line, help that fits a terminal."""

import pytest

from coterie import __main__, benchmark
from coterie.extras.papers import EXTRA

RATES = "--vllm.* and --agents.ROLE.engine-device need --engine"


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ("distill", "missing: --out (Folder of the trained policy; must be new or"),
        ("eapo --foo 3", "unknown option --foo (options: python benchmark.py eapo"),
        ("eapo --top-p 7", "--top-p must be above 0 and at most 1"),
        ("corea --temperature nan", "--temperature is not a number (nan)"),
        ("sweep core-55", "unknown table 'core-55'; did you mean 'core-5'"),
        ("corea --vllm.gpu-memory 0.3", RATES),
        ("eapo --vllm.gpu-memory 0.3", RATES),
        ("corea --engine vllm --vllm.gpu-memory 3", "--vllm.gpu-memory is a share"),
        ("eapo --engine vllm --vllm.gpu-memory 3", "--vllm.gpu-memory is a share"),
    ],
)
def test_a_mistake_is_one_line(
    words: str, sentence: str, file_engine: object, capsys: pytest.CaptureFixture[str]
) -> None:
    assert benchmark.main(words.split()) == 2
    said = capsys.readouterr()
    assert (said.out, said.err.count("\n")) == ("", 1)
    assert sentence in said.err


@pytest.mark.parametrize("name", EXTRA.comparisons)
def test_help_fits_a_terminal_and_names_the_program(
    name: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    with pytest.raises(SystemExit):
        __main__.main(["benchmark", name, "--help"])
    shown = capsys.readouterr().out
    assert f"usage: coterie benchmark {name}" in shown
    assert [line for line in shown.splitlines() if len(line) > 80] == []
    assert "(default: None)" not in shown
