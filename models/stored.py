"""Full weights by their names in a checkpoint, a decoder block at a time."""

import itertools
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from coterie.models.shards import whole

_BLOCK = re.compile(r".*?\.\d+\.")


@dataclass(frozen=True)
class StoredWeight:
    """What is known of a weight without it."""

    name: str
    dtype: torch.dtype
    shape: tuple[int, ...]


@dataclass(frozen=True)
class StoredWeights:
    """What a checkpoint of a transformers model would hold: it does not name a tied head, and names
    each expert of a mixture where the model holds all of them in one tensor.

    Has the methods of vLLM's ``WeightSource``. Of weights that lie in shards each pass gathers one
    decoder block after another, and every rank has to make it.
    """

    model: Any
    dtype: torch.dtype | None = None
    """Of what is given; None: as weights are held."""

    def metadata(self) -> list[StoredWeight]:
        """What a pass gives, in its order; nothing is gathered."""
        named = self._named(lambda weight: torch.empty(weight.shape, device="meta"))
        return [StoredWeight(name, weight.dtype, tuple(weight.shape)) for name, weight in named]

    def __iter__(self) -> Iterator[tuple[str, Tensor]]:
        """Name and weight, whole and on the model's device."""
        return self._named(lambda weight: weight)

    def _named(self, look: Callable[[Tensor], Tensor]) -> Iterator[tuple[str, Tensor]]:
        from transformers.core_model_loading import revert_weight_conversion

        tied = set(getattr(self.model, "all_tied_weights_keys", None) or ())
        state = {
            name: weight for name, weight in self.model.state_dict().items() if name not in tied
        }
        for _, block in itertools.groupby(state.items(), key=_block_of):
            # Rounded before they are gathered: half as much is sent.
            taken = {name: whole(look(weight).to(self._dtype_of(weight))) for name, weight in block}
            yield from revert_weight_conversion(self.model, taken).items()

    def _dtype_of(self, weight: Tensor) -> torch.dtype:
        rounded = self.dtype is not None and weight.is_floating_point()
        return self.dtype if rounded else weight.dtype  # type: ignore[return-value]


def _block_of(named: tuple[str, Tensor]) -> str:
    """The same for weights of one block, whose name is up to the first number."""
    match = _BLOCK.match(named[0])
    return match[0] if match else ""
