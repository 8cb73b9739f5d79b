"""How far all settings of a run travel, and that what only a cluster needs stays out."""

import sys
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

import pytest

from settings_route import Route, measure, traced


@dataclass
class Everything:
    count: int = 1


CODE = """
class Holder:
    def __init__(self, settings): self.settings = settings
    def look(self): return self.settings.count
def read(settings): return settings.count
def add(count): return count + 1
"""


def module(name: str) -> ModuleType:
    made = ModuleType(name)
    exec(CODE, made.__dict__)
    return made


def test_stays_rooms_and_returns_of_a_made_up_route() -> None:
    hall, room, elsewhere = module("house.hall"), module("house.room"), module("other.hall")
    settings = Everything()
    before = sys.getprofile()
    with traced(Everything, "house") as route:
        hall.read(settings)
        hall.add(settings.count)  # a part of them is not all of them
        hall.read(settings)  # in a row: the same stay
        holder = room.Holder(settings)
        elsewhere.read(settings)  # of another package
        hall.read(settings=settings)
        holder.look()  # its self holds them
    assert sys.getprofile() is before
    # hall, room, hall, room: two rooms, four stays, and so two returns.
    assert route == Route(["house.hall", "house.room", "house.hall", "house.room"])
    assert (route.rooms, route.returns) == (2, 2)


def test_a_run_shows_all_settings_to_few(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    route = measure(tmp_path / "run")["run"]
    assert route.rooms <= 15
    assert route.returns <= 6
    # The loop passes them on, and then has only what the runtime built.
    assert route.stays.count("coterie.training.session") == 1
    assert not any(name.startswith("coterie.extras.cluster") for name in route.stays)
