"""What a field takes, and the sentence for a value that it does not take."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any, Literal, Protocol

import pytest
from annotated_types import Ge, Gt, Interval, Le, MinLen

from coterie.datatypes import (
    UserError,
    Validated,
    check_fields,
    fits,
    named_below,
    unvalidated,
    validate,
)

INF, NAN = math.inf, math.nan


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
def test_types(hint: Any, right: list[Any], wrong: list[Any]) -> None:
    assert all(fits(value, hint) for value in right)
    assert not any(fits(value, hint) for value in wrong)


Positive = Annotated[float, Gt(0)]


@dataclass(frozen=True)
class Lap(Validated):
    count: Annotated[int, Ge(1)] = 1
    seed: Annotated[int, Interval(ge=0, lt=2**63)] = 0
    share: Annotated[float, Interval(ge=0, le=1)] = 0.5
    rate: Positive | None = None
    decays: Annotated[tuple[float, float], Interval(ge=0, lt=1)] = (0.9, 0.9)
    names: Annotated[tuple[str, ...], MinLen(1)] = ("a",)
    deadline: Annotated[float, Gt(0), Le(math.inf)] = 1.0
    number: float = 0.0
    whole: int = 0
    shares: tuple[Annotated[float, Ge(0)], ...] = ()
    by_name: Mapping[str, float] = field(default_factory=dict)
    way: Literal["up", "down"] = "up"

    def check(self) -> None:
        if self.way == "down" and self.count > 1:
            raise UserError("down goes once")


@dataclass(frozen=True)
class Race:
    """Not ours: it says nothing of validation."""

    best_lap: Lap = field(default_factory=Lap)
    laps: Mapping[str, Lap] = field(default_factory=dict)
    any_lap: Any = None
    length: Annotated[int, Ge(1)] = 1


@pytest.mark.parametrize(
    ("values", "sentence"),
    [
        ({"count": 0}, "count is 0; it must be at least 1"),
        ({"count": 2**31}, "count is 2147483648; it must be at least 1 and below 2^31"),
        ({"count": "x"}, "count is 'x'; it must be a whole number"),
        ({"count": True}, "count is True; it must be a whole number"),
        ({"seed": -1}, "seed is -1; it must be at least 0 and below 2^63"),
        ({"share": 1.5}, "share is 1.5; it must be 0 to 1"),
        ({"share": NAN}, "share is nan; it must be 0 to 1"),
        ({"rate": 0}, "rate is 0; it must be above 0"),
        ({"rate": INF}, "rate is inf; it must be above 0 and finite"),
        ({"rate": "x"}, "rate is 'x'; it must be a number or null"),
        ({"decays": (0.9, 1.0)}, "decays is (0.9, 1.0); it must be at least 0 and below 1"),
        ({"names": ()}, "names is (); it must be a list with at least one entry"),
        ({"names": "ab"}, "names is 'ab'; it must be a list, each entry text"),
        ({"deadline": NAN}, "deadline is nan; it must be above 0 and finite"),
        ({"number": -INF}, "number is -inf; it must be finite"),
        ({"whole": -(2**31)}, "whole is -2147483648; it must be above -2^31"),
        ({"shares": (1, -0.5)}, "shares is (1, -0.5); it must be at least 0"),
        ({"by_name": {"a": NAN}}, "by_name is {'a': nan}; it must be finite"),
        ({"by_name": 5}, "by_name is 5; it must be an object"),
        ({"way": "side"}, "way is 'side'; it must be one of up, down"),
        ({"way": "down", "count": 2}, "down goes once"),
    ],
)
def test_the_sentence(values: dict[str, Any], sentence: str) -> None:
    with pytest.raises(UserError) as refusal:
        Lap(**values)
    assert str(refusal.value) == sentence


def test_what_is_within_the_bounds() -> None:
    Lap(seed=2**62, share=1, rate=None, deadline=INF, decays=(0, 0.5), number=-1e300)
    Lap(way="down")


@pytest.mark.parametrize(
    ("changes", "name"),
    [
        ({"best_lap": {"count": 0}}, "--best-lap.count"),
        ({"laps": {"a": {"by_name": {"b": NAN}}}}, "--laps.a.by-name"),
        ({"any_lap": {"count": 0}}, "--any-lap.count"),
    ],
)
def test_a_tree_names_the_whole_path(changes: dict[str, Any], name: str) -> None:
    with unvalidated():
        laps = {key: Lap(**values) for key, values in changes.pop("laps", {}).items()}
        race = replace(Race(laps=laps), **{key: Lap(**value) for key, value in changes.items()})
    with pytest.raises(UserError, match=f"^{name} is"):
        validate(race, "--")
    with pytest.raises(UserError, match=f"^{name.removeprefix('--').replace('-', '_')} is"):
        validate(race)


def test_bounds_hold_where_a_class_validates_nothing_itself() -> None:
    with pytest.raises(UserError, match=r"^length is 0; it must be at least 1"):
        validate(Race(length=0))


def test_values_that_are_not_yet_settings() -> None:
    check_fields(Lap, {"count": 2, "stranger": object()})
    with pytest.raises(UserError, match=r"^clock\.count is 0; it must be at least 1"):
        check_fields(Lap, {"count": 0}, at="clock.")


@pytest.mark.parametrize(
    ("at", "sentence"),
    [
        ("", "algo.scale none, or --algo.ddof 0, or --agents.ROLE.chat; not an.algo.x"),
        ("algo.", "algo.scale none, or algo.ddof 0, or --agents.ROLE.chat; not an.algo.x"),
        (
            "--algo.",
            "--algo.scale none, or --algo.ddof 0, or --agents.ROLE.chat; not an.algo.x",
        ),
        (
            "--agents.bob.algo.distillation.",
            "--agents.bob.algo.scale none, or --agents.bob.algo.ddof 0, or --agents.bob.chat; "
            "not an.algo.x",
        ),
        (
            "agents.bob.algo.",
            "agents.bob.algo.scale none, or agents.bob.algo.ddof 0, or --agents.bob.chat; "
            "not an.algo.x",
        ),
        (
            "--agents.bob.",
            "algo.scale none, or --algo.ddof 0, or --agents.bob.chat; not an.algo.x",
        ),
    ],
)
def test_a_sentence_names_settings_where_they_are_written(at: str, sentence: str) -> None:
    written = "algo.scale none, or --algo.ddof 0, or --agents.ROLE.chat; not an.algo.x"
    with pytest.raises(UserError) as refusal, named_below(at):
        raise UserError(written)
    assert str(refusal.value) == sentence


def test_a_check_names_its_settings_where_they_are_written() -> None:
    @dataclass(frozen=True)
    class Clock(Validated):
        ticks: int = 1

        def check(self) -> None:
            if self.ticks < 0:
                raise UserError("set clock.ticks, with --agents.ROLE.clock.hand")

    @dataclass(frozen=True)
    class Role:
        clock: Clock

    @dataclass(frozen=True)
    class Team:
        agents: Mapping[str, Role]

    with unvalidated():
        team = Team({"bob": Role(Clock(-1))})
    with pytest.raises(UserError, match=r"^set clock\.ticks, with --agents\.ROLE\.clock"):
        validate(Clock(-1))
    with pytest.raises(UserError, match=r"^set --agents\.bob\.clock\.ticks, with --agents\.bob"):
        validate(team, "--")
