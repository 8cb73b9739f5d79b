"""How a learner turns gradients into steps. Each field's docstring is its help text."""

import math
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Literal

from coterie.datatypes import UserError, check_literals, check_numbers, refuse


@dataclass(frozen=True)
class LearnerSettings:
    """One role's optimiser. The defaults are what full training of the tiny team wants."""

    lr: float = 1e-3
    """Peak learning rate; 1e-6 is usual for full weights of billions, 1e-5 for LoRA on them."""
    betas: tuple[float, float] = (0.9, 0.98)
    """AdamW's decay rates of the two moments."""
    weight_decay: float = 0.0
    """AdamW's decoupled weight decay."""
    moments: Literal["float32", "8bit", "paged-float32", "paged-8bit"] = "float32"
    """What AdamW's two moments are held in: 8bit: 2 bytes a weight in place of 8, rounded block by
    block (arXiv:2110.02861); paged: they leave a GPU whose memory is full for main memory. All but
    float32 need pip install -e ".[8bit]"."""
    warmup: float = 0.0
    """Training steps of linear warm-up; below 1, a share of all steps."""
    schedule: Literal["constant", "linear", "cosine"] = "constant"
    """Learning rate after warm-up: constant, or down to 0 at the end of the run."""
    max_grad_norm: float = 1.0
    """The gradient of an optimizer step is scaled down to this norm."""
    epochs: int = 1
    """Passes over the rows of one training step."""
    minibatches: int = 1
    """Optimizer steps in one pass; each takes its share of the rows."""
    micro_batch_tokens: int = 8192
    """Tokens that one forward pass computes: with padding where rows are padded; where they stand
    end to end, a prompt that they share once. It bounds memory and changes no result."""
    importance_correction: Literal[
        "none", "token-truncate", "token-mask", "sequence-truncate", "sequence-mask"
    ] = "token-truncate"
    """What is done where sampler and trainer disagree about a probability: weights above the cap
    are cut down to it, or their tokens or rows are left out."""
    importance_cap: float = 2.0
    """Largest importance weight, trainer over sampler."""
    skip_idle_rows: bool = True
    """Leave out rows with an advantage of 0 where they cannot change the gradient (no divergence,
    no entropy bonus); metrics then describe the other rows."""

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
