"""Mistakes on the command lines of what this extra adds, in one line each."""

import pytest

from coterie import __main__, train


@pytest.mark.parametrize(
    ("argv", "sentence"),
    [
        ("train --plan --doctor", "--plan needs no model, --doctor runs the models"),
        ("train --print-config --plan", "--print-config cannot be combined with --plan"),
        ("train --print-config --doctor", "--print-config cannot be combined with --doctor"),
        ("coterie push", "missing: The run's directory, such as runs/x; ORG/NAME on the hub (op"),
        ("coterie serve x --prot 1", "coterie serve: unknown option --prot; did you mean --port"),
        ("coterie chat", "missing: The run's directory, such as runs/x (options: coterie chat"),
        ("coterie chat x --step -1", "--step is -1; it must be at least 0"),
        ("coterie push a b --public --public", ": --public is given twice; write it once"),
    ],
)
def test_a_mistake_is_one_line(
    argv: str, sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    program, *words = argv.split()
    assert (train if program == "train" else __main__).main(words) == 2
    said = capsys.readouterr()
    assert (said.out, said.err.count("\n")) == ("", 1)
    assert sentence in said.err


def test_help_texts_fit_a_terminal(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    for program in ("chat", "push", "serve"):
        with pytest.raises(SystemExit):
            __main__.main([program, "--help"])
        shown = capsys.readouterr().out
        assert f"usage: coterie {program} " in shown
        assert [line for line in shown.splitlines() if len(line) > 80] == []
