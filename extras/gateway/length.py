"""Messages that no context holds are refused before they become tokens."""

import asyncio
from collections.abc import Iterator

from coterie.datatypes import TokenCodec
from coterie.extras.gateway.messages import Refused, Request

_PIECE = 8192
"""Characters that are counted at once; meanwhile the event loop stands still."""
_SEAM = 8
"""Tokens that a piece may have more than its text has in the whole."""


async def refuse_too_long(codec: TokenCodec | None, role: str, request: Request) -> None:
    """Count the tokens of messages, piece by piece, until they are more than the role's context
    holds; whatever the length, no more than the context and a piece become tokens.

    Args:
        codec: the role's; only one that has a ``context`` and ``at_least`` is a limit.
        role: who is asked.
        request: what.

    Raises:
        Refused: there are more.
    """
    context: int | None = getattr(codec, "context", None)
    size = sum(map(len, _texts(request)))
    # A character has four bytes at most, and a token stands for a byte at least.
    if context is None or size <= max(_PIECE, context // 4):
        return
    at_least = codec.at_least  # pyright: ignore[reportOptionalMemberAccess, reportAttributeAccessIssue]
    left = context
    for text in _texts(request):
        for start in range(0, len(text), _PIECE):
            left -= max(0, at_least(text[start : start + _PIECE]) - _SEAM)
            if left < 0:
                raise Refused(
                    400,
                    f"the messages have {size:,} characters, more than the {context:,} tokens of "
                    f"{role}'s context: send fewer",
                )
            await asyncio.sleep(0)


def _texts(request: Request) -> Iterator[str]:
    for message in request.messages:
        yield message.text.strip()  # as templates have it
        for call in message.calls:
            yield call.arguments
    for tool in request.tools:
        yield tool.description
        yield tool.parameters
