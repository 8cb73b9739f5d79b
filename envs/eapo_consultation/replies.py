"""From what an expert wrote to what the policy reads of it."""

from envs.bytes_codec import TextMeter
from rewards.consultation import THINK


def as_result(text: str, meter: TextMeter, *, limit: int, thinking_tokens: int = 0) -> str:
    """The reply behind the expert's thinking, at most ``limit`` tokens of it; empty where there is
    none.

    Args:
        text: what the expert wrote.
        meter: of the reader's tokens.
        limit: the head of this many tokens is kept.
        thinking_tokens: as many of the last tokens of the thinking stand in front, within the
            limit. A thought that was never closed has no reply behind it.
    """
    thinking, closed, reply = text.rpartition(THINK[1])
    if not closed:
        thinking, opened, _ = text.partition(THINK[0])
        reply, thinking = (thinking, "") if opened else (text, "")
    reply = reply.strip()
    if not reply:
        return ""
    if thinking_tokens and (thinking := thinking.removeprefix(THINK[0]).strip()):
        reply = f"{meter.truncate(thinking, thinking_tokens, keep='tail')}\n{reply}"
    return meter.truncate(reply, limit).strip()
