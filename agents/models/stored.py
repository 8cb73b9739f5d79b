"""Full weights by their names in a checkpoint, block by block."""

import itertools
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from coterie.agents.models.shards import whole

_BLOCK = re.compile(r".*?\.\d+\.")


@dataclass(frozen=True)
class StoredWeight:
    """Name, format and shape of a weight."""

    name: str
    dtype: torch.dtype
    shape: tuple[int, ...]


@dataclass(frozen=True)
class StoredWeights:
    """The weights of a transformers model in the form of its checkpoint: without a tied head, and
    with separate experts of a mixture even if the model has them in one tensor.

    It has the methods of vLLM's ``WeightSource``. Iteration gathers sharded weights block by block,
    so every rank must iterate.
    """

    model: Any
    dtype: torch.dtype | None = None
    """Format of the yielded weights; None: the model's."""

    def metadata(self) -> list[StoredWeight]:
        """Return the weights in the order of iteration, without values; nothing is gathered."""
        named = self._named(lambda weight: torch.empty(weight.shape, device="meta"))
        return [StoredWeight(name, weight.dtype, tuple(weight.shape)) for name, weight in named]

    def __iter__(self) -> Iterator[tuple[str, Tensor]]:
        """Yield (name, weight), not sharded, on the model's device."""
        return self._named(lambda weight: weight)

    def _named(self, look: Callable[[Tensor], Tensor]) -> Iterator[tuple[str, Tensor]]:
        from transformers.core_model_loading import revert_weight_conversion

        tied = set(getattr(self.model, "all_tied_weights_keys", None) or ())
        state = {
            name: weight for name, weight in self.model.state_dict().items() if name not in tied
        }
        for _, block in itertools.groupby(state.items(), key=_block_of):
            # Round before gathering, which halves the traffic.
            taken = {name: whole(look(weight).to(self._dtype_of(weight))) for name, weight in block}
            yield from revert_weight_conversion(self.model, taken).items()

    def _dtype_of(self, weight: Tensor) -> torch.dtype:
        rounded = self.dtype is not None and weight.is_floating_point()
        return self.dtype if rounded else weight.dtype  # type: ignore[return-value]


def _block_of(named: tuple[str, Tensor]) -> str:
    """The name of a weight up to its block number."""
    match = _BLOCK.match(named[0])
    return match[0] if match else ""
