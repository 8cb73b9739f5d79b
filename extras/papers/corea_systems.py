"""The systems that COREA (arXiv:2603.03752) compares, their controls, and the table of both."""

# Q questions, S responses per question

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from rich.table import Table
from scipy.optimize import minimize_scalar
from scipy.special import expit, logit
from sklearn.isotonic import IsotonicRegression
from sklearn.linear_model import LogisticRegression

from coterie.evaluation.cascade import (
    Cascade,
    Deferral,
    Mask,
    ScoredResponses,
    ThresholdChoice,
    scored_responses,
)
from coterie.evaluation.compare.responses import Responses
from coterie.evaluation.evaluation import Resampled
from coterie.evaluation.json_values import Exact
from coterie.evaluation.metrics.deferral import (
    area_over_random,
    average_gap_recovered,
    call_performance_threshold,
    cost_at_accuracy,
)
from coterie.evaluation.metrics.discrimination import within_question_auroc
from coterie.evaluation.metrics.means import Floats
from coterie.evaluation.metrics.runs import OverRuns
from coterie.evaluation.table import make_table

SYSTEMS: Mapping[str, str] = {
    "slm": "SLM",
    "rlvr": "RLVR-SLM",
    "brier": "Brier-SLM",
    "l1": "L1-SLM",
    "llm": "LLM",
    "slm-verb": "SLM-Verb",
    "slm-isotonic": "SLM-Verb, isotonic",
    "slm-platt": "SLM-Verb, Platt",
    "slm-temperature": "SLM-Verb, temperature",
    "rlvr-verb": "RLVR-Verb",
    "rlvr-isotonic": "RLVR-Verb, isotonic",
    "rlvr-platt": "RLVR-Verb, Platt",
    "rlvr-temperature": "RLVR-Verb, temperature",
    "rlvr-avgprob": "RLVR-AvgProb",
    "rlvr-agreement": "RLVR-Agreement",
    "rlvr-probe": "RLVR-Probe",
    "router": "Router+RLVR",
    "brier-verb": "Brier-Verb",
    "corea": "COREA",
    "corea-ties": "COREA, ties by AvgProb",
    "random": "random, as often",
    "always": "always",
    "never": "never",
    "oracle": "oracle",
}
"""Name -> label, in the order of the table."""

# Smaller than the gap between any two confidences written with three digits.
_TIE = 1e-4


Method = Literal["isotonic", "platt", "temperature"]

_SMALLEST = 1e-3


def recalibrated(
    confidence_QS: Floats, correct_QS: Floats, method: Method, fitted_Q: Mask
) -> Floats:
    """Map all confidences by a fit on the questions of the mask ``fitted_Q``: (Q, S).

    isotonic     the best nondecreasing step function (Zadrozny and Elkan 2002)
    platt        ``sigmoid(a logit(p) + b)`` of the lowest log loss (Platt 1999); a may be negative
    temperature  ``sigmoid(logit(p) / T)`` with the T of the lowest log loss (arXiv:1706.04599)
    """
    mapped_QS = np.full_like(confidence_QS, np.nan)
    stated_QS = ~np.isnan(confidence_QS)
    known_QS = stated_QS & fitted_Q[:, None]
    if known_QS.any():
        fit = _FITS[method]
        mapped_QS[stated_QS] = fit(
            confidence_QS[known_QS], correct_QS[known_QS], confidence_QS[stated_QS]
        )
    return mapped_QS


def defer_recalibrated(
    small: ScoredResponses, large: ScoredResponses, method: Method, choice: ThresholdChoice
) -> Deferral:
    """Map the confidences of each half of the questions by a fit on the other half, and choose its
    threshold in the scale of that map: a map that keeps the order changes no decision."""
    score_QS = np.full_like(small.confidence_QS, np.nan)
    threshold_Q = np.full(len(score_QS), np.nan)
    even_Q = np.arange(len(score_QS)) % 2 == 0
    for half_Q in (even_Q, ~even_Q):
        mapped_QS = recalibrated(small.confidence_QS, small.correct_QS, method, ~half_Q)
        score_QS[half_Q] = mapped_QS[half_Q]
        threshold_Q[half_Q] = Cascade(small, large, mapped_QS).thresholds(choice)[half_Q]
    cascade = Cascade(small, large, score_QS)
    return Deferral(cascade, cascade.defer(threshold_Q), threshold_Q)


def _isotonic(stated_N: Floats, right_N: Floats, wanted_N: Floats) -> Floats:
    model = IsotonicRegression(y_min=0.0, y_max=1.0, out_of_bounds="clip")
    return model.fit(stated_N, right_N).predict(wanted_N)


def _platt(stated_N: Floats, right_N: Floats, wanted_N: Floats) -> Floats:
    if len(np.unique(right_N)) < 2:
        return np.full_like(wanted_N, right_N[0])
    model = LogisticRegression(C=np.inf).fit(_logits(stated_N)[:, None], right_N)
    return model.predict_proba(_logits(wanted_N)[:, None])[:, 1]


def _temperature(stated_N: Floats, right_N: Floats, wanted_N: Floats) -> Floats:
    logit_N = _logits(stated_N)

    def loss(log_temperature: float) -> float:
        # log(1 + exp(-z)) without overflow
        signed_N = np.where(right_N > 0, 1.0, -1.0) * logit_N / np.exp(log_temperature)
        return float(np.logaddexp(0.0, -signed_N).mean())

    best = minimize_scalar(loss, bounds=(-4.0, 4.0), method="bounded")
    return expit(_logits(wanted_N) / np.exp(best.x))


def _logits(stated_N: Floats) -> Floats:
    return logit(np.clip(stated_N, _SMALLEST, 1 - _SMALLEST))


_FITS: Mapping[Method, Callable[[Floats, Floats, Floats], Floats]] = {
    "isotonic": _isotonic,
    "platt": _platt,
    "temperature": _temperature,
}


@dataclass(frozen=True)
class Routing:
    """The router's output for each question."""

    score_Q: Floats
    """Probability read from its text; NaN if that is not a number from 0 to 1."""
    prompt_Q: Floats
    """Number of prompt tokens."""
    output_Q: Floats
    """Number of tokens that the router wrote."""

    def of(self, chosen_Q: slice) -> "Routing":
        """The output for the chosen questions."""
        return Routing(self.score_Q[chosen_Q], self.prompt_Q[chosen_Q], self.output_Q[chosen_Q])


def systems_by_set(
    answered: Mapping[str, Sequence[Responses]],
    choice: ThresholdChoice,
    *,
    probability_QS: Mapping[str, Floats],
    probe_QS: Floats | None = None,
    routing: Routing | None = None,
    **costs: float,
) -> list[dict[str, Deferral]]:
    """The systems on each set, with thresholds and recalibrations of that set alone. Arguments as
    of :func:`systems`, where Q counts the questions of all sets, one set after the other."""
    by_set: list[dict[str, Deferral]] = []
    start = 0
    for index, large in enumerate(answered["large"]):
        questions = slice(start, start := start + len(large.correct_QN))
        rows = systems(
            {name: sets[index] for name, sets in answered.items()},
            choice,
            **costs,
            probability_QS={name: values[questions] for name, values in probability_QS.items()},
            probe_QS=None if probe_QS is None else probe_QS[questions],
            routing=routing and routing.of(questions),
        )
        by_set.append(dict(rows))
    return by_set


def systems(
    answered: Mapping[str, Responses],
    choice: ThresholdChoice,
    *,
    size_ratio: float,
    output_weight: float,
    probability_QS: Mapping[str, Floats],
    probe_QS: Floats | None = None,
    routing: Routing | None = None,
) -> Iterator[tuple[str, Deferral]]:
    """Yield every system for which there are responses, as its name and its decisions.

    Args:
        answered: responses of ``large`` and of any of ``base``, ``rlvr``, ``brier``, ``corea``.
        choice: how the threshold is chosen.
        size_ratio: parameters of the large model divided by those of the small one.
        output_weight: price of an output token, in prompt tokens.
        probability_QS: mean probabilities, at temperature 1, of the tokens that ``rlvr`` and
            ``corea`` wrote; systems that need missing ones are left out.
        probe_QS: the probe's predictions for the responses of ``rlvr``.
        routing: the router's output for the questions.
    """
    costs = {
        name: _answers(responses, size_ratio if name == "large" else 1.0, output_weight)
        for name, responses in answered.items()
    }
    large = costs["large"]

    def decided(key: str, score_QS: Floats, **more: Any) -> Deferral:
        cascade = Cascade(costs[key], large, score_QS, **more)
        threshold_Q = cascade.thresholds(choice)
        return Deferral(cascade, cascade.defer(threshold_Q), threshold_Q)

    for name, key in (("slm", "base"), ("rlvr", "rlvr"), ("brier", "brier"), ("l1", "corea")):
        if key in costs:
            cascade = Cascade(costs[key], large, costs[key].confidence_QS)
            yield name, Deferral(cascade, np.zeros_like(large.correct_QS))
    only_large = Cascade(large, large, large.confidence_QS, small_always=False)
    yield "llm", Deferral(only_large, np.ones_like(large.correct_QS))

    for prefix, key in (("slm", "base"), ("rlvr", "rlvr")):
        if key in costs:
            yield f"{prefix}-verb", decided(key, costs[key].confidence_QS)
            for method in _FITS:
                yield f"{prefix}-{method}", defer_recalibrated(costs[key], large, method, choice)
    if "rlvr" in costs:
        scored = costs["rlvr"]
        if "rlvr" in probability_QS:
            yield "rlvr-avgprob", decided("rlvr", probability_QS["rlvr"])
        if scored.correct_QS.shape[1] > 1:
            # A system that uses agreement pays for every response to the question.
            others_QS = scored.cost_QS.sum(axis=1, keepdims=True) - scored.cost_QS
            agreed_QS = answered["rlvr"].agreement_QN()
            yield "rlvr-agreement", decided("rlvr", agreed_QS, before_QS=others_QS)
        if probe_QS is not None:
            yield "rlvr-probe", decided("rlvr", probe_QS)
        if routing is not None:
            # The router decides before the small model answers, once per question.
            cost_Q = routing.prompt_Q + output_weight * routing.output_Q
            score_QS, cost_QS = (
                np.broadcast_to(values_Q[:, None], scored.correct_QS.shape).copy()
                for values_Q in (routing.score_Q, cost_Q)
            )
            yield "router", decided("rlvr", score_QS, before_QS=cost_QS, small_always=False)
    if "brier" in costs:
        yield "brier-verb", decided("brier", costs["brier"].confidence_QS)
    if "corea" in costs:
        stated_QS = costs["corea"].confidence_QS
        corea = decided("corea", stated_QS)
        yield "corea", corea
        if "corea" in probability_QS:
            finer_QS = ties_broken(stated_QS, probability_QS["corea"])
            yield "corea-ties", decided("corea", finer_QS)
        yield from _controls(corea)


def _controls(corea: Deferral) -> Iterator[tuple[str, Deferral]]:
    """The controls for COREA's deferral."""
    small, large = corea.cascade.small, corea.cascade.large
    share_QS = np.full_like(small.correct_QS, corea.deferred_QS.mean())
    yield "random", Deferral(corea.cascade, share_QS)
    yield "always", Deferral(corea.cascade, np.ones_like(share_QS))
    yield "never", Deferral(corea.cascade, np.zeros_like(share_QS))
    worth_QS = (small.correct_QS == 0) & (large.correct_QS > 0)
    yield "oracle", Deferral(replace(corea.cascade, score_QS=1.0 - worth_QS), worth_QS)


def ties_broken(stated_QS: Floats, probability_QS: Floats) -> Floats:
    """Break ties of stated confidences by a probability in [0, 1]; NaN (none stated) stays NaN.

    A model with a confidence reward uses few values: for L1 the best is the median of its expected
    outcome, often 1. No threshold can separate the many answers that share one value.
    """
    return stated_QS + _TIE * (probability_QS - stated_QS)


def _answers(responses: Responses, size_ratio: float, output_weight: float) -> ScoredResponses:
    """Score responses; a failed one is wrong, without confidence and free."""
    used_QS2 = sum(responses.used_QN2.values(), np.zeros((*responses.correct_QN.shape, 2)))
    stored = {
        "correct": responses.correct_QN,
        "confidence": responses.confidence_QN,
        "prompt": used_QS2[..., 0],
        "output": used_QS2[..., 1],
    }
    return scored_responses(stored, size_ratio=size_ratio, output_weight=output_weight)


def with_threshold(rows: Mapping[str, Deferral]) -> dict[str, Deferral]:
    """The systems that have a threshold, and so a curve."""
    return {name: deferral for name, deferral in rows.items() if deferral.threshold_Q is not None}


def curve_content(deferral: Deferral) -> dict[str, Any]:
    """The curve over thresholds and its metrics as JSON data."""
    assert deferral.threshold_Q is not None
    curve = deferral.cascade.curve()
    whole = float(deferral.cascade.large.cost_QS.mean())
    return {
        "threshold": tuple(map(Exact, curve.threshold_D)),
        "accuracy": curve.accuracy_D,
        "cost": curve.cost_D,
        "deferred": curve.deferred_D,
        "apgr": average_gap_recovered(curve),
        "area_over_random": area_over_random(curve),
        **{f"cpt@{x:.0%}": call_performance_threshold(curve, x) for x in (0.2, 0.5, 0.8)},
        **{
            f"saving@{loss:.0%}": 1 - cost_at_accuracy(curve, curve.accuracy_large - loss) / whole
            for loss in (0.01, 0.02, 0.05)
        },
        "auroc_within": within_question_auroc(
            deferral.cascade.score_QS, deferral.cascade.small.correct_QS
        ),
        "chosen_threshold": float(deferral.threshold_Q.mean()),
    }


def at_thresholds(deferral: Deferral) -> dict[str, dict[str, float]]:
    """Accuracy, cost and deferral at thresholds from 0 to 1.1 (COREA, figure 2).

    Above 1 everything is deferred: no confidence is larger.
    """
    cascade = deferral.cascade
    points: dict[str, dict[str, float]] = {}
    for threshold in (tenth / 10 for tenth in range(12)):
        at = Deferral(cascade, cascade.defer(np.full(len(cascade.score_QS), threshold)))
        points[f"{threshold:g}"] = {
            "accuracy": float(at.correct_QS.mean()),
            "cost": float(at.cost_QS.mean()),
            "deferred": float(at.deferred_QS.mean()),
        }
    return points


Measured = Mapping[str, Mapping[str, Resampled]]
"""System -> metric -> value with its bootstrap resamples."""
Runs = Mapping[str, Mapping[str, OverRuns]]
"""System -> metric -> mean and standard deviation over runs."""


def table(results: Measured, title: str) -> Table:
    """Build the table, one line per system; ``gain`` is over random deferral of as many."""

    def cells(metrics: Mapping[str, Resampled]) -> list[str]:
        cascading = 0 < metrics["deferred"].value < 1
        return [
            f"{metrics['accuracy'].value:.3f}",
            f"{(metrics['accuracy'].high - metrics['accuracy'].low) / 2:.3f}",
            f"{metrics['ece'].value:.3f}",
            f"{metrics['auroc'].value:.3f}",
            f"{metrics['output_ratio'].value:.0%}",
            f"{metrics['cost'].value:.0f}",
            f"{metrics['deferred'].value:.0%}",
            f"{metrics['random_gain'].value:+.3f}" if cascading else "",
            f"{metrics['saving'].value:+.0%}",
        ]

    headings = ("accuracy", "±", "ECE", "AUROC", "given", "cost", "LLM", "gain", "saved")
    lines = [(SYSTEMS[name], cells(metrics)) for name, metrics in results.items()]
    return make_table(title, "system", headings, lines)


def runs_table(runs: Runs, title: str) -> Table:
    """Mean and standard deviation over runs, one line per system; ECE and AUROC are those of the
    small model's score."""
    figures = {"accuracy": 3, "ece": 3, "auroc": 3, "cost": 0}

    def cells(metrics: Mapping[str, OverRuns]) -> list[str]:
        return [
            f"{metrics[name].mean:.{decimals}f} ± {metrics[name].std:.{decimals}f}"
            for name, decimals in figures.items()
        ]

    lines = [(SYSTEMS[name], cells(metrics)) for name, metrics in runs.items()]
    return make_table(title, "system", ("accuracy", "ECE", "AUROC", "cost"), lines)
