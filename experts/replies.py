"""Encoding of experts' replies in the role's vocabulary, and counters of calls."""

from collections import Counter
from dataclasses import dataclass, field

import numpy as np

from coterie.datatypes import Completion, FinishReason, TokenCodec

# Longest token in characters. limit times this bounds the text that can be kept, so a huge reply is
# not tokenized as a whole.
_LONGEST_TOKEN = 512


@dataclass
class ExpertCounters:
    """Counts since the start of the process; ``calls == answered + failed + calls in flight``."""

    calls: int = 0
    answered: int = 0
    attempts: int = 0
    """Requests sent, retries included."""
    retries: int = 0
    shortened: int = 0
    """Replies that were cut at the token limit."""
    reply_tokens: int = 0
    """Tokens of replies, in the role's vocabulary."""
    server_prompt_tokens: int = 0
    """Prompt tokens by the server's count."""
    server_completion_tokens: int = 0
    """Generated tokens by the server's count, including thinking."""
    seconds: float = 0.0
    """Wall-clock time of all attempts, without waits and pauses."""
    failures: Counter[str] = field(default_factory=Counter)
    """Failed calls by kind."""
    failed_attempts: Counter[str] = field(default_factory=Counter)
    """Failed attempts by kind, including those of calls that succeeded later."""
    examples: dict[str, str] = field(default_factory=dict)
    """Kind of failure -> the server's latest text, shortened."""

    @property
    def failed(self) -> int:
        """Calls that ended without a reply."""
        return self.failures.total()

    def add(self, completion: Completion) -> None:
        """Count an answered call."""
        self.answered += 1
        self.shortened += completion.finish_reason == "length"
        self.reply_tokens += len(completion.tokens)

    def as_dict(self) -> dict[str, float]:
        """Return the counters for a log; failures as ``failed/<kind>``."""
        names = (
            "calls", "answered", "failed", "attempts", "retries", "shortened",
            "reply_tokens", "server_prompt_tokens", "server_completion_tokens", "seconds",
        )  # fmt: skip
        flat = {name: float(getattr(self, name)) for name in names}
        for name, counts in (("failed", self.failures), ("failed_attempts", self.failed_attempts)):
            flat |= {f"{name}/{kind}": float(n) for kind, n in sorted(counts.items())}
        return flat


def as_unicode(text: str) -> str:
    """Replace lone surrogates, which no codec can encode, by ``?``."""
    return text.encode("utf-8", "replace").decode()


def encode_reply(
    text: str, codec: TokenCodec, limit: int, finish: FinishReason = "eos"
) -> Completion:
    """Encode the head of a reply, without log-probabilities and without an end-of-sequence id.

    Args:
        text: the reply.
        codec: the role's codec.
        limit: most tokens.
        finish: why the reply ended; ``length`` if it is cut here.
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


def cut_at_stop(text: str, stop: tuple[str, ...]) -> tuple[str, bool]:
    """Return (text up to the end of its first stop string, whether there is one)."""
    ends = [text.find(mark) + len(mark) for mark in stop if mark and mark in text]
    return (text[: min(ends)], True) if ends else (text, False)
