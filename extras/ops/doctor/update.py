"""Make one real update of every learner and undo it: does it move the weights, or is it rounded
away?
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import torch

from coterie.agents.team.trained_role import TrainedRole
from coterie.algorithms.nonfinite import NotFinite
from coterie.datatypes import Trajectory
from coterie.extras.ops.doctor.finding import Finding, judge
from coterie.extras.ops.doctor.rescore import rescore

Floats = npt.NDArray[np.float64]

_ATTEMPTS, _FACTOR = 8, 4.0


@dataclass(frozen=True)
class Movement:
    """The effect of one update on the weights that a gradient reached."""

    reached: int
    moved: int
    """Number of these weights whose value changed."""
    size: float
    """Their mean magnitude before the update."""
    lr: float
    dtype: torch.dtype

    @property
    def share(self) -> float:
        return self.moved / self.reached

    @property
    def next_number(self) -> float:
        """Distance from a number of magnitude :attr:`size` to the next in this format."""
        return torch.finfo(self.dtype).eps * 2.0 ** math.floor(math.log2(self.size))


@dataclass(frozen=True)
class Moved:
    """The effect of updates on one role."""

    updates: int
    lr: float
    """Learning rate of the last update."""
    mean: float
    """Mean |change| of the log-probabilities of the trained tokens."""
    movement: Movement
    """Effect of the first update on the weights."""


Weights = Mapping[str, torch.Tensor]


@contextmanager
def starting_weights(trained: Mapping[str, TrainedRole]) -> Iterator[Mapping[str, Weights]]:
    """Yield role -> name -> weights, and restore weights, optimizers, counters and torch's
    generator on exit."""
    generator = torch.get_rng_state()
    weights = {role: _copied(parameters(trained_role)) for role, trained_role in trained.items()}
    states = {
        role: (_copied(tensors), plain)
        for role, trained_role in trained.items()
        for tensors, plain in [trained_role.state_dict()]
    }
    try:
        yield weights
    finally:
        for role, trained_role in trained.items():
            with torch.no_grad():
                for name, parameter in parameters(trained_role).items():
                    parameter.copy_(weights[role][name])
            trained_role.load_state_dict(*states[role])
        torch.set_rng_state(generator)


def _copied(tensors: Weights) -> dict[str, torch.Tensor]:
    return {name: tensor.detach().to("cpu", copy=True) for name, tensor in tensors.items()}


def parameters(trained_role: TrainedRole) -> dict[str, torch.nn.Parameter]:
    """Name -> trained parameter of the role."""
    return trained_role.loaded.handle.parameters()


def made_up(advantage_B: Floats) -> Floats:
    """``advantage_B``, shape (B,); alternating +1 and -1 if all its entries are zero."""
    if np.any(np.abs(advantage_B) > 1e-9):
        return advantage_B
    return np.where(np.arange(len(advantage_B)) % 2 == 0, 1.0, -1.0)


def learn(
    trained_role: TrainedRole,
    rows: Sequence[Trajectory],
    advantage_B: Floats,
    start: Weights,
    *,
    temperature: float,
    least: float,
) -> Moved | None:
    """Update until log-probabilities have moved by ``least`` nats: stale weights would then show.
    The first update has the run's learning rate after warm-up, later ones have higher rates.
    Returns None without rows.
    """
    learner, handle = trained_role.learner, trained_role.loaded.handle
    settings = learner.settings
    budget = settings.micro_batch_tokens
    before = rescore(handle, rows, temperature=temperature, budget=budget)
    if before is None:
        return None
    updates, mean, movement = 0, 0.0, None
    try:
        # NaN, from weights that are no longer finite, ends the loop too.
        while updates < _ATTEMPTS and not (mean >= least or np.isnan(mean)):
            lr = settings.lr * _FACTOR**updates
            learner.settings = replace(settings, lr=lr, warmup=0.0, schedule="constant")
            updates += 1
            try:
                learner.update(rows, made_up(advantage_B))
            except NotFinite:
                mean = np.nan
            movement = movement or measure_movement(trained_role, start, lr=lr)
            if np.isnan(mean):
                break
            after = rescore(handle, rows, temperature=temperature, budget=budget)
            assert after is not None
            mean = float(np.abs(after.learner_N - before.learner_N).mean())
        assert movement is not None
        return Moved(updates, learner.settings.lr, mean, movement)
    finally:
        learner.settings = settings


# AdamW's first update moves every weight with a gradient by the learning rate, later ones by less.
LEAST = 0.5
_CHECK = "weights that move"


def measure_movement(
    trained_role: TrainedRole, start: Mapping[str, torch.Tensor], *, lr: float
) -> Movement:
    """Compare a role's weights with ``start``, those before its newest update at ``lr``."""
    weights = parameters(trained_role)
    reached, moved, size = 0, 0, 0.0
    for name, reached_by in trained_role.learner.reached():
        now = weights[name].detach()
        before = start[name].to(now.device)
        reached += int(reached_by.sum())
        moved += int(((now != before) & reached_by).sum())
        size += float((before.abs() * reached_by).sum(dtype=torch.float64))
    dtype = next(iter(weights.values())).dtype
    return Movement(reached, moved, size / max(reached, 1), lr, dtype)


def check_movement(role: str, movement: Movement) -> Finding:
    """Check that at least half of the weights with a gradient move at the run's learning rate."""
    if not movement.reached:
        return Finding(_CHECK, role, "no weight has a gradient", "not measured")
    kind = str(movement.dtype).rpartition(".")[2]
    measured = (
        f"{movement.share:.1%} of {movement.reached:,} with a gradient, at lr {movement.lr:.1e}"
    )
    if movement.share < LEAST and movement.size > 0:
        measured += (
            f"; the others are about {movement.size:.1e}, and the next {kind} is "
            f"{movement.next_number:.1e} off"
        )
    return judge(
        _CHECK,
        role,
        measured,
        wrong=movement.share < LEAST,
        way_out="updates are rounded away: hold these weights in float32, train an adapter "
        f"(--agents.{role}.tuning lora), or choose a higher --agents.{role}.learner.lr",
    )
