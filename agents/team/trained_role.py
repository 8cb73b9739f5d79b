"""A role with its model and learner in this process."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
import numpy.typing as npt
from safetensors.torch import load_file
from torch import Tensor

from coterie.agents.models.loading import LoadedRole
from coterie.agents.models.saving import store
from coterie.algorithms import Learner
from coterie.algorithms.imitation import describe_imitation
from coterie.algorithms.turn_credit import TurnBonus
from coterie.datatypes import Trajectory, UserError

_MOMENTS = "optimizer.safetensors"
_IMITATION = "imitation"


class OtherFormat(UserError):
    """Raised when a run would continue in another number format."""


@dataclass
class TrainedRole:
    """Implements :class:`coterie.agents.team.backend.RoleLearner` in this process."""

    loaded: LoadedRole
    learner: Learner
    imitator: Learner | None = None
    """Learns worked solutions, until :meth:`begin`."""

    @property
    def version(self) -> int:
        return self.loaded.handle.version

    @property
    def token_bonus(self) -> dict[int, npt.NDArray[np.float64]]:
        return self.learner.token_bonus

    def update(
        self,
        trajectories: Sequence[Trajectory],
        advantage_B: npt.ArrayLike,
        turn_bonus: TurnBonus = MappingProxyType({}),
    ) -> dict[str, float]:
        """See :meth:`coterie.algorithms.learner.Learner.update`."""
        return self.learner.update(trajectories, advantage_B, turn_bonus)

    def imitate(self, rows: Sequence[Trajectory]) -> dict[str, float]:
        """Take one step on the likelihood of worked solutions
        (:func:`coterie.algorithms.imitation.worked_row`); return metrics."""
        assert self.imitator is not None, "this role imitates nothing, or has begun"
        return describe_imitation(self.imitator.update(rows, np.ones(len(rows))))

    def begin(self) -> None:
        """End imitation and make the current weights the start of training."""
        self.imitator = None
        self.learner.begin()

    def divergences(self, trajectories: Sequence[Trajectory]) -> npt.NDArray[Any]:
        """See :meth:`coterie.algorithms.learner.Learner.divergences`."""
        return self.learner.divergences(trajectories)

    def save(self, directory: Path | str) -> dict[str, Any]:
        """Write the weights (or the adapter) in their own format, and the tensors of
        :meth:`state_dict`; return JSON data that a resumed run also needs. Of several ranks only
        the first writes."""
        folder = Path(directory)
        # Collect everything before the first file is created.
        tensors, plain = self.state_dict()
        self.loaded.handle.save(folder)
        if self.loaded.handle.ranks.rank == 0:
            store(tensors, folder / _MOMENTS)
        return plain

    def export(self, directory: Path | str) -> None:
        """Write the weights (or the adapter) in the format of the computation, and the tokenizer,
        for other programs."""
        handle = self.loaded.handle
        handle.save(directory, handle.dtype)
        if handle.adapter is not None and handle.ranks.rank == 0:
            self.loaded.tokenizer.save_pretrained(directory)

    def load(self, directory: Path | str, plain: dict[str, Any]) -> None:
        """Load what :meth:`save` wrote.

        Raises:
            OtherFormat: the checkpoint was trained in another number format.
        """
        folder = Path(directory)
        self.loaded.handle.load_weights(folder)
        self.load_state_dict(load_file(folder / _MOMENTS), plain)

    def state_dict(self) -> tuple[dict[str, Tensor], dict[str, Any]]:
        """Return the optimizer's moments and the algorithm's copies of past weights by name,
        without a copy, and counters."""
        tensors, plain = self.learner.state_dict()
        if self.imitator is not None:
            own, plain[_IMITATION] = self.imitator.state_dict()
            tensors |= {f"{_IMITATION}/{name}": value for name, value in own.items()}
        return tensors, plain | {"dtype": self._dtype, "moments": self.learner.settings.moments}

    def load_state_dict(self, tensors: dict[str, Tensor], plain: dict[str, Any]) -> None:
        """Load what :meth:`state_dict` returned.

        Raises:
            OtherFormat: the checkpoint was trained in another number format.
        """
        if (then := plain["dtype"]) != self._dtype:
            raise OtherFormat(
                f"it was trained in {then} and would continue in {self._dtype} on this device: "
                f'resume it on a device like the first, or say "dtype": "{then}" in its '
                "config.json"
            )
        now = self.learner.settings.moments
        if (then := plain["moments"]) != now:
            raise OtherFormat(
                f'its moments are stored in {then}, not in {now}: say "moments": "{then}" in its '
                "config.json"
            )
        if _IMITATION not in plain:
            self.imitator = None
        elif self.imitator is not None:
            mark = f"{_IMITATION}/"
            own = {n.removeprefix(mark): t for n, t in tensors.items() if n.startswith(mark)}
            self.imitator.load_state_dict(own, plain[_IMITATION])
        self.learner.load_state_dict(tensors, plain)

    @property
    def _dtype(self) -> str:
        return str(self.loaded.handle.dtype).rpartition(".")[2]
