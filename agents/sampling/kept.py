"""Keys and values of answers, so that the next turn of a conversation does not read them again."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from torch import Tensor

# L layers, J key-value heads, E head width, T positions

KEPT_BYTES = 1 << 29
"""Most memory of what is kept."""


@dataclass(frozen=True)
class KeptContext:
    """What a model computed of a context, without padding."""

    keys: Tensor
    """(L, J, E, T)"""
    values: Tensor
    """(L, J, T, E)"""

    def __len__(self) -> int:
        return self.keys.shape[-1]

    @property
    def nbytes(self) -> int:
        return self.keys.nbytes + self.values.nbytes


class KeptContexts:
    """The contexts of finished answers by their tokens; the oldest make room."""

    def __init__(self, limit: int = KEPT_BYTES) -> None:
        self._limit = limit
        self._kept: dict[bytes, KeptContext] = {}
        self._nbytes = 0

    def add(self, tokens: npt.NDArray[np.int64], context: KeptContext) -> None:
        """Keep a context of these tokens, unless it alone is beyond the limit."""
        key = tokens.tobytes()
        self._drop(key)
        if context.nbytes > self._limit:
            return
        while self._nbytes + context.nbytes > self._limit:
            self._drop(next(iter(self._kept)))
        self._kept[key] = context
        self._nbytes += context.nbytes

    def _drop(self, key: bytes) -> None:
        if (dropped := self._kept.pop(key, None)) is not None:
            self._nbytes -= dropped.nbytes

    def find(self, prompts: Sequence[npt.NDArray[np.int64]]) -> list[KeptContext] | None:
        """Return the longest context that each prompt continues; None if one of them continues
        none, or if less than a quarter of all tokens would be saved."""
        if not self._kept:
            return None
        sizes = sorted({len(context) for context in self._kept.values()}, reverse=True)
        found: list[KeptContext] = []
        for prompt in prompts:
            keys = (prompt[:size].tobytes() for size in sizes if size < len(prompt))
            context = next((self._kept[key] for key in keys if key in self._kept), None)
            if context is None:
                return None
            found.append(context)
        read = max(len(prompt) - len(context) for prompt, context in zip(prompts, found))
        lengths = [len(prompt) for prompt in prompts]
        if read >= min(lengths) or 4 * read * len(prompts) > 3 * sum(lengths):
            return None
        return found

    def clear(self) -> None:
        """Forget all contexts."""
        self._kept.clear()
        self._nbytes = 0
