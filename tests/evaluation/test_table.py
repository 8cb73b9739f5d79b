"""Numbers, intervals and tables as text, and the table that a run ends with."""

import numpy as np
import pytest
from rich.console import Console

from coterie.evaluation.evaluation import Resampled, Row
from coterie.evaluation.run_table import lines
from coterie.evaluation.table import interval_text, make_table


def measured(value: float, spread: float = 0.0, count: int = 16) -> Resampled:
    return Resampled(value, np.array([value - spread, value + spread]), count)


@pytest.mark.parametrize(
    ("better", "after", "verdict"),
    [
        ("higher", measured(0.5), "better"),
        ("lower", measured(0.5), "worse"),
        # It moved, and nobody says which way is good.
        ("neither", measured(0.5), ""),
        # .1 to .9 against .25: the interval has 0 in it.
        ("higher", measured(0.5, spread=0.4), ""),
        # Of so few problems an interval says too often that something changed.
        ("higher", measured(0.5, count=15), ""),
    ],
)
def test_a_change_is_better_or_worse_or_neither(
    better: str, after: Resampled, verdict: str
) -> None:
    (line,) = lines({"m": measured(0.25)}, {"m": after}, [Row("M", "m", better)])
    assert line.verdict == verdict
    assert line.change.startswith("+.250 [")


def test_one_problem_has_no_interval() -> None:
    one = measured(0.5, count=1)
    (line,) = lines({"m": measured(0.25, count=1)}, {"m": one}, [Row("M", "m")])
    assert (line.after, line.change, line.verdict) == (".500", "+.250", "")


def test_what_is_undefined_has_no_change() -> None:
    (line,) = lines({"m": measured(float("nan"))}, {"m": measured(0.5)}, [Row("M", "m")])
    assert (line.before, line.change, line.verdict) == ("undefined (n=16)", "", "")


@pytest.mark.parametrize(
    ("value", "low", "high", "sign", "shown"),
    [
        (0.553, 0.512, 0.594, "", "[.51 .59]"),
        # Two decimals would print [1.00 1.00] beside .999, and [.00 .00] beside .002.
        (0.9987, 0.9961, 1.0, "", "[.996 1.000]"),
        (0.002, 0.0004, 0.0048, "", "[.000 .005]"),
        (0.0063, -0.0004, 0.0122, "+", "[-.00 +.01]"),
        (0.0046, 0.0012, 0.0049, "+", "[+.001 +.005]"),
        (-0.996, -0.9991, -0.9951, "+", "[-.999 -.995]"),
        (0.0, 0.0, 0.0, "", "[.00 .00]"),
        (float("nan"), float("nan"), float("nan"), "", "[nan nan]"),
    ],
)
def test_a_value_lies_in_its_interval_as_printed(
    value: float, low: float, high: float, sign: str, shown: str
) -> None:
    assert interval_text(value, low, high, sign) == shown


def test_rounding_takes_no_value_out_of_its_interval() -> None:
    random = np.random.default_rng(0)
    for value, down, up in random.uniform(0, 1, (500, 3)) ** 4:
        low, high = value - down / 50, value + up / 50
        texts = interval_text(value, low, high).strip("[]").split()
        first, last = (float(text) for text in texts)
        assert first <= round(value, 3) <= last


def test_titles_and_headings_are_no_markup() -> None:
    console = Console(width=200)
    with console.capture() as shown:
        names = "[red]set[/red]", "[bold]who[/bold]", "[/nothing]"
        console.print(make_table(names[0], names[1], [names[2]], [("line", ["[dim]1[/dim]"])]))
    for name in names:
        assert name in shown.get()
    # Cells are ours.
    assert "dim" not in shown.get()


def test_in_80_columns_labels_break_between_words_and_numbers_never() -> None:
    console = Console(width=80)
    with console.capture() as shown:
        cells = [".375 [.19 .56]"] * 4
        console.print(
            make_table("", "policy", ["a", "b", "c", "d"], [("alice and longnamed", cells)])
        )
    first, second = shown.get().splitlines()[-2:]
    assert first.split(maxsplit=2)[:2] == ["alice", "and"]
    assert first.count(".375 [.19 .56]") == 4
    assert second.split() == ["longnamed"]
