"""Every knob of the corea-deferral environment."""

from dataclasses import dataclass
from functools import partial
from typing import Literal

from coterie.datatypes import Problem, check_least
from coterie.envs.settings import require, require_finite, require_known, require_traces
from coterie.rewards.confidence import EPSILON, Target, ThresholdSource

ConfidenceReward = Literal["l1", "l2", "kl", "none"]

_require = partial(require, "corea-deferral")


@dataclass(frozen=True)
class CoreaDeferralSettings:
    """COREA (arXiv:2603.03752) on one problem. The symbols are the paper's."""

    traces: int = 8
    """N: traces per learner in training."""
    eval_traces: int = 2
    """Traces per role in evaluation."""
    learners: tuple[str, ...] = ("small",)
    """Who answers every problem in training: small, large or both."""
    ask_large: bool = False
    """Let the large role answer what is deferred in training too. It changes no reward."""
    threshold: float = 0.5
    """p_T: a lower confidence, or none, is deferred; above 1 everything is."""
    max_new_tokens: int = 40
    """Longest trace when training."""
    eval_max_new_tokens: int = 0
    """Longest trace in evaluation; 0 means as in training."""
    # A trace ends with its confidence: what a tiny model writes behind it would drift.
    stop: tuple[str, ...] = tuple(f"{tenths / 10} }}" for tenths in range(11))
    """Strings that end a trace."""

    confidence_reward: ConfidenceReward = "l1"
    """How a stated confidence is compared with its target; none is plain reinforcement learning
    on correctness and format (RLVR)."""
    p_hat: Target = "group"
    """The target: the group's share of right traces, that of the other traces, that share shrunk
    towards a half, the trace's own correctness, or the mean of the first and the last. l2 on
    sample is the Brier score, kl on sample the log score."""
    epsilon: float = EPSILON
    """Smallest probability inside the logarithms of kl."""
    w_correct: float = 1.0
    """Weight of being right."""
    w_format: float = 1.0
    """Weight of the format: a third each for one boxed answer, a confidence after it, and the
    question's language."""
    w_confidence: float = 4.0
    """Weight of the confidence reward."""
    confidence_per_hundred: bool = False
    """In evaluation, read confidences above 1 and up to 100 as percentages."""

    threshold_source: ThresholdSource = "cost"
    """How an evaluation chooses the threshold. accuracy: the cheapest that loses at most
    accuracy_loss against the large role; cost: the most accurate that costs at most cost_share of
    it; large-pass@1: the large role's accuracy itself; fixed: threshold."""
    threshold_on_test: bool = False
    """Choose it on the very questions that are scored, as the paper does, and not half by half on
    the other half."""
    accuracy_loss: float = 0.01
    """Accuracy that a cascade may lose against the large role."""
    cost_share: float = 0.8
    """Share of the large role's cost that a cascade may cost."""
    size_ratio: float = 32 / 7
    """Parameters of the large model over those of the small one, nominal sizes."""
    output_weight: float = 4.0
    """Price of an output token in prompt tokens."""

    def __post_init__(self) -> None:
        require_traces("corea-deferral", self)
        weights = ("w_correct", "w_format", "w_confidence", "output_weight")
        bounds = ("threshold", "accuracy_loss", "cost_share")
        check_least(self, dict.fromkeys((*weights, *bounds), 0), at="corea-deferral: ")
        _require(self.size_ratio > 0, f"size_ratio is {self.size_ratio}: it must be above 0")
        _require(0 < self.epsilon < 0.5, f"epsilon is {self.epsilon}: it lies between 0 and 0.5")
        _require(bool(self.learners), "learners is empty: name small, large or both")
        require_finite("corea-deferral", self)
        require_known("corea-deferral", self)


# COREA, arXiv:2603.03752, section 3.1
SUFFIX = (
    r"Please reason step by step, and put your final answer within \boxed{}, then output the "
    r"confidence (0.0-1.0) that your answer is correct within \confidence{}."
)


def prompt_for(problem: Problem) -> str:
    """The user's message, the same for the small and the large model."""
    return f"{problem.question} {SUFFIX}"
