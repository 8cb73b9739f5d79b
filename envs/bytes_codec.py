"""UTF-8 bytes as tokens, so that every environment has a token view without a model."""

from collections.abc import Sequence
from typing import Literal, Protocol

import numpy as np
import numpy.typing as npt

END = 256
"""Id of the end of a turn; ids below it are bytes."""


class TextMeter(Protocol):
    """The part of a ``TokenCodec`` that text environments use: lengths in a role's own tokens."""

    def count(self, text: str) -> int: ...

    def truncate(self, text: str, limit: int, *, keep: Literal["head", "tail"] = "head") -> str: ...


class BytesCodec:
    """A :class:`coterie.datatypes.TokenCodec` without a tokenizer or a chat template.

    A turn is its bytes; :data:`END` closes an assistant's turn that a message follows.
    """

    vocab_size = END + 1
    eos_ids = (END,)
    ids_per_token = 4
    """English has about four bytes per token (:func:`coterie.datatypes.ids_per_token`)."""

    def open(self, message: str) -> list[int]:
        return list(_encode(message))

    def follow(self, message: str, *, ended: bool, mark: int | None = None) -> list[int]:
        return [*([] if ended else [END]), *_encode(message)]

    def extend(self, text: str) -> list[int]:
        return list(_encode(text))

    def decode(self, tokens: Sequence[int] | npt.NDArray[np.int64]) -> str:
        ids = np.asarray(tokens, dtype=np.int64)
        kept = ids[(ids >= 0) & (ids < END)].astype(np.uint8)
        return kept.tobytes().decode("utf-8", errors="replace")

    def count(self, text: str) -> int:
        return len(_encode(text))

    def truncate(self, text: str, limit: int, *, keep: Literal["head", "tail"] = "head") -> str:
        """See :meth:`coterie.datatypes.TokenCodec.truncate`; partial characters are dropped."""
        # Characters are kept or dropped whole, so a length in characters can be cut off the text.
        encoded, limit = _encode(text), max(0, limit)
        if len(encoded) <= limit:
            return text
        if keep == "head":
            return text[: len(encoded[:limit].decode("utf-8", errors="ignore"))]
        kept = len(encoded[len(encoded) - limit :].decode("utf-8", errors="ignore"))
        return text[len(text) - kept :]


def _encode(text: str) -> bytes:
    # A lone surrogate (possible in text that came through JSON) becomes a question mark.
    return text.encode("utf-8", errors="replace")
