import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from coterie.evaluation.report.scan import TAG_NAMES, records, scan, tags_of


def test_every_filter_finds_its_episode_and_no_other(run: Callable[..., Path]) -> None:
    found = scan(run() / "episodes.jsonl")
    assert found is not None
    # The six episodes of the fixture are named after the one tag that each of them has.
    assert [entry.tags for entry in found.entries] == [(name,) for name in TAG_NAMES]
    assert [entry.step for entry in found.entries] == [1, 2, 3, 4, 5, 6]


def test_a_reply_that_states_the_answer_leaks_and_a_bad_status_fails() -> None:
    assert tags_of({"trajectories": [{"status": "ok", "info": {"answer_in_returns": True}}]}) == (
        "leaked",
    )
    assert tags_of({"trajectories": [{"status": "failed: deadline", "info": {}}]}) == ("failed",)
    # The strings of a third-party environment are no booleans.
    assert tags_of({"trajectories": [{"status": "ok", "info": {"rescued": "no"}}]}) == ()


def test_chosen_episodes_are_read_again_from_where_they_stand(run: Callable[..., Path]) -> None:
    path = run() / "episodes.jsonl"
    found = scan(path)
    assert found is not None
    again = [record["problem"] for record in records(path, [found.entries[4], found.entries[1]])]
    assert again == ["consulted", "hurt"]


def test_lines_that_hold_no_episode_are_counted_and_passed_over(
    run: Callable[..., Path], episode: Callable[..., dict[str, Any]]
) -> None:
    path = run([episode(1, "whole"), 5, {"step": "one"}, {"step": 1}, []]) / "episodes.jsonl"
    with path.open("a") as file:
        file.write(json.dumps(episode(2, "cut off by a kill"))[:40])
    found = scan(path)
    assert found is not None
    assert (len(found.entries), found.unreadable) == (1, 5)


def test_no_log(tmp_path: Path) -> None:
    assert scan(tmp_path / "episodes.jsonl") is None
