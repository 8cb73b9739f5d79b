"""What users write: paths, options, and values of files against the types of fields."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, Protocol

import pytest

from coterie.datatypes import UserError, check_fields, fits, read_options, user_path


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
    with pytest.raises(UserError) as refusal:
        user_path(text)
    assert str(refusal.value).startswith(f"{shown} cannot be the name of a file or folder here (")


class Speaks(Protocol):
    def speak(self) -> str: ...


@pytest.mark.parametrize(
    ("hint", "right", "wrong"),
    [
        (str, ["", "x"], [5, None, ("x",)]),
        (int, [0, -5], [0.5, "1", True, None]),
        (float, [0.5, 2], ["x", True, None]),
        (bool, [True], [1, 0, "true"]),
        (None, [None], [0]),
        (int | None, [None, 3], ["3"]),
        (Literal["a", 1], ["a", 1], ["b", True, ("a",)]),
        (tuple[str, ...], [(), ("a", "b")], ["ab", ("a", 1), None]),
        (tuple[float, int], [(0.5, 1)], [(1,), (1, 2, 3), (1, 0.5)]),
        (Mapping[str, int], [{}, {"a": 1}], [{"a": "1"}, (), None]),
        (dict[str, float | None], [{"a": None}], [{"a": "x"}, 5]),
        (list[int], [[1]], [["x"], (1,)]),
        (Annotated[int, "seconds"], [1], ["1"]),
        (Path, [Path("x")], ["x"]),
        (Any, [None, 5, ()], []),
        (Speaks, [5], []),
    ],
)
def test_what_fits(hint: Any, right: list[Any], wrong: list[Any]) -> None:
    assert all(fits(value, hint) for value in right)
    assert not any(fits(value, hint) for value in wrong)


@dataclass
class Timer:
    seconds: float | None = None
    names: tuple[str, ...] = ()
    direction: Literal["up", "down"] = "up"
    parts: Mapping[str, int] | None = None


@pytest.mark.parametrize(
    ("values", "sentence"),
    [
        ({"seconds": "x"}, "clock.seconds is 'x'; it must be a number or null"),
        ({"names": "ab"}, "clock.names is 'ab'; it must be a list, each entry text"),
        ({"direction": "side"}, "clock.direction is 'side'; it must be one of up, down"),
        ({"parts": 5}, "clock.parts is 5; it must be an object or null"),
    ],
)
def test_the_sentence(values: Mapping[str, Any], sentence: str) -> None:
    check_fields(Timer, {"seconds": 1, "stranger": object()})
    with pytest.raises(UserError) as refusal:
        check_fields(Timer, values, at="clock.")
    assert str(refusal.value) == sentence


def test_a_value_of_any_depth_can_be_shown() -> None:
    deep: Any = ()
    for _ in range(100_000):
        deep = (deep,)
    with pytest.raises(UserError, match=r"seconds is .{1,80}; it must be a number"):
        check_fields(Timer, {"seconds": deep})


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
