"""Signals are taken between steps."""

import os
import signal
from typing import Any

import pytest

from coterie import benchmark, train
from coterie.training.commands import Interruptible, Stop


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_the_first_signal_waits_for_the_step_and_the_second_strikes(number: signal.Signals) -> None:
    before = signal.getsignal(number)
    with Interruptible() as interrupt:
        with pytest.raises(KeyboardInterrupt):  # nothing is at stake yet
            os.kill(os.getpid(), number)
        interrupt.begin()
        interrupt.check()
        os.kill(os.getpid(), number)
        done = "the step went on"
        with pytest.raises(Stop):
            interrupt.check()
        with pytest.raises(KeyboardInterrupt):
            os.kill(os.getpid(), number)
    assert done
    assert signal.getsignal(number) == before


def test_a_signal_after_the_last_result_neither_strikes_nor_says_that_it_stops(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with Interruptible() as interrupt:
        interrupt.begin()
        interrupt.over = True
        os.kill(os.getpid(), signal.SIGTERM)
        closed = True
    assert closed
    assert not capsys.readouterr().out


@pytest.mark.parametrize(
    ("program", "work"), [(train, "_train"), (benchmark, "_compare")], ids=["train", "benchmark"]
)
def test_a_signal_at_any_other_time_says_how_to_go_on(
    program: Any, work: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def struck(_: object) -> int:
        raise KeyboardInterrupt

    monkeypatch.setattr(program, work, struck)
    assert program.main([]) == 130
    assert "continue" in capsys.readouterr().err
