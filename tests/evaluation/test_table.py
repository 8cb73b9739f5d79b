"""Before against after, and what a change is called."""

import numpy as np
import pytest

from coterie.evaluation.evaluation import Resampled, Row
from coterie.evaluation.table import lines


def measured(value: float, spread: float = 0.0) -> Resampled:
    return Resampled(value, np.array([value - spread, value + spread]), 4)


@pytest.mark.parametrize(
    ("better", "after", "verdict"),
    [
        ("higher", measured(0.5), "better"),
        ("lower", measured(0.5), "worse"),
        # It moved, and nobody says which way is good.
        ("neither", measured(0.5), ""),
        # .1 to .9 against .25: the interval has 0 in it.
        ("higher", measured(0.5, spread=0.4), ""),
    ],
)
def test_a_change_is_better_or_worse_or_neither(
    better: str, after: Resampled, verdict: str
) -> None:
    (line,) = lines({"m": measured(0.25)}, {"m": after}, [Row("M", "m", better)])
    assert line.verdict == verdict
    assert line.change.startswith("+.250 [")


def test_what_is_undefined_has_no_change() -> None:
    (line,) = lines({"m": measured(float("nan"))}, {"m": measured(0.5)}, [Row("M", "m")])
    assert (line.before, line.change, line.verdict) == ("undefined (n=4)", "", "")
