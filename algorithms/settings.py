"""How a learner turns gradients into steps, and what a second reading of a trace adds to them. Each
field's docstring is its help text."""

import math
from dataclasses import dataclass, replace
from importlib.util import find_spec
from typing import Literal

from coterie.datatypes import UserError, check_literals, check_numbers, refuse


@dataclass(frozen=True)
class LearnerSettings:
    """The optimizer of each trained role. The defaults suit full training of the tiny models."""

    lr: float = 1e-3
    """Peak learning rate; 1e-6 is usual for full weights of billions, 1e-5 for LoRA on them."""
    betas: tuple[float, float] = (0.9, 0.98)
    """Decay rates of AdamW's two moments."""
    weight_decay: float = 0.0
    """AdamW's decoupled weight decay."""
    moments: Literal["float32", "8bit", "paged-float32", "paged-8bit"] = "float32"
    """Format of AdamW's two moments. 8bit: 2 bytes a weight in place of 8, rounded block by block
    (arXiv:2110.02861); paged: moved from a full GPU to main memory. All but float32 need pip
    install -e ".[8bit]"."""
    warmup: float = 0.0
    """Steps of linear warm-up; below 1, a share of all steps."""
    schedule: Literal["constant", "linear", "cosine"] = "constant"
    """Learning rate after warm-up: constant, or decaying to 0 at the end of the run."""
    max_grad_norm: float = 1.0
    """Largest norm of the gradient; a larger one is scaled down."""
    epochs: int = 1
    """Passes over the rows of one training step."""
    minibatches: int = 1
    """Optimizer steps in one pass; each takes its share of the rows."""
    micro_batch_tokens: int = 8192
    """Tokens of one forward pass, padding included; a prompt that packed rows share counts once. It
    limits memory and changes no result."""
    importance_correction: Literal[
        "none", "token-truncate", "token-mask", "sequence-truncate", "sequence-mask"
    ] = "token-truncate"
    """What to do where sampler and trainer disagree about a probability: cap weights (truncate), or
    leave out their tokens or rows (mask)."""
    importance_cap: float = 2.0
    """Largest importance weight, trainer over sampler."""
    skip_idle_rows: bool = True
    """Leave out rows with advantage 0 that cannot change the gradient (no KL penalty, no entropy
    bonus). Metrics then describe the other rows."""

    def __post_init__(self) -> None:
        check_literals(self, "learner.")
        check_numbers(self, "--learner.")
        refuse(
            (not 0 < self.lr < math.inf, "learner.lr must be above 0, and finite"),
            (not all(0 <= b < 1 for b in self.betas), "learner.betas must lie in [0, 1)"),
            (
                not 0 <= self.weight_decay < math.inf,
                "learner.weight-decay must not be negative, and finite",
            ),
            (not 0 <= self.warmup < math.inf, "learner.warmup must not be negative, and finite"),
            (not self.max_grad_norm > 0, "learner.max-grad-norm must be above 0"),
            (
                self.epochs < 1 or self.minibatches < 1,
                "learner.epochs and minibatches must be at least 1",
            ),
            (self.micro_batch_tokens < 1, "learner.micro-batch-tokens must be at least 1"),
            (not self.importance_cap >= 1, "learner.importance-cap must be at least 1"),
        )

    @property
    def optimizer_steps(self) -> int:
        """Optimizer steps in one training step."""
        return self.epochs * self.minibatches

    @property
    def needs_total(self) -> bool:
        """Whether the learning rate depends on how many training steps there are in all."""
        return self.schedule != "constant" or 0 < self.warmup < 1


def check_moments(settings: LearnerSettings) -> None:
    """Refuse moments that no library here can hold.

    Raises:
        UserError: bitsandbytes is not installed.
    """
    if settings.moments != "float32" and find_spec("bitsandbytes") is None:
        raise UserError(
            f"--learner.moments {settings.moments} needs bitsandbytes, which is not installed: "
            'pip install -e ".[8bit]", or leave it at float32'
        )


def warmup_steps(warmup: float, total_steps: int | None) -> float:
    """Training steps of warm-up; below 1, ``warmup`` is a share of ``total_steps``."""
    return warmup * (total_steps or 0) if warmup < 1 else warmup


def lr_factor(
    done: float,
    schedule: Literal["constant", "linear", "cosine"],
    *,
    warmup: float,
    total: int | None,
    step: float = 1.0,
) -> float:
    """Share of the peak learning rate for the optimizer step that follows ``done`` training steps.

    Rises linearly so that it is complete after ``warmup``, then constant or down to 0 at ``total``.
    ``step`` is what one optimizer step counts for, in training steps.
    """
    if done + step < warmup:
        return (done + step) / warmup
    if schedule == "constant" or total is None:
        return 1.0
    left = max(0.0, (total - max(done, warmup)) / max(total - warmup, 1e-9))
    return left if schedule == "linear" else (1 - math.cos(math.pi * left)) / 2


@dataclass(frozen=True)
class Distillation:
    """On-policy self-distillation (SDPO, arXiv:2601.20802; OPSD, arXiv:2601.18734).

    A reader scores a trace again after another context, such as a prompt with a peer's right trace
    as a hint, which the environment chooses. Each token's advantage grows by
    beta clip(d_t, -bound, bound), where d_t is the reader's log-probability of the token after that
    context less the policy's own. Nothing is sampled for it.
    """

    beta: float = 0.0
    """Weight of the difference in log-probability; 0 is off."""
    bound: float = 2.0
    """Largest difference, in nats."""
    likeliest: int = 0
    """0: the difference at the sampled token. K: its expectation over the next token, by the
    reader's K most likely tokens and one class for all others (the logit-level form of SDPO), which
    has less variance."""
    divergence: Literal["reverse", "forward"] = "reverse"
    """With likeliest: weigh a next token by the policy's probability, or by the reader's, as far as
    bound lets it differ (GKD, arXiv:2306.13649). Only forward teaches what the policy hardly ever
    writes; the bound must be wide for that, such as 10."""
    fade: float = 0.0
    """Share of --steps over which beta falls linearly to 0; 0: it stays constant."""
    reader: Literal["average", "start"] = "average"
    """Weights of the reader: a moving average of the role's weights, or those before training."""
    decay: float = 0.95
    """Decay of that moving average in one step."""

    def __post_init__(self) -> None:
        check_literals(self, "algo.distillation.")
        refuse(
            (
                not 0 <= self.beta < math.inf,
                "algo.distillation.beta must not be negative, and finite",
            ),
            (not 0 < self.bound < math.inf, "algo.distillation.bound must be above 0, and finite"),
            (not 0 <= self.decay < 1, "algo.distillation.decay must be at least 0 and below 1"),
            (self.likeliest < 0, "algo.distillation.likeliest must not be negative"),
            (
                self.divergence == "forward" and self.likeliest == 0,
                "algo.distillation.divergence forward is about next tokens that were not sampled: "
                "say how many with --algo.distillation.likeliest 64",
            ),
            (not 0 <= self.fade <= 1, "algo.distillation.fade is a share of the run, 0 to 1"),
        )

    def after(self, done: float) -> "Distillation":
        """These settings, with ``beta`` as it is once the share ``done`` of the run is over."""
        left = max(0.0, 1 - done / self.fade) if self.fade else 1.0
        return replace(self, beta=self.beta * left)
