"""Every knob of the core-teaching environment, and what each reward term is worth when."""

from dataclasses import dataclass, fields
from functools import partial
from typing import Literal

from coterie.datatypes import check_least
from coterie.envs.core_teaching.terms import term_name
from coterie.envs.prompts import StrategyStyle
from coterie.envs.settings import require, require_countable, require_finite, require_known
from coterie.rewards.exploitation import TraceAccuracyMode

TeacherChoice = Literal["best", "prefer-peer", "rotating", "difficulty-routed"]
TeacherScore = Literal["total", "exploitation"]
ExploreMode = Literal["literal", "leave-one-out", "mean-pairwise", "strategy-ratio"]
ExplorePool = Literal["question", "model"]
End = Literal["head", "tail"]
HintedContext = Literal["hint", "cold"]
Reread = Literal["none", "wrong", "unsolved", "alike", "all"]
RereadHint = Literal["peer", "own"]

_require = partial(require, "core-teaching")


@dataclass(frozen=True)
class CoreTeachingSettings:
    """Peer distillation on one problem, in the frame of CoRe (arXiv:2601.21600), whose symbols
    these are. Only being right is paid, and traces of a role that has no right one are read again
    behind a peer's: the arm "expected" of docs/evidence.md. CoRe's own form is the preset
    ``core-tiny``."""

    k_cold: int = 3
    """K: cold traces per role."""
    k_hinted: int = 0
    """K': traces per role in the second round; 0 leaves that round out (plain group training on
    the cold traces alone)."""
    hint_probability: float = 0.75
    """Chance that a second-round trace sees the hint, when there is one."""
    hint_tokens: int = 64
    """L: longest hint, in the student's own tokens."""
    truncate: End = "head"
    """Which end of a hint that is too long is kept."""
    max_new_tokens: int = 48
    """Longest trace when training."""
    eval_max_new_tokens: int = 0
    """Longest trace in evaluation; 0 means as in training."""
    stop: tuple[str, ...] = ()
    """Strings that end a trace."""
    prompt_style: StrategyStyle = "plain"
    """plain: the paper's prompts; answer: the question, and one sentence that asks for a last line
    with the answer; strategies: asks for strategy blocks and a final answer."""
    teacher: TeacherChoice = "prefer-peer"
    """Whose correct cold trace becomes the hint. best: the best of all. prefer-peer: the best of
    another role than the student's, if there is one. rotating: roles come first in turn, by step.
    difficulty-routed: in turn where at least half of the cold traces are right, otherwise the role
    that is right most often."""
    teacher_score: TeacherScore = "total"
    """What makes a trace the best: all reward terms over the cold traces, or exploitation only."""

    w_exploit: float = 1.0
    """w_1: weight of being right."""
    alpha: float = 0.0
    """Share of partial credit within exploitation."""
    alpha_only_if_wrong: bool = False
    """Pay partial credit to wrong answers only (a correct trace then earns 1, not 1 + alpha)."""
    partial_on_numbers: bool = False
    """Partial credit for shared digits where the gold answer is a number."""
    w_explore: tuple[float, ...] = (0.0,)
    """w_2: weight of exploration by epoch; the last one goes on."""
    explore_mode: ExploreMode = "leave-one-out"
    """literal: the paper's greedy set, zero unless its cap binds. leave-one-out: distance to the
    nearest other trace. mean-pairwise: to the others on average. strategy-ratio: share of distinct
    strategies inside one trace."""
    explore_pool: ExplorePool = "question"
    """Whom a trace is compared with: all traces of the question, or those of its own role."""
    explore_correct_only: bool = True
    """Pay exploration to correct traces only."""
    delta: float = 0.15
    """Margin below which distance is worth nothing."""
    cap: int = 10
    """Largest size of the greedy set (literal and strategy-ratio)."""
    lambda_cm: tuple[float, ...] = (0.0,)
    """Weight of distance from partners' traces by epoch; the last one goes on."""
    delta_cm: float = 0.15
    """Its margin."""
    eta: float = 1.0
    """Exploitation that a partner's best trace must reach to be worth differing from."""
    cross_requires_correct: bool = True
    """Pay distance from partners to correct traces only."""
    lambda_ta: float = 0.0
    """Weight of trace accuracy."""
    trace_accuracy: TraceAccuracyMode = "v2"
    """v1 pays correct traces on easy questions, v2 on hard ones."""
    r_teach: float = 0.0
    """Bonus of a rescued trace."""
    teacher_lift: float = 0.0
    """Pays the teacher's trace for what its hint changed in the other roles' success. Not in the
    paper."""
    terms: tuple[str, ...] = ()
    """Reward terms of your own, NAME=WEIGHT each, or NAME, which weighs 1: NAME is
    pkg.module:function, which is given the traces of a question and the problem, and gives each
    trace a number."""
    lambda_b: float = 0.8
    """Loss weight of second-round traces."""
    learn_hinted_after: HintedContext = "hint"
    """The prompt after which a hinted trace is learned: the one with the hint, under which it was
    sampled, or the cold one, under which nobody sampled it (context distillation; its importance
    ratios are then taken to be 1). The latter is not in the paper; it learns faster, and may
    collapse later: watch the cold accuracy."""

    reread: Reread = "unsolved"
    """Which cold traces are read again behind the prompt with a hint, for
    --algo.distillation.beta: none, the wrong ones, those of a role without a right one (unsolved),
    of a role whose traces are all right or all wrong, so that its rewards say nothing (alike), or
    all. Not in the paper."""
    reread_hint: RereadHint = "peer"
    """What they are read behind: a peer's right trace (of questions that a peer has solved), or
    one's own (SDPO, arXiv:2601.20802)."""
    # A peer that is right by luck has nothing to teach.
    reread_least: float = 0.5
    """Least share of right cold traces that a role needs for one of them to be that hint: of a role
    that is right by luck, it would be taken for reasoning."""

    def __post_init__(self) -> None:
        ones = dict.fromkeys(("k_cold", "hint_tokens", "max_new_tokens", "cap"), 1)
        none = dict.fromkeys(("k_hinted", "eval_max_new_tokens", "lambda_b"), 0)
        check_least(self, {**ones, **none}, at="core-teaching: ")
        require_countable("core-teaching", self, "k_cold", "k_hinted")
        _require(
            0 <= self.hint_probability <= 1,
            f"hint_probability is {self.hint_probability}: it must be between 0 and 1",
        )
        _require(
            0 <= self.reread_least <= 1,
            f"reread_least is {self.reread_least}: it must be between 0 and 1",
        )
        names = [*(field.name for field in fields(Weights)), *map(term_name, self.terms)]
        _require(
            len({*names}) == len(names),
            f"terms {' '.join(self.terms)} would give two terms one name; the names are "
            f"{', '.join(names)}",
        )
        _require(bool(self.w_explore), "w_explore is empty: name a weight for epoch 1 at least")
        _require(bool(self.lambda_cm), "lambda_cm is empty: name a weight for epoch 1 at least")
        require_finite("core-teaching", self)
        require_known("core-teaching", self)
        _require(
            self.k_hinted > 0 or (self.learn_hinted_after == "hint" and not self.teacher_lift),
            "learn_hinted_after cold and teacher_lift are of the second round, which k_hinted 0 "
            "leaves out; choose k_hinted 1",
        )
        _require(
            self.reread != "none" or self.reread_hint == "peer",
            "reread_hint does nothing while reread is none; choose reread wrong",
        )
        _require(
            self.reread_hint != "own" or self.reread == "wrong",
            f"reread {self.reread} with reread_hint own would read right traces behind themselves, "
            "or nothing; choose reread wrong",
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
class Weights:
    """What each term is worth in one epoch; the term's name -> its weight."""

    exploitation: float
    exploration: float
    cross_model: float
    trace_accuracy: float
    rescue: float
    teacher_lift: float


def weights_at(settings: CoreTeachingSettings, epoch: int) -> Weights:
    """The weights in ``epoch``, counted from 1."""
    return Weights(
        exploitation=settings.w_exploit,
        exploration=_in_epoch(settings.w_explore, epoch),
        cross_model=_in_epoch(settings.lambda_cm, epoch),
        trace_accuracy=settings.lambda_ta,
        rescue=settings.r_teach,
        teacher_lift=settings.teacher_lift,
    )


def _in_epoch(values: tuple[float, ...], epoch: int) -> float:
    return values[min(max(epoch, 1), len(values)) - 1]
