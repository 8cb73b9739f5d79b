import math

import pytest

from coterie.evaluation.report.chart import chart, figure, nice_ticks, running_mean, tick_labels
from coterie.evaluation.report.curves import Panel, Series, curves, held_out, tag_panel
from coterie.evaluation.report.scan import LogEntry

LOG = [
    {
        "step": step,
        "reward/alice": 0.5 * step,
        "reward/bob": 2.0,
        "reward/alice/rescue": 0.1 * step,
        "measured/alice/correct": step / 4,
        "learner/alice/lr": 0.001,
        "rollout/tokens": 10 * step,
    }
    for step in (1, 2, 3)
]


def test_one_panel_a_quantity_with_a_line_a_role() -> None:
    drawn = curves(LOG, ["alice", "bob"], {"measured/alice/correct"})
    assert [(p.title, [s.name for s in p.series]) for p in drawn.main] == [
        ("reward", ["alice", "bob"]),
        ("measured/correct", ["alice"]),
    ]
    assert {name: [p.title for p in panels] for name, panels in drawn.more.items()} == {
        "reward": ["reward/rescue"],
        "rollout": ["rollout/tokens"],
    }
    assert drawn.main[0].series[0] == Series("alice", [1, 2, 3], [0.5, 1.0, 1.5])
    assert drawn.constant == [("learner/lr alice", 0.001)]


def test_what_was_not_measured_leaves_a_gap() -> None:
    log = [{"step": 1, "a": 1.0}, {"step": 2, "a": None}, {"step": 3, "a": math.inf}]
    log += [{"step": 4, "a": "x"}, {"step": 5, "a": 2.0}]
    assert curves(log, [], {"a"}).main[0].series == [Series("", [1, 5], [1.0, 2.0])]


def test_a_long_run_is_drawn_in_means() -> None:
    log = [{"step": step, "a": float(step)} for step in range(1, 1001)]
    (series,) = curves(log, [], {"a"}).main[0].series
    # 1000 steps in stretches of 5: the first is 1..5, whose mean is 3.
    assert (len(series.steps), series.steps[:2], series.values[:2]) == (200, [3, 8], [3.0, 8.0])
    # The axis has all steps, whatever the middles of the stretches at its ends.
    drawn = chart(curves(log, [], {"a"}).main[0], [])
    assert (drawn.data["first"], drawn.data["last"], drawn.data["margin"]) == (1, 1000, 2)
    labels = [(tick.label, tick.anchor) for tick in drawn.x_ticks]
    assert labels == [("step 1", "start"), ("500", "middle"), ("1,000", "end")]


def test_evaluations_are_marked_one_by_one() -> None:
    lines = [
        {"step": 0, "pass@1/alice": 0.5, "same": 0.0, "once": 1.0},
        {"step": 4, "pass@1/alice": 0.75, "same": 0.0},
    ]
    (panel,) = held_out(lines, ["alice"])
    assert panel == Panel("held out: pass@1", [Series("alice", [0, 4], [0.5, 0.75])], dots=True)
    drawn = chart(panel, ["alice"])
    assert len(drawn.lines[0].dots) == 2
    assert drawn.lines[0].raw == drawn.lines[0].smooth


def test_a_warm_up_has_a_dot_at_either_end_of_it() -> None:
    lines = [{"step": step, "right": right} for step, right in ((0, 0.0), (0, 0.4), (8, 0.5))]
    (panel,) = held_out(lines, [])
    drawn = chart(panel, []).lines[0]
    (x_before, y_before), (x_after, y_after), _ = drawn.dots
    assert x_before == x_after
    assert y_before > y_after
    assert (drawn.first, drawn.warmed_up, drawn.last) == ("0", "0.4", "0.5")
    (unwarmed,) = held_out(lines[1:], [])
    assert chart(unwarmed, []).lines[0].warmed_up == ""


@pytest.mark.parametrize(
    ("ticks", "labels"),
    [
        ([-0.5, 0.0, 0.5], ["-0.5", "0.0", "0.5"]),
        ([0, 2000, 4000], ["0", "2,000", "4,000"]),
        ([0, 2e6], ["0", "2e+06"]),
    ],
)
def test_labels_of_an_axis_have_equal_decimals(ticks: list[float], labels: list[str]) -> None:
    assert tick_labels(ticks) == labels


def test_share_of_episodes_by_tag() -> None:
    entries = [
        LogEntry(0, 1, ("hurt",)),
        LogEntry(0, 1, ()),
        LogEntry(0, 2, ("hurt",)),
        LogEntry(0, 2, ()),
    ]
    panel = tag_panel([*entries, LogEntry(0, 3, ())], ["hurt", "leaked"])
    assert panel == Panel("share of episodes", [Series("hurt", [1, 2, 3], [0.5, 0.5, 0.0])])
    assert tag_panel([LogEntry(0, 1, ())], ["hurt"]) is None


def test_running_mean_keeps_its_ends() -> None:
    assert running_mean([1.0, 5.0]) == [1.0, 5.0]
    # Forty values, two on either side in the middle.
    values = [0.0] * 19 + [5.0] + [0.0] * 20
    assert running_mean(values)[16:23] == [0.0, 1.0, 1.0, 1.0, 1.0, 1.0, 0.0]


@pytest.mark.parametrize(
    ("low", "high", "ticks"),
    [
        (0.1, 0.9, [0, 0.2, 0.4, 0.6, 0.8, 1.0]),
        (-3.0, 4.0, [-4, -2, 0, 2, 4]),
        (7.0, 7.0, [6, 8]),
    ],
)
def test_ticks_are_round_and_hold_the_data(low: float, high: float, ticks: list[float]) -> None:
    assert nice_ticks(low, high) == pytest.approx(ticks)


@pytest.mark.parametrize(
    ("value", "text"),
    [(1200.0, "1,200"), (0.00003, "3e-05"), (-2.5, "-2.5")],
)
def test_figures(value: float, text: str) -> None:
    assert figure(value) == text


def test_a_single_step_is_drawn() -> None:
    drawn = chart(Panel("a", [Series("bob", [7], [2.0])]), ["alice", "bob"])
    assert drawn.lines[0].colour == 1
    assert "nan" not in drawn.lines[0].raw
    assert [tick.label for tick in drawn.x_ticks] == ["step 7"]
