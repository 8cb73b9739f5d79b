"""Separating what a model thought from what it says."""

_CLOSING = ("</think>", "[/THINK]")
_OPENING = ("<think>", "[THINK]")


def split_thinking(text: str) -> tuple[str, str | None]:
    """``(thinking, reply)`` of a model's output.

    The reply is what follows the last closing marker; the opening one may be missing, as chat
    templates write it themselves. Without a closing marker the whole text is the reply, unless it
    begins by thinking: then there is none.

    >>> split_thinking("<think>2 + 2</think>\\n4")
    ('2 + 2', '4')
    >>> split_thinking("<think>hm")
    ('hm', None)
    """
    end, marker = max((text.rfind(marker), marker) for marker in _CLOSING)
    if end >= 0:
        return _opened(text[:end])[0], text[end + len(marker) :].strip()
    thinking, opened = _opened(text)
    return (thinking, None) if opened else ("", text.strip())


def _opened(text: str) -> tuple[str, bool]:
    """``text`` without an opening marker at its start, and whether it had one."""
    text = text.strip()
    for marker in _OPENING:
        if text.startswith(marker):
            return text[len(marker) :].strip(), True
    return text, False
