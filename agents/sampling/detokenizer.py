"""Text of an answer while it is sampled, piece by piece."""

from collections.abc import Callable, Iterable, Sequence

_INCOMPLETE = "\ufffd"
"""What a codec decodes half a character into."""


class Detokenizer:
    """Decodes ids that arrive one after the other. All pieces together are the text of all ids, and
    no piece ends within a character."""

    def __init__(self, decode: Callable[[Sequence[int]], str]) -> None:
        """``decode``: turns ids into text."""
        self._decode = decode
        self._ids: list[int] = []
        # The text of an id depends on those before it (a space, a half character), so new ids are
        # decoded together with those of the latest piece.
        self._window, self._shown = 0, 0

    def add(self, ids: Iterable[int]) -> str:
        """Return the text that ``ids`` complete; it may be empty."""
        self._ids += map(int, ids)
        text = self._new()
        if not text or text.endswith(_INCOMPLETE):
            return ""
        self._window, self._shown = self._shown, len(self._ids)
        return text

    def rest(self) -> str:
        """Return what is left after the last id: a character that was never completed."""
        text = self._new()
        self._window = self._shown = len(self._ids)
        return text

    def _new(self) -> str:
        before = self._decode(self._ids[self._window : self._shown])
        return self._decode(self._ids[self._window :])[len(before) :]
