"""Metrics and tables of EAPO's systems, computed from their responses."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from rich.markup import escape
from rich.table import Table

from coterie.evaluation.compare.responses import Responses
from coterie.evaluation.metrics.intervals import mean_intervals
from coterie.evaluation.metrics.means import mean_at_n, mean_present, variance
from coterie.evaluation.table import figure_cell, interval_cell, make_table

Figures = Mapping[str, Any]
"""Metrics by their names in JSON: ``avg@n`` and ``pass@n``, whether any of a question's answers is
right, with resamples; ``f1``, the paper's reward; ``variance`` of correctness, between and within
questions, and ``f1_variance``; ``tokens`` that the policy wrote for one answer, and
``expert_tokens`` in its context; ``missing``, the number of answers that failed."""


def measure_responses(responses: Responses, resamples: int, seed: int) -> Figures:
    """Means over questions; two systems have paired resamples."""
    score_QN = responses.correct_QN
    mean, passed = (
        mean_intervals(column_Q[:, None], resamples=resamples, seed=seed)[0]
        # A failed answer is NaN, which fmax ignores.
        for column_Q in (mean_at_n(score_QN), np.fmax.reduce(score_QN, axis=1))
    )
    means = {
        name: float(mean_present(mean_at_n(responses.measured[name])))
        for name in ("f1", "response_tokens", "expert_tokens")
    }
    return {
        "avg@n": mean,
        "pass@n": passed,
        "f1": means["f1"],
        "variance": variance(score_QN),
        "f1_variance": variance(responses.measured["f1"]),
        "tokens": means["response_tokens"],
        "expert_tokens": means["expert_tokens"],
        "missing": int(np.isnan(score_QN).sum()),
    }


def mean_of_sets(figures_by_set: Sequence[Figures]) -> dict[str, float]:
    """Unweighted means over sets, the paper's "Avg" (arXiv:2509.23730, table 1): of F1 ("Pass@32"
    there), of its variance between questions ("Var"), and of correctness."""
    return {
        "avg@n": float(np.mean([figures["avg@n"].value for figures in figures_by_set])),
        "f1": float(np.mean([figures["f1"] for figures in figures_by_set])),
        "f1_variance": float(np.mean([f["f1_variance"].between for f in figures_by_set])),
    }


def means_table(means_by_label: Mapping[str, Mapping[str, float]], title: str) -> Table:
    """The table of means over sets."""
    return make_table(
        title,
        "system",
        ("avg@n", "F1", "F1 between"),
        [
            (escape(label), [f"{value:.3f}" for value in means.values()])
            for label, means in means_by_label.items()
        ],
    )


def figures_table(figures_by_label: Mapping[str, Figures], title: str) -> Table:
    """A table with one line per system; ``tokens``: the policy's plus its experts'."""
    return make_table(
        title,
        "system",
        ("avg@n", "95 %", "Pass@n", "between", "within", "tokens"),
        [
            (
                escape(label),
                [
                    figure_cell(figures["avg@n"].value),
                    interval_cell(figures["avg@n"]),
                    f"{figures['pass@n'].value:.3f}",
                    f"{figures['variance'].between:.3f}",
                    f"{figures['variance'].within:.3f}",
                    f"{figures['tokens']:.0f} + {figures['expert_tokens']:.0f}",
                ],
            )
            for label, figures in figures_by_label.items()
        ],
    )


def f1_table(figures_by_label: Mapping[str, Figures]) -> Table:
    """The table of the paper's metrics: mean F1, and its variance."""
    return make_table(
        "F1",
        "system",
        ("avg@n", "between", "within"),
        [
            (
                escape(label),
                [
                    f"{figures['f1']:.3f}",
                    f"{figures['f1_variance'].between:.3f}",
                    f"{figures['f1_variance'].within:.3f}",
                ],
            )
            for label, figures in figures_by_label.items()
        ],
    )
