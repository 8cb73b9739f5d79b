"""Settings of corea-deferral, and its prompt."""

from dataclasses import dataclass
from typing import Annotated, Literal

from annotated_types import Ge, Gt, Interval, MinLen

from coterie.datatypes import Needs, Problem, Validated
from coterie.envs.settings import Several
from coterie.rewards.confidence import EPSILON, Target, ThresholdSource

ConfidenceReward = Literal["l1", "l2", "kl", "none"]


@dataclass(frozen=True)
class CoreaDeferralSettings(Validated):
    """COREA (arXiv:2603.03752) on one problem. Symbols are the paper's."""

    traces: Several = 8
    """N: traces per trained role in training."""
    eval_traces: Several = 2
    """Traces per role in evaluation."""
    learners: Annotated[tuple[str, ...], MinLen(1)] = ("small",)
    """Roles that answer every problem in training: small, large or both."""
    ask_large: bool = False
    """Let the large role answer deferred problems in training, too. It changes no reward."""
    threshold: Annotated[float, Ge(0)] = 0.5
    """p_T: problems with a lower confidence, or with none, are deferred; above 1 all are."""
    max_new_tokens: Annotated[int, Ge(1)] = 40
    """Longest trace in training."""
    eval_max_new_tokens: Annotated[int, Ge(0)] = 0
    """Longest trace in evaluation; 0: as in training."""
    # A trace ends with its confidence: what a tiny model writes after it would drift.
    stop: tuple[str, ...] = tuple(f"{tenths / 10} }}" for tenths in range(11))
    """Strings that end a trace."""

    prefill_confidence: bool = False
    r"""Ask for the answer alone, and begin its confidence: ``... is \confidence{`` is added, and
    the model writes the number. For models that state none by themselves; not in the paper."""

    confidence_reward: ConfidenceReward = "l1"
    """Loss between a stated confidence and its target; none: reinforcement learning on correctness
    and format alone (RLVR)."""
    p_hat: Annotated[
        Target, Needs("confidence_reward", "l1", "l2", "kl"), Needs("w_confidence")
    ] = "group"
    """Target of the confidence: the group's share of right traces, that of the other traces, that
    share shrunk towards a half, the trace's own correctness, or the mean of the first and the last.
    l2 on sample is the Brier score, kl on sample the log score."""
    epsilon: Annotated[
        float, Interval(gt=0, lt=0.5), Needs("confidence_reward", "kl"), Needs("w_confidence")
    ] = EPSILON
    """Smallest probability inside the logarithms of kl."""
    w_correct: Annotated[float, Ge(0)] = 1.0
    """Weight of correctness."""
    w_format: Annotated[float, Ge(0)] = 1.0
    """Weight of the format: a third each for one boxed answer, a confidence after it, and the
    question's language."""
    w_confidence: Annotated[float, Ge(0), Needs("confidence_reward", "l1", "l2", "kl")] = 4.0
    """Weight of the confidence reward."""

    threshold_source: ThresholdSource = "cost"
    """How evaluation chooses the threshold. accuracy: the cheapest that loses at most accuracy-loss
    against the large role; cost: the most accurate at a cost of at most cost-share of the large
    role's; large-pass@1: the large role's accuracy; fixed: --env.threshold."""
    threshold_on_test: Annotated[
        bool, Needs("threshold_source", "accuracy", "cost", "large-pass@1")
    ] = False
    """Choose the threshold on the scored questions themselves, as the paper does, instead of on the
    other half of them."""
    accuracy_loss: Annotated[float, Ge(0), Needs("threshold_source", "accuracy")] = 0.01
    """Accuracy that the cascade may lose against the large role."""
    cost_share: Annotated[float, Ge(0), Needs("threshold_source", "cost")] = 0.8
    """Largest cost of the cascade, as a share of the large role's."""
    size_ratio: Annotated[float, Gt(0)] = 32 / 7
    """Parameters of the large model divided by those of the small one."""
    output_weight: Annotated[float, Ge(0)] = 4.0
    """Price of an output token, in prompt tokens."""

    @property
    def continues(self) -> bool:
        """Whether an answer is continued."""
        return self.prefill_confidence

    @property
    def read_tokens(self) -> int:
        """Most tokens of a context beside the prompt and an answer: of a prefilled confidence."""
        return 32 if self.prefill_confidence else 0


# COREA, arXiv:2603.03752, section 3.1
SUFFIX = (
    r"Please reason step by step, and put your final answer within \boxed{}, then output the "
    r"confidence (0.0-1.0) that your answer is correct within \confidence{}."
)
SUFFIX_ALONE = r"Please reason step by step, and put your final answer within \boxed{}."
PREFILL = "\nThe probability (0.0-1.0) that my answer is correct is \\confidence{"
"""What is added to an answer without a confidence."""


def prompt_for(problem: Problem, *, prefilled: bool = False) -> str:
    """The user's message, the same for the small and the large model."""
    return f"{problem.question} {SUFFIX_ALONE if prefilled else SUFFIX}"
