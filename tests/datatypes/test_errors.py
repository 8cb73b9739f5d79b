"""What users write: paths and options; and the errors of their code."""

from pathlib import Path

import pytest

from coterie.datatypes import UserError, raised, read_options, user_path


def test_paths(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "file").touch()
    assert user_path("~/there/not") == tmp_path / "there" / "not"
    assert user_path(tmp_path / "file" / "below") == tmp_path / "file" / "below"
    assert user_path("runs/ä b") == Path("runs/ä b")


@pytest.mark.parametrize(
    ("text", "shown"), [("~nosuchuser/x", "'~nosuchuser/x'"), ("x" * 5000, f"'{'x' * 80}'...")]
)
def test_no_paths(text: str, shown: str) -> None:
    with pytest.raises(UserError) as refusal:
        user_path(text)
    assert str(refusal.value).startswith(f"{shown} cannot be the name of a file or folder here (")


def test_options() -> None:
    assert read_options("chains") == ("chains", {})
    assert read_options("a b ?x=1&y=p%26q=r") == ("a b", {"x": "1", "y": "p&q=r"})
    for text, sentence in [
        ("a?x", "write options as NAME=VALUE, joined by &, not 'x'"),
        ("a?", "write options as NAME=VALUE, joined by &, not ''"),
        ("a?x=1&x=2", "option 'x' is given twice; write each once"),
    ]:
        with pytest.raises(UserError) as refusal:
            read_options(text)
        assert str(refusal.value) == f"{text!r}: {sentence}"


def test_an_error_of_others_is_one_short_line() -> None:
    class Unprintable(Exception):
        def __str__(self) -> str:
            raise RuntimeError

    assert raised(ValueError("a\n  b" * 200))[:24] == "raised ValueError: a ba "
    assert len(raised(ValueError("a\n  b" * 200))) == len("raised ValueError: ") + 300
    assert raised(KeyError()) == "raised KeyError"
    assert raised(Unprintable()) == "raised Unprintable"
