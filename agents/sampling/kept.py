"""Keys and values of answers, so that the next turn of a conversation does not read them again."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from torch import Tensor

# L layers, J key-value heads, E head width, T positions

Tokens = npt.NDArray[np.int64]

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
    """The contexts of finished answers by their tokens, until they are continued."""

    def __init__(self, limit: int = KEPT_BYTES) -> None:
        self._limit = limit
        self._kept: dict[bytes, KeptContext] = {}
        self._nbytes = 0

    def add(self, tokens: Tokens, context: KeptContext) -> None:
        """Keep a context of these tokens, if there is room: what is kept already will be continued
        sooner."""
        key = tokens.tobytes()
        if key not in self._kept and self._nbytes + context.nbytes <= self._limit:
            self._kept[key] = context
            self._nbytes += context.nbytes

    def continued_by(self, prompts: Sequence[Tokens]) -> list[bytes | None]:
        """Return the key of the longest context that each prompt continues."""
        sizes = sorted({len(context) for context in self._kept.values()}, reverse=True)
        return [
            next((key for key in _beginnings(prompt, sizes) if key in self._kept), None)
            for prompt in prompts
        ]

    def take(self, prompts: Sequence[Tokens]) -> list[KeptContext] | None:
        """Return the context that each prompt continues, and keep it no longer.

        None if one of them continues none, or if reading the rest of each would save less than a
        quarter of reading every distinct prompt.
        """
        keys = [key for key in self.continued_by(prompts) if key is not None]
        found = [self._kept[key] for key in keys]
        if not found or len(found) < len(prompts):
            return None
        for key in {*keys}:
            self._nbytes -= self._kept.pop(key).nbytes
        lengths = {prompt.tobytes(): len(prompt) for prompt in prompts}.values()
        read = max(len(prompt) - len(context) for prompt, context in zip(prompts, found))
        if read >= min(lengths) or 4 * read * len(prompts) > 3 * sum(lengths):
            return None
        return found

    def clear(self) -> None:
        """Forget all contexts."""
        self._kept.clear()
        self._nbytes = 0


def _beginnings(prompt: Tokens, sizes: Sequence[int]) -> Iterator[bytes]:
    return (prompt[:size].tobytes() for size in sizes if size < len(prompt))
