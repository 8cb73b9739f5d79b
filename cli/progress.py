"""Counters of long work in this process, which :mod:`coterie.training.run.stage_progress` shows."""


class Pulse:
    """A count that only grows. One thread may read it while another one adds."""

    def __init__(self) -> None:
        self.done = 0.0

    def add(self, amount: float) -> None:
        """Add ``amount`` to the count."""
        self.done += amount


class Sum:
    """Pulses that count together."""

    def __init__(self, *pulses: Pulse) -> None:
        self._pulses = pulses

    @property
    def done(self) -> float:
        """Their sum."""
        return sum(pulse.done for pulse in self._pulses)


class Share:
    """The progress of a piece of work, which counts in parts."""

    def __init__(self, pulse: Pulse, whole: float) -> None:
        """``whole``: the units of ``pulse`` for the complete piece."""
        self._pulse, self._whole, self._done = pulse, whole, 0.0

    def reach(self, share: float) -> None:
        """Raise the count to ``share`` of the whole, in [0, 1]; it never falls."""
        now = self._whole * min(1.0, share)
        if now > self._done:
            self._pulse.add(now - self._done)
            self._done = now


ANSWERED = Pulse()
"""Answers that models of this process have sampled; unfinished answers count in part."""
ENDED = Pulse()
"""Answers in episodes that this process has played to the end, from any kind of policy."""
READ = Pulse()
"""Rows of learners that their teachers have read."""
LOADED = Pulse()
"""Models that this process has loaded."""
LEARNED = Pulse()
"""Rows whose gradient the learners of this process have computed."""
