"""Systems that answer with or without experts, and what is said of each."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

from evaluation.evaluation import Resampled
from evaluation.metrics.bootstrap import resampled_means
from evaluation.metrics.passk import pass_at_k
from evaluation.metrics.present import as_floats, mean_present
from evaluation.metrics.variance import Variance, mean_at_n, variance

# Q questions, N samples of each


@dataclass(frozen=True)
class System:
    """One row of the comparison."""

    name: str
    label: str
    policy: str
    expert: str | None = None
    """Who helps; None: nobody."""
    mode: Literal["eval", "assisted", "workflow", "peers"] = "eval"
    """Mode of the environment in which it answers; peers: paths that read each other's summaries.
    """


@dataclass(frozen=True)
class Figures:
    """What is said of a system."""

    mean: Resampled
    """avg@n"""
    pass_at_n: Resampled
    f1: float
    variance: Variance
    tokens: float
    """Written by the policy for one answer."""
    expert_tokens: float
    """Experts' tokens in its context."""

    def as_json(self) -> dict[str, Any]:
        """Values with their 95 % intervals."""
        return {
            "avg@n": {"value": self.mean.value, "interval": list(self.mean.interval())},
            "pass@n": {"value": self.pass_at_n.value, "interval": list(self.pass_at_n.interval())},
            "f1": self.f1,
            "variance": asdict(self.variance),
            "tokens": self.tokens,
            "expert_tokens": self.expert_tokens,
        }


def figures(answers: Mapping[str, Any], resamples: int, seed: int) -> Figures:
    """From answers (lists by question and sample) to figures."""
    score_QN = as_floats(answers["correct"])
    columns = (mean_at_n(score_QN), pass_at_k(score_QN, score_QN.shape[1]))
    # Question by question, so that two systems' resamples pair up.
    means_R = [
        resampled_means(column_Q[:, None], resamples=resamples, seed=seed)[:, 0]
        for column_Q in columns
    ]
    mean, passed = (
        Resampled(float(mean_present(column_Q)), column_R, len(column_Q))
        for column_Q, column_R in zip(columns, means_R)
    )

    def average(key: str) -> float:
        return float(mean_present(mean_at_n(answers[key])))

    return Figures(
        mean,
        passed,
        average("f1"),
        variance(score_QN),
        average("response_tokens"),
        average("expert_tokens"),
    )


def draw(found: Mapping[str, Figures], path: Path) -> Path:
    """A bar per system, avg@n with its interval."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    labels = list(found)[::-1]
    values = [found[label].mean.value for label in labels]
    bounds = [found[label].mean.interval() for label in labels]
    # A bootstrap interval need not hold its own value.
    low = [max(0.0, value - bound[0]) for value, bound in zip(values, bounds)]
    high = [max(0.0, bound[1] - value) for value, bound in zip(values, bounds)]
    figure, axis = plt.subplots(figsize=(6, 0.8 + 0.35 * len(labels)))
    axis.barh(labels, values, xerr=[low, high], color="C0", ecolor="0.3", capsize=2)
    axis.set_xlim(0, 1)
    axis.set_xlabel("avg@n, 95 % intervals over questions")
    figure.savefig(path, dpi=150, bbox_inches="tight")
    plt.close(figure)
    return path
