import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from coterie.evaluation.report.scan import (
    FAILED,
    LogEntry,
    choose,
    scan,
    space_evenly,
    tags_of,
)
from coterie.evaluation.report_labels import ReportLabels


def test_every_filter_finds_its_episode_and_no_other(
    run: Callable[..., Path], labels: ReportLabels
) -> None:
    log = scan(run() / "episodes.jsonl", (*labels.tags, FAILED))
    assert log is not None
    # The six episodes of the fixture are named after the one tag that each of them has.
    assert [entry.tags for entry in log.entries] == [
        (name,) for name in (*(t.name for t in labels.tags), "failed")
    ]
    assert [entry.step for entry in log.entries] == [1, 2, 3, 4, 5, 6]


def test_a_reply_that_states_the_answer_leaks_and_a_bad_status_fails(labels: ReportLabels) -> None:
    tags = (*labels.tags, FAILED)

    def tags_with(status: str, **info: Any) -> tuple[str, ...]:
        return tags_of({"trajectories": [{"status": status, "info": info}]}, tags)

    assert tags_with("ok", answer_in_returns=True) == ("leaked",)
    assert tags_with("failed: deadline") == ("failed",)
    assert tags_with("failed: deadline", failed=True) == ("failed",)
    # The strings of a third-party environment are no booleans.
    assert tags_with("ok", rescued="no") == ()


def test_lines_that_hold_no_episode_are_counted_and_passed_over(
    run: Callable[..., Path], episode: Callable[..., dict[str, Any]]
) -> None:
    path = run([episode(1, "whole"), 5, {"step": "one"}, {"step": 1}, []]) / "episodes.jsonl"
    with path.open("a") as file:
        file.write(json.dumps(episode(2, "cut off by a kill"))[:40])
    log = scan(path, ())
    assert log is not None
    assert (len(log.entries), log.unreadable) == (1, 5)


ENTRIES = [
    LogEntry(place, place // 2 + 1, ("hurt",) if place % 3 == 0 else ()) for place in range(10)
]


@pytest.mark.parametrize(
    ("which", "chosen"), [("first", [0, 1, 2]), ("last", [7, 8, 9]), ("spaced", [0, 4, 9])]
)
def test_which_episodes(which: Any, chosen: list[int]) -> None:
    assert [entry.offset for entry in choose(ENTRIES, 3, which)] == chosen
    assert (len(choose(ENTRIES, 99, which)), choose(ENTRIES, 0, which)) == (10, [])
    tagged = choose(ENTRIES, 3, which, "hurt")
    assert len(tagged) == 3
    assert all(entry.tags for entry in tagged)


def test_spaced_holds_both_ends_and_never_repeats() -> None:
    for count in range(2, 51):
        kept = space_evenly(range(50), count)
        assert (kept[0], kept[-1], len(set(kept))) == (0, 49, count)
    assert space_evenly(range(50), 1) == [0]
