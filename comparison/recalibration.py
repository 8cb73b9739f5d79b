"""Confidences mapped to probabilities after the fact, fitted on questions that are not scored."""

# Q questions, S responses of each, N stated responses; NaN: nothing was stated

from typing import Literal

import numpy as np
from scipy.optimize import minimize_scalar
from scipy.special import expit, logit
from sklearn.isotonic import IsotonicRegression

from coterie.evaluation.metrics.means import Floats

Method = Literal["isotonic", "temperature"]

_CLIP = 1e-3


def recalibrated(confidence_QS: Floats, correct_QS: Floats, method: Method) -> Floats:
    """(Q, S): each half of the questions mapped by what was fitted on the other half.

    isotonic     the best rising step function (Zadrozny and Elkan 2002)
    temperature  ``sigmoid(logit(p) / T)`` with the T of the lowest log loss (arXiv:1706.04599)
    """
    mapped_QS = np.full_like(confidence_QS, np.nan)
    even_Q = np.arange(len(confidence_QS)) % 2 == 0
    for scored_Q in (even_Q, ~even_Q):
        fitted_QS, right_QS = confidence_QS[~scored_Q], correct_QS[~scored_Q]
        known_QS = ~np.isnan(fitted_QS)
        if not known_QS.any():
            continue
        wanted_QS = confidence_QS[scored_Q]
        out_QS = np.full_like(wanted_QS, np.nan)
        stated_QS = ~np.isnan(wanted_QS)
        if stated_QS.any():
            fit = _isotonic if method == "isotonic" else _temperature
            out_QS[stated_QS] = fit(fitted_QS[known_QS], right_QS[known_QS], wanted_QS[stated_QS])
        mapped_QS[scored_Q] = out_QS
    return mapped_QS


def _isotonic(stated_N: Floats, right_N: Floats, wanted_N: Floats) -> Floats:
    model = IsotonicRegression(y_min=0.0, y_max=1.0, out_of_bounds="clip")
    return model.fit(stated_N, right_N).predict(wanted_N)


def _temperature(stated_N: Floats, right_N: Floats, wanted_N: Floats) -> Floats:
    logit_N = logit(np.clip(stated_N, _CLIP, 1 - _CLIP))

    def loss(log_temperature: float) -> float:
        # log(1 + exp(-z)) without overflow
        signed_N = np.where(right_N > 0, 1.0, -1.0) * logit_N / np.exp(log_temperature)
        return float(np.logaddexp(0.0, -signed_N).mean())

    best = minimize_scalar(loss, bounds=(-4.0, 4.0), method="bounded")
    return expit(logit(np.clip(wanted_N, _CLIP, 1 - _CLIP)) / np.exp(best.x))
