"""Means and deviations over runs, and over sets: by hand."""

import math

import numpy as np
import pytest

from coterie.evaluation.metrics.runs import (
    OverRuns,
    averaged_over_sets,
    calibration_over_runs,
    over_runs,
)

NAN = float("nan")


def test_three_runs():
    # Mean .5; squared deviations .01, 0 and .01, divided by two.
    figure = over_runs([0.4, 0.5, 0.6])
    assert (figure.mean, figure.std) == (pytest.approx(0.5), pytest.approx(0.1))
    # A run without the figure is none of them; one run has no deviation.
    assert over_runs([0.4, NAN, 0.6]).mean == pytest.approx(0.5)
    assert math.isnan(over_runs([0.4, NAN]).std)
    assert math.isnan(over_runs([NAN, NAN]).mean)


def test_each_run_is_calibrated_by_itself():
    """Always .5 and always right, then never: both runs are .5 off. Together they would be 0."""
    right = np.array([[1.0, 0.0], [1.0, 0.0]])
    figures = calibration_over_runs(np.full((2, 2), 0.5), right)
    assert figures["ece"] == OverRuns(0.5, 0.0)
    assert figures["accuracy"].mean == 0.5
    assert figures["accuracy"].std == pytest.approx(math.sqrt(0.5))
    # One class alone has no order.
    assert math.isnan(figures["auroc"].mean)
    silent = calibration_over_runs(np.array([[NAN, 0.5], [0.5, 0.5]]), right)
    assert silent["output_ratio"].mean == pytest.approx(0.75)
    # A response that is not there is not silent.
    missing = calibration_over_runs([[0.5], [NAN]], [[1.0], [NAN]])
    assert missing["output_ratio"].mean == 1.0


def test_the_average_over_sets_is_that_of_the_paper():
    """COREA, tables 12 and 13, row SLM, whose averages are in table 2: 52.8 ± .9 and .45."""
    questions = [500, 500, 1319, 674, 448, 1221]
    pass_at_1 = [(41.7, 1.5), (52.8, 1.2), (81.3, 0.5), (23.2, 1.0), (21.2, 1.0), (54.7, 0.9)]
    ece = [0.57, 0.47, 0.19, 0.76, 0.71, 0.39]
    sets = [
        {"accuracy": OverRuns(*figure), "ece": OverRuns(error, 0.01)}
        for figure, error in zip(pass_at_1, ece)
    ]
    averages = averaged_over_sets(sets, questions)
    assert averages["accuracy"].mean == pytest.approx(52.8, abs=0.1)
    assert averages["accuracy"].std == pytest.approx(0.9, abs=0.05)
    assert averages["ece"].mean == pytest.approx(0.45, abs=0.005)


def test_no_average_without_one_of_the_sets():
    sets = [{"ece": OverRuns(0.1, 0.0)}, {"ece": OverRuns(NAN, NAN)}]
    assert math.isnan(averaged_over_sets(sets, [1, 1])["ece"].mean)
