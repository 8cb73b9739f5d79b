"""A text reply in a role's own vocabulary."""

import numpy as np

from vocabulary import Completion, TokenCodec
from vocabulary.policy import FinishReason

# No tokenizer has longer tokens, so a head of limit * this many characters holds all that can be
# kept, and a huge reply is never tokenised whole.
_LONGEST_TOKEN = 512


def as_unicode(text: str) -> str:
    """``text`` with lone surrogates, which no codec can encode, replaced by ``?``."""
    return text.encode("utf-8", "replace").decode()


def encode_reply(
    text: str, codec: TokenCodec, limit: int, finish: FinishReason = "eos"
) -> Completion:
    """The head of ``text`` that fits into ``limit`` tokens, as ids without log-probabilities.

    ``finish_reason`` is ``length`` where something was cut off. No end-of-sequence id is added, as
    none was sampled.
    """
    text = as_unicode(text)
    start = text[: max(0, limit) * _LONGEST_TOKEN]
    head = codec.truncate(start, limit) if limit > 0 else ""
    tokens = np.asarray(codec.extend(head)[: max(0, limit)], dtype=np.int64)
    return Completion(
        tokens=tokens,
        logprobs=np.full(len(tokens), np.nan, dtype=np.float32),
        finish_reason="length" if len(head) < len(text) else finish,
    )


def tail(text: str, codec: TokenCodec, limit: int) -> str:
    """The last ``limit`` tokens of ``text``, as text."""
    return codec.truncate(as_unicode(text)[-limit * _LONGEST_TOKEN :], limit, keep="tail")
