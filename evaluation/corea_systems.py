"""The systems that COREA (arXiv:2603.03752) compares, and their controls, from stored responses."""

# Q questions, S responses of each

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from evaluation.cascade import Answers, Cascade, ThresholdChoice, answers, measure
from evaluation.evaluation import Resampled
from evaluation.metrics.deferral import (
    BudgetMatch,
    area_over_random,
    average_gap_recovered,
    call_performance_threshold,
    match_budget,
)
from evaluation.metrics.discrimination import within_question_auroc
from evaluation.metrics.present import Floats, as_floats
from evaluation.recalibration import recalibrated
from evaluation.router import Routing

SYSTEMS: Mapping[str, str] = {
    "slm": "SLM",
    "rlvr": "RLVR-SLM",
    "brier": "Brier-SLM",
    "l1": "L1-SLM",
    "llm": "LLM",
    "slm-verb": "SLM-Verb",
    "slm-isotonic": "SLM-Verb, isotonic",
    "slm-temperature": "SLM-Verb, temperature",
    "rlvr-verb": "RLVR-Verb",
    "rlvr-isotonic": "RLVR-Verb, isotonic",
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

# Less than lies between any two confidences that are written with three digits.
_TIE = 1e-4


@dataclass(frozen=True)
class System:
    """One row of the comparison."""

    name: str
    cascade: Cascade
    deferred_QS: npt.NDArray[Any]
    """Whether, or with what probability, the large model answers."""
    threshold_Q: Floats | None = None
    """Where there is one; a curve can then be drawn."""

    def of(self, chosen_Q: npt.NDArray[np.bool_]) -> "System":
        """The system on the chosen questions, with the thresholds that it has."""
        threshold_Q = None if self.threshold_Q is None else self.threshold_Q[chosen_Q]
        return System(self.name, self.cascade.of(chosen_Q), self.deferred_QS[chosen_Q], threshold_Q)


def systems(
    stored: Mapping[str, Mapping[str, Any]],
    how: ThresholdChoice,
    *,
    size_ratio: float,
    output_weight: float,
    probe_QS: Floats | None = None,
    routing: Routing | None = None,
) -> Iterator[System]:
    """Every system for which there are responses.

    Args:
        stored: responses of ``large`` and of any of ``base``, ``rlvr``, ``brier``, ``corea``.
        how: the choice of the threshold.
        probe_QS: what the probe says of the responses of ``rlvr``.
        routing: what the router says of the questions.
    """
    large = answers(stored["large"], size_ratio=size_ratio, output_weight=output_weight)
    small = {
        name: answers(responses, size_ratio=1.0, output_weight=output_weight)
        for name, responses in stored.items()
        if name != "large"
    }
    for name, key in (("slm", "base"), ("rlvr", "rlvr"), ("brier", "brier"), ("l1", "corea")):
        if key in small:
            cascade = Cascade(small[key], large, small[key].confidence_QS)
            yield System(name, cascade, np.zeros_like(large.correct_QS))
    alone = Cascade(large, large, large.confidence_QS, small_always=False)
    yield System("llm", alone, np.ones_like(large.correct_QS))

    def cascaded(name: str, cascade: Cascade) -> System:
        threshold_Q = cascade.thresholds(how)
        return System(name, cascade, cascade.deferred(threshold_Q), threshold_Q)

    for prefix, key in (("slm", "base"), ("rlvr", "rlvr")):
        if key in small:
            own, stated_QS = small[key], small[key].confidence_QS
            yield cascaded(f"{prefix}-verb", Cascade(own, large, stated_QS))
            for method in ("isotonic", "temperature"):
                mapped_QS = recalibrated(stated_QS, own.correct_QS, method)
                yield cascaded(f"{prefix}-{method}", Cascade(own, large, mapped_QS))
    if "rlvr" in small:
        own = small["rlvr"]
        probability_QS = as_floats(stored["rlvr"]["probability"])
        yield cascaded("rlvr-avgprob", Cascade(own, large, probability_QS))
        if own.correct_QS.shape[1] > 1:
            yield cascaded("rlvr-agreement", _agreement(own, large, stored["rlvr"]["answer"]))
        if probe_QS is not None:
            yield cascaded("rlvr-probe", Cascade(own, large, probe_QS))
        if routing is not None:
            yield cascaded("router", _routed(own, large, routing, output_weight))
    if "brier" in small:
        own = small["brier"]
        yield cascaded("brier-verb", Cascade(own, large, own.confidence_QS))
    if "corea" in small:
        own = small["corea"]
        corea = cascaded("corea", Cascade(own, large, own.confidence_QS))
        finer_QS = ties_broken(own.confidence_QS, as_floats(stored["corea"]["probability"]))
        yield corea
        yield cascaded("corea-ties", Cascade(own, large, finer_QS))
        yield from _controls(corea)


def _controls(corea: System) -> Iterator[System]:
    """What COREA's deferral is to be compared with."""
    small, large = corea.cascade.small, corea.cascade.large
    share = np.full_like(small.correct_QS, corea.deferred_QS.mean())
    yield System("random", corea.cascade, share)
    yield System("always", corea.cascade, np.ones_like(share))
    yield System("never", corea.cascade, np.zeros_like(share))
    worth_QS = (small.correct_QS == 0) & (large.correct_QS > 0)
    yield System("oracle", replace(corea.cascade, score_QS=1.0 - worth_QS), worth_QS)


def ties_broken(stated_QS: Floats, probability_QS: Floats) -> Floats:
    """Stated confidences, equal ones in the order of a probability in [0, 1]; silence stays NaN.

    A model that was rewarded for its confidence uses few values (for L1 the best is the median of
    what it can expect, often 1), so that no threshold tells the many answers apart that share one.
    """
    return stated_QS + _TIE * (probability_QS - 1)


def agreement(answer_QS: Sequence[Sequence[str | None]]) -> Floats:
    """(Q, S) share of a question's other responses that give the same answer; NaN without one."""
    shares: list[list[float]] = []
    for row in answer_QS:
        counts = Counter(row)
        others = max(1, len(row) - 1)
        shares.append([np.nan if one is None else (counts[one] - 1) / others for one in row])
    return as_floats(shares)


def _agreement(own: Answers, large: Answers, answer_QS: Sequence[Sequence[str | None]]) -> Cascade:
    """Whoever asks for agreement pays for every response of the question."""
    others_QS = own.cost_QS.sum(axis=1, keepdims=True) - own.cost_QS
    return Cascade(own, large, agreement(answer_QS), before_QS=others_QS)


def _routed(own: Answers, large: Answers, routing: Routing, output_weight: float) -> Cascade:
    """The router decides before the small model has answered, once per question."""
    shape = own.correct_QS.shape
    cost_Q = routing.prompt_Q + output_weight * routing.output_Q
    return Cascade(
        own,
        large,
        np.broadcast_to(routing.score_Q[:, None], shape).copy(),
        before_QS=np.broadcast_to(cost_Q[:, None], shape).copy(),
        small_always=False,
    )


def measure_system(system: System, *, resamples: int, seed: int) -> dict[str, Resampled]:
    """The metrics of :func:`evaluation.cascade.measure`, with bootstrap intervals."""
    return measure(system.cascade, system.deferred_QS, resamples=resamples, seed=seed)


def at_budgets(system: System, shares: Sequence[float] = (0.1, 0.25, 0.5)) -> list[BudgetMatch]:
    """What deferring exactly these shares of all responses comes to, the least sure ones first."""
    cascade = system.cascade
    told_N, small_N, large_N = (
        values.ravel()
        for values in (cascade.score_QS, cascade.small.correct_QS, cascade.large.correct_QS)
    )
    return [match_budget(told_N, small_N, large_N, share) for share in shares]


def curve_figures(system: System) -> dict[str, float]:
    """What a whole curve is worth, for systems that have a threshold."""
    if system.threshold_Q is None:
        return {}
    curve = system.cascade.curve()
    return {
        "apgr": average_gap_recovered(curve),
        "area_over_random": area_over_random(curve),
        **{f"cpt@{x:.0%}": call_performance_threshold(curve, x) for x in (0.2, 0.5, 0.8)},
        "auroc_within": within_question_auroc(
            system.cascade.score_QS, system.cascade.small.correct_QS
        ),
        "chosen_threshold": float(system.threshold_Q.mean()),
    }
