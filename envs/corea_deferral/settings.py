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
    """COREA (arXiv:2603.03752) on one problem. Symbols are the paper's."""

    traces: int = 8
    """N: traces per trained role in training."""
    eval_traces: int = 2
    """Traces per role in evaluation."""
    learners: tuple[str, ...] = ("small",)
    """Roles that answer every problem in training: small, large or both."""
    ask_large: bool = False
    """Let the large role answer deferred problems in training, too. It changes no reward."""
    threshold: float = 0.5
    """p_T: problems with a lower confidence, or with none, are deferred; above 1 all are."""
    max_new_tokens: int = 40
    """Longest trace in training."""
    eval_max_new_tokens: int = 0
    """Longest trace in evaluation; 0: as in training."""
    # A trace ends with its confidence: what a tiny model writes after it would drift.
    stop: tuple[str, ...] = tuple(f"{tenths / 10} }}" for tenths in range(11))
    """Strings that end a trace."""

    confidence_reward: ConfidenceReward = "l1"
    """Loss between a stated confidence and its target; none: reinforcement learning on correctness
    and format alone (RLVR)."""
    p_hat: Target = "group"
    """Target of the confidence: the group's share of right traces, that of the other traces, that
    share shrunk towards a half, the trace's own correctness, or the mean of the first and the last.
    l2 on sample is the Brier score, kl on sample the log score."""
    epsilon: float = EPSILON
    """Smallest probability inside the logarithms of kl."""
    w_correct: float = 1.0
    """Weight of correctness."""
    w_format: float = 1.0
    """Weight of the format: a third each for one boxed answer, a confidence after it, and the
    question's language."""
    w_confidence: float = 4.0
    """Weight of the confidence reward."""
    confidence_per_hundred: bool = False
    """In evaluation, read confidences above 1 and up to 100 as percentages."""

    threshold_source: ThresholdSource = "cost"
    """How evaluation chooses the threshold. accuracy: the cheapest that loses at most accuracy-loss
    against the large role; cost: the most accurate at a cost of at most cost-share of the large
    role's; large-pass@1: the large role's accuracy; fixed: --env.threshold."""
    threshold_on_test: bool = False
    """Choose the threshold on the scored questions themselves, as the paper does, instead of on the
    other half of them."""
    accuracy_loss: float = 0.01
    """Accuracy that the cascade may lose against the large role."""
    cost_share: float = 0.8
    """Largest cost of the cascade, as a share of the large role's."""
    size_ratio: float = 32 / 7
    """Parameters of the large model divided by those of the small one."""
    output_weight: float = 4.0
    """Price of an output token, in prompt tokens."""

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
