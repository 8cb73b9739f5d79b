"""How one role's text becomes tokens and back."""

from collections.abc import Sequence
from typing import Literal, Protocol

import numpy as np
import numpy.typing as npt


class TokenCodec(Protocol):
    """A role's tokenizer together with its chat template (or none).

    Contexts only ever grow: each method returns the ids to *append*, so that sampled tokens are
    never tokenised a second time.
    """

    @property
    def vocab_size(self) -> int:
        """Ids are in ``range(vocab_size)``."""
        ...

    def open(self, message: str) -> list[int]:
        """Ids of a fresh context: the user's message, rendered up to the point where the
        assistant writes."""
        ...

    def follow(self, message: str, *, ended: bool) -> list[int]:
        """Ids appended after an assistant's turn: the end of that turn (unless ``ended`` says
        that the model sampled it), the user's next message, the assistant's start."""
        ...

    def extend(self, text: str) -> list[int]:
        """Ids of environment text inserted into the assistant's current turn."""
        ...

    def decode(self, tokens: Sequence[int] | npt.NDArray[np.int64]) -> str:
        """Text of sampled ids, without end-of-sequence or padding marks. Never raises: ids that
        are not valid text decode to replacement characters."""
        ...

    def count(self, text: str) -> int:
        """Number of tokens in ``text``."""
        ...

    def truncate(self, text: str, limit: int, *, keep: Literal["head", "tail"] = "head") -> str:
        """The longest head (or tail) of ``text`` that has at most ``limit`` tokens."""
        ...
