"""Detection of stop strings during sampling, across token boundaries."""

from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt

_UNKNOWN, _NO, _MAYBE = -1, 0, 1


class StopFinder:
    """Decides whether the newest token completes a stop string.

    Most tokens cannot. A table over the vocabulary, filled on demand, has the tokens that can
    contain a stop string's end. The tail of a row is decoded only after such tokens.
    """

    def __init__(
        self, stop: Sequence[str], decode: Callable[[Sequence[int]], str], vocab_size: int
    ) -> None:
        """Args:
        stop: strings to look for; empty ones are ignored.
        decode: turns ids into text.
        vocab_size: number of ids.
        """
        self._stop = tuple(s for s in stop if s)
        self._decode = decode
        self._longest = max((len(s) for s in self._stop), default=0)
        self._table_V = np.full(vocab_size, _UNKNOWN, np.int8)

    def suspects(self, tokens_B: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """Return the rows whose token may complete a stop string."""
        state_B = self._table_V[tokens_B]
        for token in np.unique(tokens_B[state_B == _UNKNOWN]):
            self._table_V[token] = _MAYBE if self._may_complete(int(token)) else _NO
        return np.nonzero(self._table_V[tokens_B] == _MAYBE)[0]

    def completes(self, tokens_N: npt.NDArray[np.int64]) -> bool:
        """Whether the text of ``tokens_N`` has a stop string near its end. Call it after every
        suspect, so that the newest token is the one that completes the string."""
        # A few characters more than the longest string, because decoding can alter those at a cut.
        enough = self._longest + 4
        size = enough + 1
        while size < len(tokens_N) and len(self._decode(tokens_N[-size:-1].tolist())) < enough:
            size *= 2
        text = self._decode(tokens_N[-size:].tolist())
        return any(s in text for s in self._stop)

    def _may_complete(self, token: int) -> bool:
        text = self._decode([token])
        # The text of some tokens depends on others: half a character, or a stripped space.
        if not text or "\ufffd" in text:
            return True
        for s in self._stop:
            if s in text:
                return True
            if any(s.endswith(text[:n]) for n in range(1, min(len(s), len(text)) + 1)):
                return True
        return False
