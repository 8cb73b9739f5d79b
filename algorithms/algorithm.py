"""An algorithm is a bundle of independent choices, written down as plain data; the table of them.

Nothing here computes: :mod:`coterie.algorithms.credit` reads the baseline and the scale,
:mod:`coterie.algorithms.surrogates` the surrogate, :mod:`coterie.algorithms.objective` the
reduction.
"""

from dataclasses import dataclass, field, replace
from typing import Annotated, Literal

from annotated_types import Ge, Gt, Interval

from coterie.cli.plugins import Plugins, load
from coterie.datatypes import (
    Needs,
    Trajectory,
    UserError,
    Validated,
    idle_fields,
    refuse,
    unvalidated,
)
from coterie.datatypes.validation import Share


@dataclass(frozen=True)
class Surrogate(Validated):
    """The objective in place of the expected advantage: a frozen dataclass of its numbers, for
    which :mod:`coterie.algorithms.surrogates` has a function. One of your own derives from this
    class, so that a run's ``config.json`` can be read back."""


@dataclass(frozen=True)
class ClippedRatio(Surrogate):
    """PPO's clipped surrogate, -min(r A, clip(r, 1 - low, 1 + high) A) (arXiv:1707.06347)."""

    level: Literal["token", "sequence"] = "token"
    """Importance ratio of each token, or the geometric mean over the sequence (GSPO,
    arXiv:2507.18071)."""
    low: Annotated[float, Interval(gt=0, lt=1)] = 0.2
    """The ratio is clipped below at 1 - low."""
    high: Annotated[float, Gt(0)] = 0.2
    """The ratio is clipped above at 1 + high."""
    dual: Annotated[float | None, Gt(1)] = None
    """Largest ratio where the advantage is negative (dual clip, arXiv:1912.09729); default:
    none."""


@dataclass(frozen=True)
class SoftGate(Surrogate):
    """A smooth gate in place of a clip, -(4 / tau) sigmoid(tau (r - 1)) A (SAPO,
    arXiv:2511.20347)."""

    tau_positive: Annotated[float, Gt(0)] = 1.0
    """Steepness of the gate where the advantage is positive."""
    tau_negative: Annotated[float, Gt(0)] = 1.05
    """Steepness of the gate where it is not."""


@dataclass(frozen=True)
class ClippedWeight(Surrogate):
    """A bounded weight on the score function, -sg(min(r, high)) A log pi (CISPO,
    arXiv:2506.13585)."""

    high: Annotated[float, Ge(1)] = 5.0
    """Largest weight of a token: an absolute value, not a distance from 1."""


@dataclass(frozen=True)
class SequenceWeight(Surrogate):
    """``-sg(clip(s, 1 - low, 1 + high)) A log pi``: GSPO in the words of CoRe (arXiv:2601.21600,
    appendix C). A clipped sequence keeps its gradient, unlike in the published GSPO."""

    low: Annotated[float, Interval(gt=0, lt=1)] = 3e-4
    """The sequence's ratio is clipped below at 1 - low."""
    high: Annotated[float, Gt(0)] = 4e-4
    """The sequence's ratio is clipped above at 1 + high."""


@dataclass(frozen=True)
class GateWeight(Surrogate):
    """``-sg((4 / tau) sigmoid(tau (r - 1))) A log pi``: SAPO in the words of CoRe
    (arXiv:2601.21600, appendix C). The weight grows with r and is 2 / tau at r = 1, where the
    published one is 1 and falls off on both sides."""

    tau_positive: Annotated[float, Gt(0)] = 1.0
    """Steepness of the gate where the advantage is positive."""
    tau_negative: Annotated[float, Gt(0)] = 1.05
    """Steepness of the gate where it is not."""


@dataclass(frozen=True)
class Distillation(Validated):
    """On-policy distillation from the role's own weights or from another model.

    A reader scores the tokens that the role sampled: the role's own weights after another context
    (SDPO, arXiv:2601.20802; OPSD, arXiv:2601.18734), or a teacher model (generalised knowledge
    distillation, arXiv:2306.13649). Each token's advantage grows by beta clip(d, -bound, bound),
    where d is the reader's log-probability of the token less the policy's own.
    """

    beta: Annotated[float, Ge(0)] = 0.0
    """Weight of the difference in log-probability; 0 is off."""
    bound: Annotated[float, Gt(0)] = 2.0
    """Largest difference, in nats."""
    likeliest: Annotated[int, Ge(0)] = 0
    """0: the difference at the sampled token. K: its expectation over the next token, by the
    reader's K most likely tokens and one class for all others (the logit-level form of SDPO), which
    has less variance."""
    fade: Share = 0.0
    """Share of --steps over which beta falls linearly to 0; 0: it stays constant."""
    reader: Literal["average", "start"] = "average"
    """Weights of the reader: a moving average of the role's weights, or those before training."""
    decay: Annotated[float, Interval(ge=0, lt=1), Needs("reader", "average")] = 0.95
    """Decay of that moving average in one step."""
    teacher: str = ""
    """Model that reads in place of the role's own weights: a hub id, a checkpoint, a GGUF file or
    tiny:NAME. It needs the role's vocabulary."""
    teacher_revision: Annotated[str, Needs("teacher")] = ""
    """The teacher's commit, tag or branch on the hub."""
    rewards: bool = True
    """Also learn from rewards. Without it, the loss has the distillation term only."""

    def check(self) -> None:
        own = (self.reader, self.decay) != ("average", 0.95)
        refuse(
            *idle_fields(self, "algo.distillation"),
            (
                bool(self.teacher) and not self.beta,
                "algo.distillation.teacher does nothing without algo.distillation.beta, such as 1",
            ),
            (
                bool(self.teacher) and own,
                "algo.distillation.reader and decay are about the role's own weights; leave them "
                "out, or algo.distillation.teacher",
            ),
            (
                not self.rewards and not self.beta,
                "algo.distillation.no-rewards leaves nothing to learn from without "
                "algo.distillation.beta, such as 1",
            ),
            (
                not self.rewards and 0 < self.fade < 1,
                "algo.distillation.no-rewards leaves nothing to learn from once "
                f"algo.distillation.fade {self.fade:g} has brought beta to 0; leave out one of the "
                "two, or let beta fall over the whole run, algo.distillation.fade 1",
            ),
        )

    @property
    def from_itself(self) -> bool:
        """Whether the role's own weights read, after another context."""
        return self.beta > 0 and not self.teacher

    @property
    def teaches(self) -> bool:
        """Whether a teacher reads."""
        return self.beta > 0 and bool(self.teacher)

    @property
    def averages(self) -> bool:
        """Whether the reader is a moving average of the role's weights."""
        return self.from_itself and self.reader == "average"

    def reads(self, row: Trajectory) -> bool:
        """Whether the reader reads ``row``."""
        return self.teaches or (self.from_itself and row.reread_after is not None)

    def after(self, done: float) -> "Distillation":
        """These settings, with ``beta`` as it is once the share ``done`` of the run is over."""
        left = max(0.0, 1 - done / self.fade) if self.fade else 1.0
        # check() refuses settings that never do anything; these did until beta fell to 0.
        with unvalidated():
            return replace(self, beta=self.beta * left)


Reduction = Literal["sequence-mean", "token-mean", "constant-length"]


@dataclass(frozen=True)
class Algorithm(Validated):
    """From rewards to a gradient: baseline, scale, surrogate, reduction, KL penalty."""

    baseline: Literal["group-mean", "leave-one-out", "role-average"] = "group-mean"
    """What is subtracted from a reward: the mean of its group, the mean of the group's other
    rewards, or, for self-play, a running average of the role's rewards (SPIRAL,
    arXiv:2506.24119)."""
    baseline_decay: Annotated[float, Interval(ge=0, lt=1), Needs("baseline", "role-average")] = 0.95
    """With role-average: decay of the running average, b <- decay b + (1 - decay) r."""
    scale: Literal["none", "group-std", "batch-std"] = "group-std"
    """What the difference is divided by: nothing, the standard deviation of the group's rewards, or
    that of all differences in the batch."""
    combine: Literal["sum-then-normalise", "normalise-then-sum"] = "sum-then-normalise"
    """sum-then-normalise: reward terms are summed, then compared. normalise-then-sum: each term is
    compared and scaled within its group, and the sum is scaled over the batch (GDPO,
    arXiv:2601.05242), so every term counts the same whatever its weight."""
    advantage: str = ""
    """pkg.module:function of your own in place of baseline and scale: from rewards and group
    numbers, arrays (M,), to advantages (M,)."""
    ddof: Literal[0, 1] = 1
    """Standard deviation of the population (0), or its unbiased estimate (1)."""
    epsilon: Annotated[float, Ge(0)] = 1e-4
    """Added to the standard deviation."""
    surrogate: Surrogate = ClippedRatio()
    reduction: Reduction = "sequence-mean"
    """Mean over agents of the token mean, mean over all tokens, or sum over all tokens divided by
    agents times a constant length. The rows of an agent in an episode count together as one."""
    length: Annotated[int, Ge(0), Needs("reduction", "constant-length")] = 0
    """The constant of constant-length, in tokens; 0: the environment's limit."""
    kl_coefficient: Annotated[float, Ge(0)] = 0.0
    """Weight of the KL penalty towards the reference policy (the model before training); 0 is
    off."""
    kl_estimator: Annotated[Literal["k1", "k2", "k3"], Needs("kl_coefficient")] = "k3"
    """Estimator of the KL divergence: k1 = d, k2 = d^2 / 2, k3 = exp(-d) - 1 + d, with d = log pi -
    log pi_ref."""
    kl_importance: Annotated[bool, Needs("kl_coefficient")] = False
    """Multiply the KL penalty by the token's importance ratio, which makes its gradient
    unbiased; for k1 and k3, as k2's is that of the divergence without it."""
    kl_in_reward: Annotated[float, Ge(0)] = 0.0
    """Weight of a KL penalty on the reward, beta sum_t (log pi - log pi_ref) over an agent's
    tokens, as RLOO and REINFORCE++ were first written; 0 is off."""
    entropy_coefficient: float = 0.0
    """Weight of a bonus on the mean entropy at sampled tokens; 0 is off."""
    distillation: Distillation = field(default_factory=Distillation)
    dynamic_sampling: bool = False
    """Train only on groups whose rewards differ, and sample until a step is full (DAPO,
    arXiv:2503.14476). The over-long penalty does not count."""
    max_generation_batches: Annotated[int, Ge(1), Needs("dynamic_sampling")] = 10
    """With dynamic sampling: most rounds of sampling in one step."""
    generation_batch: Annotated[int, Ge(0), Needs("dynamic_sampling")] = 0
    """With dynamic sampling: problems of one round; 0: a step's number. Surplus groups are
    dropped."""
    overlong_limit: Annotated[int, Ge(0)] = 0
    """Sampled tokens at which the over-long penalty is full (DAPO); 0 is off."""
    overlong_buffer: Annotated[int, Ge(0)] = 0
    """Tokens before that limit over which the penalty grows linearly."""
    overlong_factor: Annotated[float, Ge(0)] = 1.0
    """Size of the full penalty."""

    def __post_init__(self) -> None:
        # Before the types, so that the author of a surrogate reads how to mend it.
        if not _is_surrogate(self.surrogate):
            raise UserError(
                f"algo.surrogate is a {type(self.surrogate).__name__}: derive it from "
                "coterie.algorithms.Surrogate and make it a frozen dataclass"
            )
        super().__post_init__()

    @property
    def has_custom_surrogate(self) -> bool:
        """Whether the loss is one's own, not one of this project."""
        return type(self.surrogate).__module__ != Algorithm.__module__

    def check(self) -> None:
        refuse(
            *idle_fields(self, "algo"),
            self._wrong_average(),
            (
                bool(self.advantage) and self.combine == "normalise-then-sum",
                "algo.advantage compares whole rewards; leave algo.combine at sum-then-normalise",
            ),
            (
                self.kl_coefficient != 0 and self.kl_estimator == "k1" and not self.kl_importance,
                "k1 in the loss has a gradient of zero on average; use algo.kl-estimator k3, or "
                "switch on algo.kl-importance",
            ),
            (
                self.kl_estimator == "k2" and self.kl_importance,
                "k2 in the loss has the gradient of the divergence, from which algo.kl-importance "
                "would lead away; leave it out, or use algo.kl-estimator k3",
            ),
            (
                self.combine == "normalise-then-sum" and self.scale != "group-std",
                "algo.combine normalise-then-sum scales each term by its group; leave algo.scale "
                "at group-std",
            ),
            (
                self.combine == "normalise-then-sum" and self.kl_in_reward > 0,
                "algo.kl-in-reward has no effect with algo.combine normalise-then-sum, which "
                "scales every term to the same size; use algo.kl-coefficient",
            ),
            (
                (self.overlong_limit > 0) != (self.overlong_buffer > 0),
                "the over-long penalty needs both algo.overlong-limit and algo.overlong-buffer",
            ),
            (
                self.combine == "normalise-then-sum" and self.overlong_limit > 0,
                "algo.overlong-factor has no effect with algo.combine normalise-then-sum, which "
                "scales every term to the same size; use sum-then-normalise, or set "
                "algo.overlong-limit and algo.overlong-buffer to 0",
            ),
            (
                not self.distillation.rewards and self.kl_in_reward > 0,
                "algo.kl-in-reward has no effect with algo.distillation.no-rewards, which leaves "
                "rewards out; use algo.kl-coefficient",
            ),
            (
                self.overlong_buffer > self.overlong_limit,
                "algo.overlong-buffer must be at most algo.overlong-limit",
            ),
        )

    def _wrong_average(self) -> tuple[bool, str]:
        """What a running average as a baseline does not go with."""
        groups = self.scale == "group-std" or bool(self.advantage) or self.dynamic_sampling
        return (
            self.baseline == "role-average" and groups,
            "algo.baseline role-average compares nobody within a group: say algo.scale none (or "
            "batch-std), and leave out algo.combine normalise-then-sum, algo.advantage and "
            "algo.dynamic-sampling",
        )

    def after(self, done: float) -> "Algorithm":
        """This algorithm once the share ``done`` of the run is over
        (:meth:`Distillation.after`)."""
        with unvalidated():
            return replace(self, distillation=self.distillation.after(done))

    @property
    def needs_reference(self) -> bool:
        """Whether anything is compared with the model before training."""
        distillation = self.distillation
        reads = distillation.beta and distillation.reader == "start"
        return bool(self.kl_coefficient or self.kl_in_reward or reads)


def _is_surrogate(value: object) -> bool:
    own = vars(type(value)).get("__dataclass_params__")
    return isinstance(value, Surrogate) and own is not None and own.frozen


ALGORITHMS: dict[str, Algorithm] = {
    # DeepSeekMath, arXiv:2402.03300
    "grpo": Algorithm(),
    # Understanding R1-Zero-like training, arXiv:2503.20783
    "dr-grpo": Algorithm(scale="none", reduction="constant-length"),
    # arXiv:2503.14476
    "dapo": Algorithm(
        surrogate=ClippedRatio(low=0.2, high=0.28), reduction="token-mean", dynamic_sampling=True
    ),
    # arXiv:2507.18071
    "gspo": Algorithm(surrogate=ClippedRatio(level="sequence", low=3e-4, high=4e-4)),
    # arXiv:2511.20347
    "sapo": Algorithm(surrogate=SoftGate()),
    # MiniMax-M1, arXiv:2506.13585; the bound is ScaleRL's, arXiv:2510.13786
    "cispo": Algorithm(surrogate=ClippedWeight(), reduction="token-mean"),
    # arXiv:2402.14740. The score of a whole sequence is the sum over its tokens: the token mean is
    # that, up to one factor a step.
    "rloo": Algorithm(baseline="leave-one-out", scale="none", reduction="token-mean"),
    # The variant with a group baseline, arXiv:2501.03262
    "reinforce++": Algorithm(scale="batch-std", reduction="token-mean"),
    # The words of CoRe, arXiv:2601.21600, appendix C; population deviation as in equation 7
    "gspo-paper": Algorithm(surrogate=SequenceWeight(), ddof=0, epsilon=1e-8),
    "sapo-paper": Algorithm(surrogate=GateWeight(), ddof=0, epsilon=1e-8),
}


PLUGINS = Plugins("coterie.algorithms", "algorithm")
"""An entry's name is what ``--algo`` takes; its value is an :class:`Algorithm`."""


def names() -> list[str]:
    """Known algorithms, in the order of the table; then those of installed packages."""
    return [*ALGORITHMS, *sorted(PLUGINS.names() - {*ALGORITHMS})]


def get(name: str) -> Algorithm:
    """The algorithm called ``name``: of the table, of an installed package's entry point, or
    ``pkg.module:NAME``, which is an :class:`Algorithm`.

    Raises:
        UserError: there is none, or what the name leads to is something else.
    """
    if name in ALGORITHMS:
        return ALGORITHMS[name]
    path, title = PLUGINS.find(name, names())
    algorithm = load(path, title)
    if not isinstance(algorithm, Algorithm):
        raise UserError(
            f"{title} is a {type(algorithm).__name__}; it must be a coterie.algorithms.Algorithm"
        )
    return algorithm


def register(name: str, algorithm: Algorithm) -> None:
    """Add ``algorithm`` to the table, so that ``--algo name`` finds it.

    Raises:
        UserError: the name is taken.
    """
    if name in ALGORITHMS:
        raise UserError(f"an algorithm called {name!r} exists already; choose another name")
    ALGORITHMS[name] = algorithm
