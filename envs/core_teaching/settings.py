"""Settings of core-teaching, and the weights of its reward terms by epoch."""

from dataclasses import dataclass, fields
from typing import Annotated, Literal

from annotated_types import Ge, Interval, MinLen

from coterie.datatypes import Needs, Validated, refuse
from coterie.datatypes.validation import Share
from coterie.envs.core_teaching.terms import term_name
from coterie.envs.prompts import StrategyStyle
from coterie.envs.settings import MOST, Several
from coterie.rewards.exploitation import TraceAccuracyMode

TeacherChoice = Literal["best", "prefer-peer", "rotating", "difficulty-routed"]
TeacherScore = Literal["total", "exploitation"]
ExploreMode = Literal["literal", "leave-one-out", "mean-pairwise", "strategy-ratio"]
ExplorePool = Literal["question", "model"]
End = Literal["head", "tail"]
HintedContext = Literal["hint", "cold"]
Reread = Literal["none", "wrong", "unsolved", "alike", "all"]
RereadHint = Literal["peer", "own"]

_REREADS = Needs("reread", "wrong", "unsolved", "alike", "all")


@dataclass(frozen=True)
class CoreTeachingSettings(Validated):
    """CoRe (arXiv:2601.21600) and peer distillation, on one problem. Symbols are the paper's."""

    k_cold: Several = 3
    """K: traces per role in the first round, without a hint (cold)."""
    k_hinted: Annotated[int, Interval(ge=0, le=MOST)] = 0
    """K': traces per role in the second round; 0: no second round."""
    hint_probability: Annotated[Share, Needs("k_hinted")] = 0.75
    """Probability that a second-round trace gets the hint."""
    # spec.py has larger limits for models that are not tiny.
    hint_tokens: Annotated[int, Ge(1)] = 64
    """L: longest hint, in the student's tokens."""
    truncate: End = "head"
    """Which end of a hint that is too long is kept."""
    max_new_tokens: Annotated[int, Ge(1)] = 48
    """Longest trace in training."""
    eval_max_new_tokens: Annotated[int, Ge(0)] = 0
    """Longest trace in evaluation; 0: as in training."""
    stop: tuple[str, ...] = ()
    """Strings that end a trace."""
    prompt_style: StrategyStyle = "plain"
    """plain: the paper's prompts; answer: the question, and a sentence that asks for a last line
    with the answer; strategies: asks for strategy blocks and a final answer."""
    teacher: TeacherChoice = "prefer-peer"
    """Whose correct cold trace becomes the hint. best: the best of all roles. prefer-peer: the best
    of another role than the student, if there is one. rotating: roles take turns, by step.
    difficulty-routed: they take turns where at least half of the cold traces are right, else the
    role with most right traces."""
    teacher_score: TeacherScore = "total"
    """Which trace is the best: by all reward terms of the first round, or by exploitation only."""

    w_exploit: float = 1.0
    """w_1: weight of correctness (exploitation)."""
    alpha: float = 0.0
    """Share of partial credit within exploitation."""
    alpha_only_if_wrong: Annotated[bool, Needs("alpha")] = False
    """Give partial credit to wrong answers only: a correct trace then earns 1, not 1 + alpha."""
    partial_on_numbers: bool = False
    """Give partial credit where the gold answer is a number, too. A number is one token, so only a
    shared sign or unit earns any."""
    w_explore: Annotated[tuple[float, ...], MinLen(1)] = (0.0,)
    """w_2: weight of exploration by epoch; the last value holds from then on."""
    explore_mode: Annotated[ExploreMode, Needs("w_explore")] = "leave-one-out"
    """literal: the paper's greedy set, zero unless its cap binds. leave-one-out: distance to the
    nearest other trace. mean-pairwise: mean distance to the others. strategy-ratio: share of
    distinct strategies within a trace."""
    explore_pool: Annotated[
        ExplorePool,
        Needs("w_explore"),
        Needs("explore_mode", "literal", "leave-one-out", "mean-pairwise"),
    ] = "question"
    """Traces that a trace is compared with: all of the question, or those of its own role."""
    explore_correct_only: Annotated[bool, Needs("w_explore")] = True
    """Reward exploration of correct traces only."""
    delta: Annotated[float, Needs("w_explore")] = 0.15
    """Distance below which exploration earns nothing."""
    cap: Annotated[
        int, Ge(1), Needs("w_explore"), Needs("explore_mode", "literal", "strategy-ratio")
    ] = 10
    """Largest size of the greedy set (literal and strategy-ratio)."""
    lambda_cm: Annotated[tuple[float, ...], MinLen(1)] = (0.0,)
    """Weight of distance from peers' traces by epoch; the last value holds from then on."""
    delta_cm: Annotated[float, Needs("lambda_cm")] = 0.15
    """Distance from peers' traces below which it earns nothing."""
    eta: Annotated[float, Needs("lambda_cm")] = 1.0
    """Least exploitation of a peer's best trace for its distance to count."""
    cross_requires_correct: Annotated[bool, Needs("lambda_cm")] = True
    """Reward distance from peers of correct traces only."""
    lambda_ta: float = 0.0
    """Weight of trace accuracy."""
    trace_accuracy: Annotated[TraceAccuracyMode, Needs("lambda_ta")] = "v2"
    """v1: rewards correct traces on easy questions; v2: on hard questions."""
    r_teach: Annotated[float, Needs("k_hinted"), Needs("hint_probability")] = 0.0
    """Bonus of a rescued trace: right with the hint, after only wrong cold traces of its role."""
    teacher_lift: Annotated[float, Needs("k_hinted")] = 0.0
    """Reward the teacher's trace for the change in other roles' success with its hint. Not in the
    paper."""
    terms: tuple[str, ...] = ()
    """Reward terms of your own: NAME=WEIGHT, or NAME with weight 1. NAME is pkg.module:function,
    from the traces of a question and the problem to a number for each trace."""
    lambda_b: Annotated[float, Ge(0), Needs("k_hinted")] = 0.8
    """Loss weight of second-round traces."""
    learn_hinted_after: Annotated[HintedContext, Needs("k_hinted")] = "hint"
    """Prompt after which a hinted trace is trained: the one with the hint, under which it was
    sampled, or the cold one (context distillation, with importance ratios of 1). cold is not in the
    paper; it learns faster and may collapse later, so watch the cold accuracy."""

    reread: Reread = "unsolved"
    """Cold traces that the reader scores again after a prompt with a hint, for
    --algo.distillation.beta: none; wrong ones; those of a role without a right trace (unsolved);
    those of a role whose traces are all right or all wrong, so that rewards say nothing (alike);
    all. Not in the paper."""
    reread_hint: Annotated[RereadHint, _REREADS] = "peer"
    """Hint in that prompt: a peer's right trace, or one of the role's own (SDPO,
    arXiv:2601.20802)."""
    # A peer that is right by luck has nothing to teach.
    reread_least: Annotated[Share, _REREADS] = 0.5
    """Least share of right cold traces on this question of the role whose trace is the hint: below
    it a right answer may be luck."""
    reread_contrast: Annotated[bool, _REREADS] = False
    """Compare with log-probabilities after a wrong trace's hint instead of the policy's own. This
    cancels the effect that any hint has on style (RLCSD, arXiv:2606.11709). It needs
    --algo.distillation.likeliest 0. Traces without such a hint are not reread."""

    def check(self) -> None:
        names = [*(field.name for field in fields(TermWeights)), *map(term_name, self.terms)]
        refuse(
            (
                len({*names}) < len(names),
                f"core-teaching: terms {' '.join(self.terms)}: two terms have one name; rename "
                f"yours, as the names are {', '.join(names)}",
            ),
            (
                self.reread_hint == "own" and self.reread in ("unsolved", "alike", "all"),
                "core-teaching: reread_hint own hints at a wrong trace with a right one of its "
                f"role: choose reread wrong, not {self.reread}",
            ),
        )

    @property
    def read_tokens(self) -> int:
        """Most tokens of a context that others wrote, beside the prompt."""
        return self.hint_tokens if self.probed else 0

    @property
    def probed(self) -> bool:
        """Whether a probe has second tries: those of training, or else the last cold trace."""
        return self.k_hinted > 0 or self.k_cold > 1


@dataclass(frozen=True)
class TermWeights:
    """What each term is worth in one epoch; the term's name -> its weight."""

    exploitation: float
    exploration: float
    cross_model: float
    trace_accuracy: float
    rescue: float
    teacher_lift: float


def weights_at(settings: CoreTeachingSettings, epoch: int) -> TermWeights:
    """The weights in ``epoch``, counted from 1."""
    return TermWeights(
        exploitation=settings.w_exploit,
        exploration=_in_epoch(settings.w_explore, epoch),
        cross_model=_in_epoch(settings.lambda_cm, epoch),
        trace_accuracy=settings.lambda_ta,
        rescue=settings.r_teach,
        teacher_lift=settings.teacher_lift,
    )


def weighted(settings: CoreTeachingSettings) -> list[str]:
    """The reward terms that are worth something in some epoch, those of one's own included."""
    epochs = range(1, 1 + max(len(settings.w_explore), len(settings.lambda_cm)))
    weights = [weights_at(settings, epoch) for epoch in epochs]
    known = [term.name for term in fields(TermWeights)]
    return [
        *(name for name in known if any(getattr(at, name) for at in weights)),
        *(term_name(text) for text in settings.terms),
    ]


def _in_epoch(values: tuple[float, ...], epoch: int) -> float:
    return values[min(max(epoch, 1), len(values)) - 1]
