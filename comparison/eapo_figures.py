"""What is said of EAPO's systems, from their responses."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from rich.markup import escape
from rich.table import Table

from coterie.comparison.output import make_table
from coterie.comparison.responses import Responses
from coterie.comparison.systems import System
from coterie.evaluation.evaluation import Resampled, column_means
from coterie.evaluation.metrics.means import Variance, mean_at_n, mean_present, variance
from coterie.evaluation.metrics.passk import pass_at_k


@dataclass(frozen=True)
class Figures:
    """What is said of a system."""

    mean: Resampled
    """avg@n"""
    pass_at_n: Resampled
    f1: float
    variance: Variance
    """Between questions and within them, of being right."""
    f1_variance: Variance
    """The same of F1, which the paper trains on."""
    tokens: float
    """Written by the policy for one answer."""
    expert_tokens: float
    """Experts' tokens in its context."""

    def content(self) -> dict[str, Any]:
        """As JSON names them."""
        return {
            "avg@n": self.mean,
            "pass@n": self.pass_at_n,
            "f1": self.f1,
            "variance": self.variance,
            "f1_variance": self.f1_variance,
            "tokens": self.tokens,
            "expert_tokens": self.expert_tokens,
        }


def figures_of(system: System, resamples: int, seed: int) -> Figures:
    """From a system's responses to its figures."""
    assert system.responses is not None
    return measure_responses(system.responses, resamples, seed)


def measure_responses(own: Responses, resamples: int, seed: int) -> Figures:
    """Means over questions; question by question, so that two systems' resamples pair up."""
    score_QN = own.correct_QN
    mean, passed = (
        column_means({"": column_Q}, resamples, seed)[""]
        for column_Q in (mean_at_n(score_QN), pass_at_k(score_QN, score_QN.shape[1]))
    )

    def average(key: str) -> float:
        return float(mean_present(mean_at_n(own.measured[key])))

    return Figures(
        mean,
        passed,
        average("f1"),
        variance(score_QN),
        variance(own.measured["f1"]),
        average("response_tokens"),
        average("expert_tokens"),
    )


def contents(measured: Mapping[str, Figures]) -> dict[str, Any]:
    """As JSON names them, row by row."""
    return {name: one.content() for name, one in measured.items()}


def figures_table(found: Mapping[str, Figures], title: str) -> Table:
    """One line per system; ``tokens`` are the policy's and, after the plus, its experts'."""
    return make_table(
        title,
        "system",
        ("avg@n", "95 %", "Pass@n", "between", "within", "tokens"),
        [
            (
                escape(label),
                [
                    f"{one.mean.value:.3f}",
                    f"\\[{one.mean.low:.2f} {one.mean.high:.2f}]",
                    f"{one.pass_at_n.value:.3f}",
                    f"{one.variance.between:.3f}",
                    f"{one.variance.within:.3f}",
                    f"{one.tokens:.0f} + {one.expert_tokens:.0f}",
                ],
            )
            for label, one in found.items()
        ],
    )


def f1_table(found: Mapping[str, Figures]) -> Table:
    """What the paper measures: the mean of F1, and its variance between questions."""
    return make_table(
        "F1",
        "system",
        ("avg@n", "between", "within"),
        [
            (
                escape(label),
                [f"{n:.3f}" for n in (one.f1, one.f1_variance.between, one.f1_variance.within)],
            )
            for label, one in found.items()
        ],
    )
