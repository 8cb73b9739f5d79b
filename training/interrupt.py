"""Ctrl-C and SIGTERM, taken between two steps rather than in the middle of one."""

import signal
from types import FrameType


class Stop(Exception):
    """The user asked the run to stop; its state is whole."""


class Interruptible:
    """While open, SIGINT and SIGTERM strike; between :meth:`begin` and the end, the first one only
    sets :attr:`asked`, and the second one strikes.

    ::

        with Interruptible() as interrupt, slow_to_open_and_close():
            interrupt.begin()
            for step in steps:
                work()
                interrupt.check()  # raises Stop
            interrupt.over = True
    """

    def __init__(self) -> None:
        self.asked = False
        self.over = False
        """Nothing is left to do but to close what was opened: nobody need hear that it stops."""
        self._begun = False
        self._before: dict[int, object] = {}

    def __enter__(self) -> "Interruptible":
        for number in (signal.SIGINT, signal.SIGTERM):
            self._before[number] = signal.signal(number, self._on_signal)
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)  # type: ignore[arg-type]

    def begin(self) -> None:
        """From now on there is something to lose."""
        self._begun = True

    def check(self) -> None:
        """Raise :class:`Stop` if a signal has come."""
        if self.asked:
            raise Stop

    def _on_signal(self, number: int, _: FrameType | None) -> None:
        if self.asked or not self._begun:
            raise KeyboardInterrupt
        self.asked = True
        if not self.over:
            print(
                "\nStopping after the step or evaluation in flight; once more to stop at once.",
                flush=True,
            )
