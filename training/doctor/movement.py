"""Does an update move the weights, or is it rounded away?"""

import math
from collections.abc import Mapping
from dataclasses import dataclass

import torch

from teams import TrainedRole
from training.doctor.finding import Finding, judged

# AdamW's first update moves every weight with a gradient by the learning rate, later ones by less.
LEAST = 0.5
_CHECK = "weights that move"


@dataclass(frozen=True)
class Movement:
    """What one update did to the weights that a gradient reached."""

    reached: int
    moved: int
    """Those of them that are another number now."""
    size: float
    """Their mean magnitude before it."""
    lr: float
    dtype: torch.dtype

    @property
    def share(self) -> float:
        return self.moved / self.reached

    @property
    def next_number(self) -> float:
        """How far the next number lies from one of :attr:`size`."""
        return torch.finfo(self.dtype).eps * 2.0 ** math.floor(math.log2(self.size))


def measure_movement(one: TrainedRole, start: Mapping[str, torch.Tensor], *, lr: float) -> Movement:
    """Compare a role's weights with those of before its newest update.

    Args:
        one: the role.
        start: its weights before, by name.
        lr: the learning rate of the update.
    """
    parameters = one.loaded.handle.parameters()
    reached, moved, size = 0, 0, 0.0
    for name, reached_by in one.learner.reached():
        now = parameters[name].detach()
        before = start[name].to(now.device)
        reached += int(reached_by.sum())
        moved += int(((now != before) & reached_by).sum())
        size += float((before.abs() * reached_by).sum(dtype=torch.float64))
    dtype = next(iter(parameters.values())).dtype
    return Movement(reached, moved, size / max(reached, 1), lr, dtype)


def check_movement(role: str, found: Movement) -> Finding:
    """Wrong where less than half of the weights move.

    Args:
        role: who learns.
        found: by one update at the run's own learning rate.
    """
    if not found.reached:
        return Finding(_CHECK, role, "no weight has a gradient", "not measured")
    kind = str(found.dtype).rpartition(".")[2]
    measured = f"{found.share:.1%} of {found.reached:,} with a gradient, at lr {found.lr:.1e}"
    if found.share < LEAST and found.size > 0:
        measured += (
            f"; the others are about {found.size:.1e}, and the next {kind} is "
            f"{found.next_number:.1e} off"
        )
    return judged(
        _CHECK,
        role,
        measured,
        wrong=found.share < LEAST,
        way_out="updates are rounded away: hold full weights in float32 (leave out "
        f"--agents.{role}.dtype), train an adapter (--agents.{role}.tuning lora), or choose a "
        "higher --learner.lr",
    )
