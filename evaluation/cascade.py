"""Cascades of a small and a large model, computed from stored responses."""

# Q questions, S responses of a role to each, N = Q S pairs of responses, R resamples, M columns

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from coterie.evaluation.evaluation import Resampled
from coterie.evaluation.metrics.calibration import calibration_columns, calibration_error
from coterie.evaluation.metrics.deferral import (
    DeferralCurve,
    ThresholdChoice,
    choose_threshold,
    deferral_curve,
    random_deferral,
    response_cost,
)
from coterie.evaluation.metrics.discrimination import discrimination, discrimination_columns
from coterie.evaluation.metrics.intervals import resampled_means
from coterie.evaluation.metrics.means import Floats, as_floats, ratio
from coterie.evaluation.metrics.runs import OverRuns, calibration_over_runs, over_runs

Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class ScoredResponses:
    """One role's responses. A failed response is wrong, states no confidence and costs nothing."""

    correct_QS: Floats
    confidence_QS: Floats
    """NaN: no valid confidence was stated."""
    cost_QS: Floats
    """Cost in prompt tokens of the small model."""

    def of(self, chosen_Q: Mask) -> "ScoredResponses":
        """The responses to the questions that the mask ``chosen_Q`` selects."""
        return ScoredResponses(
            self.correct_QS[chosen_Q], self.confidence_QS[chosen_Q], self.cost_QS[chosen_Q]
        )


def scored_responses(
    stored: Mapping[str, Any],
    *,
    size_ratio: float,
    output_weight: float,
) -> ScoredResponses:
    """One role's responses and what they cost.

    Args:
        stored: (Q, S) tables ``correct``, ``confidence``, ``prompt`` and ``output`` (tokens).
        size_ratio: parameters of this model over those of the small one.
        output_weight: price of an output token in prompt tokens.
    """
    correct_QS, confidence_QS, prompt_QS, output_QS = (
        np.array(stored[name], dtype=np.float64)
        for name in ("correct", "confidence", "prompt", "output")
    )
    cost_QS = response_cost(
        prompt_QS, output_QS, size_ratio=size_ratio, output_weight=output_weight
    )
    return ScoredResponses(np.nan_to_num(correct_QS), confidence_QS, np.nan_to_num(cost_QS))


@dataclass(frozen=True)
class Cascade:
    """Responses of both models to each question, and the score that decides between them."""

    small: ScoredResponses
    large: ScoredResponses
    score_QS: Floats
    """The small response is kept if its score reaches the threshold; NaN never does."""
    before_QS: Floats | float = 0.0
    """Cost before either model answers, such as a router's."""
    small_always: bool = True
    """Whether a deferred question also costs the small model's response."""

    def of(self, chosen_Q: Mask) -> "Cascade":
        """The cascade on the chosen questions."""
        before = self.before_QS
        return Cascade(
            self.small.of(chosen_Q),
            self.large.of(chosen_Q),
            self.score_QS[chosen_Q],
            before[chosen_Q] if isinstance(before, np.ndarray) else before,
            self.small_always,
        )

    @staticmethod
    def join(cascades: "Sequence[Cascade]") -> "Cascade":
        """The questions of several cascades of the same models, one set after the other."""

        def joined(parts: Sequence[ScoredResponses]) -> ScoredResponses:
            return ScoredResponses(
                np.concatenate([part.correct_QS for part in parts]),
                np.concatenate([part.confidence_QS for part in parts]),
                np.concatenate([part.cost_QS for part in parts]),
            )

        before = [np.broadcast_to(part.before_QS, part.score_QS.shape) for part in cascades]
        return Cascade(
            joined([part.small for part in cascades]),
            joined([part.large for part in cascades]),
            np.concatenate([part.score_QS for part in cascades]),
            np.concatenate(before),
            cascades[0].small_always,
        )

    @property
    def deferred_cost_QS(self) -> Floats:
        """Cost of a deferred question."""
        small_QS = self.small.cost_QS if self.small_always else np.zeros_like(self.small.cost_QS)
        return self.before_QS + small_QS + self.large.cost_QS

    @property
    def kept_cost_QS(self) -> Floats:
        """Cost of a question that the small model answers."""
        return self.before_QS + self.small.cost_QS

    def curve(self) -> DeferralCurve:
        """Accuracy, cost and deferral at every threshold."""
        kept_N = self.kept_cost_QS.ravel()
        return deferral_curve(
            self.score_QS.ravel(),
            self.small.correct_QS.ravel(),
            self.large.correct_QS.ravel(),
            kept_N,
            self.deferred_cost_QS.ravel() - kept_N,
        )

    def threshold(self, choice: ThresholdChoice) -> float:
        """Choose a threshold on these questions."""
        return choose_threshold(self.curve(), choice, float(self.large.cost_QS.mean()))

    def thresholds(self, choice: ThresholdChoice) -> Floats:
        """(Q,) threshold of each question; that of each half is chosen on the other half."""
        questions = len(self.score_QS)
        if choice.on_test or questions < 2:
            return np.full(questions, self.threshold(choice))
        even_Q = np.arange(questions) % 2 == 0
        return np.where(
            even_Q, self.of(~even_Q).threshold(choice), self.of(even_Q).threshold(choice)
        )

    def defer(self, threshold_Q: npt.ArrayLike) -> npt.NDArray[np.bool_]:
        """(Q, S) whether the large model answers."""
        # NaN compares false, so a missing confidence is deferred.
        return ~(self.score_QS >= as_floats(threshold_Q)[:, None])


@dataclass(frozen=True)
class Deferral:
    """The decisions of a cascade."""

    cascade: Cascade
    deferred_QS: npt.NDArray[Any]
    """Whether the large model answers, or with what probability."""
    threshold_Q: Floats | None = None
    """Threshold of each question; None: no threshold decided, so there is no curve."""

    def of(self, chosen_Q: Mask) -> "Deferral":
        """The decisions on the chosen questions."""
        threshold_Q = None if self.threshold_Q is None else self.threshold_Q[chosen_Q]
        return Deferral(self.cascade.of(chosen_Q), self.deferred_QS[chosen_Q], threshold_Q)

    @staticmethod
    def join(parts: "Sequence[Deferral]") -> "Deferral":
        """The decisions on several sets, one after the other."""
        thresholds = [part.threshold_Q for part in parts if part.threshold_Q is not None]
        return Deferral(
            Cascade.join([part.cascade for part in parts]),
            np.concatenate([part.deferred_QS for part in parts]),
            np.concatenate(thresholds) if len(thresholds) == len(parts) else None,
        )

    @property
    def correct_QS(self) -> Floats:
        """Probability that the cascade's answer is right."""
        return self._mixed(self.cascade.small.correct_QS, self.cascade.large.correct_QS)

    @property
    def cost_QS(self) -> Floats:
        """Expected cost of the cascade's answer."""
        return self._mixed(self.cascade.kept_cost_QS, self.cascade.deferred_cost_QS)

    def _mixed(self, kept_QS: Floats, moved_QS: Floats) -> Floats:
        return kept_QS + as_floats(self.deferred_QS) * (moved_QS - kept_QS)


def measure(deferral: Deferral, *, resamples: int, seed: int) -> dict[str, Resampled]:
    """Calibration of the score, and accuracy and cost of the cascade with these decisions.

    ``accuracy_small``, ``accuracy_large``, ``ece``, ``auroc``, ``output_ratio``, ``accuracy``,
    ``cost``, ``cost_large``, ``deferred``, ``random_gain`` (over random deferral of as many),
    ``saving`` and ``loss`` (both against the large model alone); ``helped`` and ``harmed``, the
    shares of all responses that deferral made right and made wrong.
    """
    cascade, deferred_QS = deferral.cascade, as_floats(deferral.deferred_QS)
    small, large = cascade.small, cascade.large
    by_response = {
        "accuracy_small": small.correct_QS,
        "accuracy_large": large.correct_QS,
        "accuracy": deferral.correct_QS,
        "cost": deferral.cost_QS,
        "cost_large": large.cost_QS,
        "deferred": deferred_QS,
        "helped": deferred_QS * (1 - small.correct_QS) * large.correct_QS,
        "harmed": deferred_QS * small.correct_QS * (1 - large.correct_QS),
        "output_ratio": as_floats(~np.isnan(cascade.score_QS)),
    }
    # (Q,) or (Q, M) columns, of whose means every metric is a function.
    columns = {name: values_QS.mean(axis=1) for name, values_QS in by_response.items()} | {
        "ece": calibration_columns(cascade.score_QS, small.correct_QS),
        "auroc": discrimination_columns(cascade.score_QS, small.correct_QS),
    }
    values_QM = np.column_stack(list(columns.values()))
    ends = np.cumsum([1 if column.ndim == 1 else column.shape[1] for column in columns.values()])

    def derived(means: Floats) -> dict[str, Floats]:
        return _derive(dict(zip(columns, np.split(means, ends[:-1], axis=-1))))

    point = derived(values_QM.mean(axis=0))
    drawn = derived(resampled_means(values_QM, resamples=resamples, seed=seed))
    return {
        name: Resampled(float(point[name]), np.atleast_1d(drawn[name]), len(deferred_QS))
        for name in point
    }


def average(sets: Sequence[Mapping[str, Resampled]]) -> dict[str, Resampled]:
    """Every metric of :func:`measure` over several sets, each weighted by its questions.

    ECE, AUROC and ``random_gain`` are averaged over sets; ``saving`` is that of the mean costs.

    Args:
        sets: the metrics of each set, from equally many independent resamples.
    """
    counts = [next(iter(metrics_of_set.values())).count for metrics_of_set in sets]
    weights = as_floats(counts) / sum(counts)

    def mean(name: str) -> Resampled:
        parts = [metrics_of_set[name] for metrics_of_set in sets]
        drawn = sum(w * part.replicates for w, part in zip(weights, parts))
        value = sum(w * part.value for w, part in zip(weights, parts))
        return Resampled(float(value), np.asarray(drawn), sum(counts))

    metrics = {name: mean(name) for name in sets[0]}
    cost, large = metrics["cost"], metrics["cost_large"]
    saved_R = 1.0 - ratio(cost.replicates, large.replicates)
    metrics["saving"] = Resampled(float(1.0 - ratio(cost.value, large.value)), saved_R, sum(counts))
    return metrics


def measure_runs(deferral: Deferral) -> dict[str, OverRuns]:
    """Mean and standard deviation over runs of ``accuracy_small``, ``ece``, ``auroc``,
    ``output_ratio``, and of the cascade's ``accuracy``, ``cost`` and ``deferred``."""
    cascade = deferral.cascade
    stated = calibration_over_runs(cascade.score_QS, cascade.small.correct_QS)
    return {
        "accuracy_small": stated.pop("accuracy"),
        **stated,
        "accuracy": over_runs(deferral.correct_QS.mean(axis=0)),
        "cost": over_runs(deferral.cost_QS.mean(axis=0)),
        "deferred": over_runs(as_floats(deferral.deferred_QS).mean(axis=0)),
    }


def _derive(means: Mapping[str, Floats]) -> dict[str, Floats]:
    """Metrics from column means, the same for the data and for every resample."""
    plain = {name: values[..., 0] for name, values in means.items() if name not in ("ece", "auroc")}
    small, large = plain["accuracy_small"], plain["accuracy_large"]
    return {
        **plain,
        "ece": calibration_error(means["ece"]),
        "auroc": discrimination(means["auroc"]),
        "random_gain": plain["accuracy"] - random_deferral(small, large, plain["deferred"]),
        "saving": 1.0 - ratio(plain["cost"], plain["cost_large"]),
        "loss": large - plain["accuracy"],
    }
