import pytest

from coterie.evaluation.report.scan import LogEntry, choose, space_evenly

ENTRIES = [
    LogEntry(place, place // 2 + 1, ("hurt",) if place % 3 == 0 else ()) for place in range(10)
]


@pytest.mark.parametrize(
    ("which", "chosen"), [("first", [0, 1, 2]), ("last", [7, 8, 9]), ("spaced", [0, 4, 9])]
)
def test_which_episodes(which: str, chosen: list[int]) -> None:
    entries = choose(ENTRIES, 3, which)  # pyright: ignore[reportArgumentType]
    assert [entry.offset for entry in entries] == chosen


def test_only_those_with_a_tag() -> None:
    assert [entry.offset for entry in choose(ENTRIES, 3, "last", "hurt")] == [3, 6, 9]
    assert choose(ENTRIES, 3, "first", "rescued") == []


@pytest.mark.parametrize("which", ["first", "last", "spaced"])
def test_no_more_than_there_are_and_none_where_none_is_asked_for(which: str) -> None:
    assert len(choose(ENTRIES, 99, which)) == 10  # pyright: ignore[reportArgumentType]
    assert choose(ENTRIES, 0, which) == []  # pyright: ignore[reportArgumentType]


def test_spaced_holds_both_ends_and_never_repeats() -> None:
    for count in range(2, 51):
        kept = space_evenly(range(50), count)
        assert (kept[0], kept[-1], len(set(kept))) == (0, 49, count)
    assert space_evenly(range(50), 1) == [0]
