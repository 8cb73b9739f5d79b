"""What pictures of comparisons say in words: order, figures, counts."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from coterie.evaluation.compare import pictures, seeds
from coterie.evaluation.compare.responses import Responses
from coterie.evaluation.compare.suite_metrics import measure_rows
from coterie.evaluation.compare.systems import System
from coterie.evaluation.metrics.intervals import Estimate


@pytest.fixture
def axes(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Everything that was drawn into, in order."""
    seen: list[Any] = []
    original = pictures.drawing

    @contextmanager
    def watched(path: Path, *shape: Any, **more: Any) -> Iterator[Any]:
        with original(path, *shape, **more) as drawn:
            yield drawn
            seen.extend(np.ravel(drawn))

    monkeypatch.setattr(pictures, "drawing", watched)
    monkeypatch.setattr(seeds, "drawing", watched)
    return seen


def system(name: str, value: float, players: tuple[str, ...], oracle: bool = False) -> System:
    table = np.full((4, 1), value)
    own = Responses(table, table, [[None]] * 4, table, {})
    spent = {player: np.array([[100.0, 10.0]] * 4) for player in players}
    alone = name in players
    return System(
        name,
        name,
        np.full(4, value),
        spent,
        np.ones(4),
        oracle=oracle,
        is_single=alone,
        responses=own,
    )


def test_rows_are_sorted_coloured_by_policy_and_labelled(axes: list[Any], tmp_path: Path) -> None:
    rows = [
        system("alice", 0.25, ("alice",)),
        system("best of all", 1.0, ("alice", "bob"), oracle=True),
        system("bob", 0.75, ("bob",)),
        system("alice by vote", 0.5, ("alice",)),
    ]
    figures = measure_rows([rows], {}, resamples=10, seed=0)
    pictures.draw_rows(figures, tmp_path / "x.png", "chains, n = 4 questions")
    left, right = axes
    assert left.get_title(loc="left") == "chains, n = 4 questions"
    order = [label.get_text() for label in left.get_yticklabels()]
    assert order == ["bob", "alice by vote", "alice", "best of all"]
    assert [text.get_text() for text in left.texts] == ["0.750", "0.500", "0.250", "1.000"]
    dots = [line for line in left.lines if line.get_marker() == "o"]
    colours = [line.get_color() for line in dots]
    assert colours[1] == colours[2] != colours[0]
    assert [line.get_markerfacecolor() for line in dots].index("none") == 3
    assert [text.get_text() for text in right.texts] == [" 10", " 10", " 10", " 20"]


@pytest.mark.parametrize(
    ("values", "limits", "meaning"),
    [
        ((1.0, 0.0), (-0.02, 1.14), "right, "),
        ((0.5, 0.25), (-0.02, 1.14), "mean score, "),
        ((-2.0, 0.5), (-2.06, 1.42), "mean score, "),
        ((1.0, 4.0), (-0.08, 4.56), "mean score, "),
    ],
)
def test_rewards_are_inside_the_picture(
    axes: list[Any],
    tmp_path: Path,
    values: tuple[float, float],
    limits: tuple[float, float],
    meaning: str,
) -> None:
    rows = [system(name, value, (name,)) for name, value in zip("ab", values)]
    figures = measure_rows([rows], {}, resamples=10, seed=0)
    pictures.draw_rows(figures, tmp_path / "x.png", "")
    left, _ = axes
    assert left.get_xlim() == pytest.approx(limits)
    assert left.get_xlabel().startswith(meaning)


def run(values: list[float]) -> seeds.Finished:
    steps = [
        {"step": s, "rollout/learner_tokens_total": 1000.0 * s, "x": v}
        for s, v in enumerate(values)
    ]
    return seeds.Finished("path", 0, {}, 0.0, steps, [])


@pytest.mark.parametrize(("lowest", "bottom"), [(-1.0, -1.0), (0.2, 0.0)])
def test_zero_is_the_bottom_where_no_value_is_below_it(
    axes: list[Any], tmp_path: Path, lowest: float, bottom: float
) -> None:
    values = [lowest + step / 9 for step in range(5)]
    seeds.draw({"A": [run(values)]}, ["x"], tmp_path / "x.png")
    low, high = axes[0].get_ylim()
    assert low == pytest.approx(bottom, abs=0.05)
    assert high > values[-1]


def test_few_points_stay_points_and_one_run_says_so(axes: list[Any], tmp_path: Path) -> None:
    systems = {"A": [run([0.0, 1.0, 0.5]), run([1.0, 1.0, 0.5])], "B": [run([0.0] * 40)]}
    seeds.draw(systems, ["x"], tmp_path / "x.png")
    (axis,) = axes
    assert [text.get_text() for text in axis.get_legend().get_texts()] == ["A (n = 2)", "B (n = 1)"]
    mean = next(line for line in axis.lines if line.get_linewidth() == 1.8)
    assert (list(mean.get_xdata()), list(mean.get_ydata())) == ([0, 1, 2], [0.5, 1.0, 0.5])
    assert sum(line.get_marker() == "." for line in axis.lines) == 2


def test_grouped_bars_have_a_panel_a_column_and_a_colour_a_kind(
    axes: list[Any], tmp_path: Path
) -> None:
    """One seed has no interval, and what nobody measured no bar."""
    figures = {
        "Base, 7B": Estimate(0.4, 0.3, 0.5, 3),
        "L1, 7B": Estimate(0.6, 0.45, 0.75, 3),
        "Base, 32B": Estimate(0.7, np.nan, np.nan, 1),
        "L1, 32B": Estimate(np.nan, np.nan, np.nan, 0),
    }
    panels = {"Pass@1": figures, "ECE": figures, "sd": figures}
    path = pictures.draw_grouped_bars(panels, tmp_path / "x.png", "mean over seeds")
    assert path.is_file()
    assert [axis.get_title(loc="left") for axis in axes if axis.figure] == ["Pass@1", "ECE", "sd"]
    first = axes[0]
    labels = [label.get_text() for label in first.get_yticklabels()]
    assert labels == list(figures)
    bars = [bar for bar in first.patches if bar.get_height() > 0]
    widths = [bar.get_width() for bar in bars]
    assert widths[:3] == pytest.approx([0.4, 0.6, 0.7])
    assert np.isnan(widths[3])
    colours = [bar.get_facecolor() for bar in bars]
    assert colours[0] == colours[2] != colours[1] == colours[3]
    (spans,) = [lines for lines in first.collections if len(lines.get_segments()) == 4]
    ends = [segment[:, 0] for segment in spans.get_segments() if len(segment)]
    assert ends[0] == pytest.approx([0.3, 0.5])
    assert ends[1] == pytest.approx([0.45, 0.75])
    assert ends[2] == pytest.approx([0.7, 0.7])
