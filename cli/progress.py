"""Progress of long work in this process: counted where it happens, read by what shows it."""


class Pulse:
    """A count that only grows; a thread may read it while another one adds."""

    def __init__(self) -> None:
        self.done = 0.0

    def add(self, amount: float) -> None:
        """Count ``amount`` more."""
        self.done += amount


class Share:
    """The progress of one piece of work, in the units of its pulse."""

    def __init__(self, pulse: Pulse, whole: float) -> None:
        """``whole``: what the piece counts for once it is done."""
        self._pulse, self._whole, self._done = pulse, whole, 0.0

    def reach(self, share: float) -> None:
        """Count it up to this ``share`` of the whole, in [0, 1]; it never goes back."""
        now = self._whole * min(1.0, share)
        if now > self._done:
            self._pulse.add(now - self._done)
            self._done = now


ANSWERED = Pulse()
"""Answers that models of this process have sampled; one that is being sampled counts in part."""
ENDED = Pulse()
"""Answers in episodes that this process has played to the end, whatever sampled them."""
LOADED = Pulse()
"""Models that this process has loaded."""
LEARNED = Pulse()
"""Rows whose gradient the learners of this process have computed."""
