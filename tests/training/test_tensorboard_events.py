"""What is written is what TensorBoard reads, in the order of steps, whatever the clock says."""

import time
from pathlib import Path

import pytest
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from coterie.training.run.tensorboard_events import EventFile


def read(folder: Path) -> EventAccumulator:
    events = EventAccumulator(str(folder))
    events.Reload()
    return events


def write(folder: Path, first: int, last: int, value: float) -> None:
    events = EventFile(folder, first=first)
    for step in range(first, last + 1):
        events.scalars(step, {"reward/alice": value, "loss": float("nan")})
    events.text(last, "transcript", "**x**")
    events.close()


def test_tensorboard_reads_it(tmp_path: Path) -> None:
    write(tmp_path / "tb", 1, 3, 0.5)
    events = read(tmp_path / "tb")
    assert [(e.step, e.value) for e in events.Scalars("reward/alice")] == [
        (i, 0.5) for i in (1, 2, 3)
    ]
    assert len(events.Scalars("loss")) == 3
    (text,) = events.Tensors("transcript/text_summary")
    assert (text.step, text.tensor_proto.string_val[0]) == (3, b"**x**")


@pytest.mark.parametrize("jump", [-40 * 365 * 86400, 0, 40 * 365 * 86400])
def test_what_a_resumed_run_does_again_is_shown_once_whatever_the_clock_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, jump: int
) -> None:
    write(tmp_path, 1, 4, 0.5)
    now = time.time()
    monkeypatch.setattr(time, "time", lambda: now + jump)
    write(tmp_path, 3, 5, 0.75)
    events = read(tmp_path).Scalars("reward/alice")
    assert [(e.step, e.value) for e in events] == [
        (1, 0.5), (2, 0.5), (3, 0.75), (4, 0.75), (5, 0.75),
    ]  # fmt: skip
