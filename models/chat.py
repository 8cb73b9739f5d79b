"""What a chat template writes around messages, read off once with marked messages."""

from dataclasses import dataclass
from typing import Any

from models.rendering import render
from vocabulary import UserError

_USER, _ANSWER, _NEXT = "qUser0q", "qAnswer0q", "qNext0q"


@dataclass(frozen=True)
class ChatFrame:
    """The text that a template puts before and after each message."""

    opening: tuple[str, str]
    """(before, after) the first message of the user, up to where the assistant writes."""
    between: tuple[str, str] | None
    """(before, after) a later message of the user, from the end of the assistant's text; None
    where the template refuses a second turn."""
    trims: bool
    """Whether the template strips white space around messages."""

    def trim(self, message: str) -> str:
        """The message as the template would write it."""
        return message.strip() if self.trims else message


def read_frame(tokenizer: Any) -> ChatFrame:
    """Render marked messages and cut at the marks.

    What stands between turns is read *after* the assistant's mark only: a template that rewrites
    the opening once there is history (an empty thinking block, for instance) does not matter, for
    contexts are appended to and never rendered anew. Raises :class:`UserError`.
    """
    if not tokenizer.chat_template:
        raise UserError("this tokenizer has no chat template; say --agents.ROLE.chat plain")
    conversations = [[_USER], [f"  {_USER}  "], [_USER, _ANSWER, _NEXT]]
    first, spaced, turns = render(tokenizer, conversations)
    if first.text is None or first.text.count(_USER) != 1:
        raise UserError(
            "this chat template cannot render one message of the user "
            f"({first.why or 'it leaves it out or repeats it'}); say --agents.ROLE.chat plain"
        )
    before, after = first.text.split(_USER)
    return ChatFrame(
        opening=(before, after),
        between=_between(turns.text),
        trims=f" {_USER}" not in (spaced.text or ""),
    )


def _between(text: str | None) -> tuple[str, str] | None:
    if text is None or text.count(_ANSWER) != 1 or text.count(_NEXT) != 1:
        return None
    tail = text.split(_ANSWER)[1]
    if _NEXT not in tail:
        return None
    before, after = tail.split(_NEXT)
    return before, after
