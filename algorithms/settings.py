"""How a learner turns gradients into steps. Each field's docstring is its help text."""

import math
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Annotated, Literal

from annotated_types import Ge, Gt, Interval, Le

from coterie.datatypes import UserError, Validated, refuse


@dataclass(frozen=True)
class LearnerSettings(Validated):
    """The optimizer of each trained role. The defaults suit full training of the tiny models."""

    lr: Annotated[float, Gt(0)] = 1e-3
    """Peak learning rate. The default suits tiny models; larger ones have defaults by size."""
    # training/config/model_defaults.py has these rates.
    betas: Annotated[tuple[float, float], Interval(ge=0, lt=1)] = (0.9, 0.98)
    """Decay rates of AdamW's two moments."""
    weight_decay: Annotated[float, Ge(0)] = 0.0
    """AdamW's decoupled weight decay."""
    moments: Literal["float32", "8bit", "paged-float32", "paged-8bit"] = "float32"
    """Format of AdamW's two moments. 8bit: 2 bytes a weight in place of 8, rounded block by block
    (arXiv:2110.02861); paged: moved from a full GPU to main memory. All but float32 need pip
    install -e ".[8bit]"."""
    warmup: Annotated[float, Ge(0)] = 0.0
    """Steps of linear warm-up; below 1, a share of all steps."""
    schedule: Literal["constant", "linear", "cosine"] = "constant"
    """Learning rate after warm-up: constant, or decaying to 0 at the end of the run."""
    max_grad_norm: Annotated[float, Gt(0), Le(math.inf)] = 1.0
    """Largest norm of the gradient; a larger one is scaled down."""
    epochs: Annotated[int, Ge(1)] = 1
    """Passes over the rows of one training step."""
    minibatches: Annotated[int, Ge(1)] = 1
    """Optimizer steps in one pass; each takes its share of the rows."""
    micro_batch_tokens: Annotated[int, Ge(1)] = 8192
    """Tokens of one forward pass, padding included; a prompt that packed rows share counts once. It
    limits memory and changes no result."""
    importance_correction: Literal[
        "none", "token-truncate", "token-mask", "sequence-truncate", "sequence-mask"
    ] = "token-truncate"
    """What to do where sampler and trainer disagree about a probability: cap weights (truncate), or
    leave out their tokens or rows (mask)."""
    importance_cap: Annotated[float, Ge(1), Le(math.inf)] = 2.0
    """Largest importance weight, trainer over sampler."""
    skip_idle_rows: bool = True
    """Leave out rows with advantage 0 that cannot change the gradient (no KL penalty, no entropy
    bonus). Metrics then describe the other rows."""

    def check(self) -> None:
        refuse(
            (
                self.importance_correction == "none" and self.importance_cap != 2,
                "learner.importance-cap does nothing with learner.importance-correction none",
            )
        )

    @property
    def optimizer_steps(self) -> int:
        """Optimizer steps in one training step."""
        return self.epochs * self.minibatches

    @property
    def needs_total(self) -> bool:
        """Whether the learning rate depends on how many training steps there are in all."""
        return self.schedule != "constant" or 0 < self.warmup < 1


def check_moments(settings: LearnerSettings, device: str | None) -> None:
    """Refuse moments that no library here can hold, or not on the model's device.

    Args:
        settings: of the learner.
        device: type of the model's device, such as ``cpu``; None: unknown.

    Raises:
        UserError: paged moments are set without a GPU, or bitsandbytes is not installed.
    """
    if settings.moments.startswith("paged-") and device not in (None, "cuda"):
        raise UserError(
            f"--learner.moments {settings.moments} is for a GPU whose memory is full, and this "
            f"model is on {device}: say {settings.moments.removeprefix('paged-')}"
        )
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
    """Return the share of the peak learning rate that the next optimizer step takes.

    Args:
        done: training steps so far; a fraction within a step of several optimizer steps.
        schedule: what follows the warm-up.
        warmup: training steps over which the share rises to 1.
        total: training steps after which a decaying schedule is at 0; None: it never decays.
        step: length of one optimizer step, in training steps.
    """
    if done + step <= warmup:
        return (done + step) / warmup
    if schedule == "constant" or total is None:
        return 1.0
    left = max(0.0, (total - max(done, warmup)) / max(total - warmup, 1e-9))
    return left if schedule == "linear" else (1 - math.cos(math.pi * left)) / 2
