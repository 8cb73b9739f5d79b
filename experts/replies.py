"""Experts' replies, as text and in the role's own vocabulary, and their counters."""

from collections import Counter
from dataclasses import dataclass, field

import numpy as np

from coterie.datatypes import Completion, FinishReason, TokenCodec

# No tokenizer has longer tokens, so a head of limit * this many characters holds all that can be
# kept, and a huge reply is never tokenised whole.
_LONGEST_TOKEN = 512


@dataclass
class ExpertCounters:
    """Counts since the start of the process; ``calls == answered + failed + those in flight``."""

    calls: int = 0
    answered: int = 0
    attempts: int = 0
    """Requests sent, retries included."""
    retries: int = 0
    shortened: int = 0
    """Replies that were cut at the token limit."""
    reply_tokens: int = 0
    """Tokens handed on, in the role's vocabulary."""
    server_prompt_tokens: int = 0
    """Tokens read, as the server counts them."""
    server_completion_tokens: int = 0
    """Tokens generated, thinking included, as the server counts them."""
    seconds: float = 0.0
    """Wall-clock time summed over attempts, without waits and pauses."""
    failures: Counter[str] = field(default_factory=Counter)
    """Failed calls by kind."""
    failed_attempts: Counter[str] = field(default_factory=Counter)
    """Failed attempts by kind, also of calls that a retry saved."""
    examples: dict[str, str] = field(default_factory=dict)
    """The latest thing that the server wrote with a failure of each kind, shortened."""

    @property
    def failed(self) -> int:
        """Calls that ended without a reply."""
        return self.failures.total()

    def add(self, completion: Completion) -> None:
        """Count a call that was answered."""
        self.answered += 1
        self.shortened += completion.finish_reason == "length"
        self.reply_tokens += len(completion.tokens)

    def as_dict(self) -> dict[str, float]:
        """Flat names and numbers for a log; failures as ``failed/<kind>``."""
        names = (
            "calls", "answered", "failed", "attempts", "retries", "shortened",
            "reply_tokens", "server_prompt_tokens", "server_completion_tokens", "seconds",
        )  # fmt: skip
        flat = {name: float(getattr(self, name)) for name in names}
        for name, counts in (("failed", self.failures), ("failed_attempts", self.failed_attempts)):
            flat |= {f"{name}/{kind}": float(n) for kind, n in sorted(counts.items())}
        return flat


def as_unicode(text: str) -> str:
    """``text`` with lone surrogates, which no codec can encode, replaced by ``?``."""
    return text.encode("utf-8", "replace").decode()


def encode_reply(
    text: str, codec: TokenCodec, limit: int, finish: FinishReason = "eos"
) -> Completion:
    """The head of a reply, as ids without log-probabilities; no end-of-sequence id is added, as
    none was sampled.

    Args:
        text: the reply.
        codec: the role's.
        limit: most tokens.
        finish: why it ended; ``length`` where something is cut off here.
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
