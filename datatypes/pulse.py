"""How far this process has come in what takes long: counted where it happens, and read by whoever
shows it. Counting costs nothing beside what is counted."""


class Pulse:
    """A count that only grows; a thread may read it while another one adds."""

    def __init__(self) -> None:
        self.done = 0.0

    def add(self, amount: float) -> None:
        """Count ``amount`` more."""
        self.done += amount


class Share:
    """Progress of one part of what a pulse counts."""

    def __init__(self, pulse: Pulse, whole: float) -> None:
        """``whole``: what the part counts for once it is done."""
        self._pulse, self._whole, self._done = pulse, whole, 0.0

    def reach(self, share: float) -> None:
        """So much of it is done, in [0, 1]; never less than before."""
        now = self._whole * min(1.0, share)
        if now > self._done:
            self._pulse.add(now - self._done)
            self._done = now


ANSWERED = Pulse()
"""Answers that models of this process have sampled; one that is being sampled counts in part."""
ENDED = Pulse()
"""Answers in episodes that this process has played to their end, whoever sampled them."""
LOADED = Pulse()
"""Models that this process has loaded."""
LEARNED = Pulse()
"""Rows of which learners of this process have the gradient."""
