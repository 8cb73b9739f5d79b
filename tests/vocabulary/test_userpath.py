"""Names that no file can have are refused; all others are paths, there or not."""

from pathlib import Path

import pytest

from vocabulary import UserError, user_path


def test_paths(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "file").touch()
    assert user_path("~/there/not") == tmp_path / "there" / "not"
    assert user_path(tmp_path / "file" / "below") == tmp_path / "file" / "below"
    assert user_path("runs/ä b") == Path("runs/ä b")


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("~nosuchuser/x", "'~nosuchuser/x'"),
        ("x" * 5000, f"'{'x' * 80}'..."),
        ("a\0b.jsonl", r"'a\x00b.jsonl'"),
        ("\ud800.jsonl", r"'\ud800.jsonl'"),
    ],
)
def test_no_paths(text: str, shown: str) -> None:
    with pytest.raises(UserError) as told:
        user_path(text)
    assert str(told.value).startswith(f"{shown} cannot be the name of a file or folder here (")
