"""Signals are taken between steps."""

import os
import signal

import pytest

from launch.interrupt import Interruptible, Stop


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_the_first_signal_waits_for_the_step_and_the_second_strikes(number: signal.Signals) -> None:
    before = signal.getsignal(number)
    with Interruptible() as interrupt:
        interrupt.check()
        os.kill(os.getpid(), number)
        done = "the step went on"
        with pytest.raises(Stop):
            interrupt.check()
        with pytest.raises(KeyboardInterrupt):
            os.kill(os.getpid(), number)
    assert done
    assert signal.getsignal(number) == before
