"""How far a stage is, through a pipe and on a terminal."""

import io
import re
import time

import pytest
from rich.console import Console

from coterie.cli.progress import ANSWERED, ENDED, LEARNED, LOADED, READ, Pulse, Share, Sum
from coterie.training.run.stage_progress import (
    Lines,
    checking,
    learning,
    loading,
    stage,
    stage_of_step,
)


def run(
    console: Console, parts: int = 20, each: float = 5.0, total: float = 100.0, **options: float
):
    with stage(console, "evaluating", total, **options):  # type: ignore[arg-type]
        for _ in range(parts):
            ANSWERED.add(each)
            time.sleep(0.02)


@pytest.fixture(autouse=True)
def _often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("coterie.training.run.stage_progress.PERIOD_S", 0.005)
    monkeypatch.setattr(Lines, "last_line", time.monotonic())


def test_a_pipe_has_a_line_at_the_start_and_at_every_tenth() -> None:
    out = io.StringIO()
    run(Console(file=out, width=200))
    lines = out.getvalue().splitlines()
    assert lines[0] == "evaluating: 100 answers"
    done = [int(re.search(r": (\d+)/100 answers", line)[1]) for line in lines[1:]]  # type: ignore
    assert done == sorted(done)
    assert len({count // 10 for count in done}) == len(done) > 3
    assert re.fullmatch(r"evaluating: \d+/100 answers  \d+ s, \d+ s left", lines[1])


def test_a_terminal_has_a_bar_that_moves_and_whose_end_may_move() -> None:
    out = io.StringIO()
    run(Console(file=out, force_terminal=True, width=100, color_system=None), each=50.0)
    counts = {tuple(map(int, found)) for found in re.findall(r"(\d+)/(\d+)", out.getvalue())}
    assert (1000, 1000) in counts
    assert len(counts) > 2
    assert all(done <= total >= 100 for done, total in counts)
    assert re.search(r"\d:\d\d:\d\d", out.getvalue())


def test_a_part_of_a_step_that_is_short_says_nothing() -> None:
    out = io.StringIO()
    with stage_of_step(Console(file=out), "step 1: sampling", 100, slow=True):
        ANSWERED.add(50)
        time.sleep(0.05)
    run(Console(file=out), lines=False)
    assert out.getvalue() == ""


def test_models_are_counted_as_they_are_loaded() -> None:
    out = io.StringIO()
    with loading(Console(file=out, width=200), ["a", "a"], lines=True):
        LOADED.add(1)
        time.sleep(0.1)
    lines = out.getvalue().splitlines()
    assert lines[0] == "loading a: 2 roles"
    assert lines[1].startswith("loading a: 1/2 roles  0 s, ")


def test_answers_of_others_count_as_their_episodes_end() -> None:
    out = io.StringIO()
    with stage(Console(file=out, width=200), "asking", 4):
        ENDED.add(2)
        time.sleep(0.1)
    assert "asking: 2/4 answers" in out.getvalue()


class Clock:
    """Seconds as a test says."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def watch(title: str, said: list[str], clock: Clock, seconds: float, *, part: bool = False) -> None:
    """Watch a stage of 1,000 answers that gives one a second, looking four times in each."""
    lines = Lines(said.append, title, 1000, "answers", clock=clock, tenths=not part)
    if not part:
        lines.begin()
    start = clock.now
    while clock.now < start + seconds:
        clock.now += 0.25
        lines.show(clock.now - start, clock.now - start)


def test_a_pipe_has_no_line_between_tenths_but_after_a_minute() -> None:
    clock, said = Clock(), list[str]()
    Lines.last_line = clock.now
    watch("evaluating", said, clock, 230)
    # Tenths at 100 and 200 seconds; a minute after each line and before the next tenth another.
    seconds = [re.search(r"answers  (\d+) s", line) for line in said[1:]]
    assert [int(found[1]) for found in seconds if found] == [60, 100, 160, 200]
    assert len(set(said)) == len(said)


def test_parts_of_steps_have_a_line_a_minute_whatever_their_tenths() -> None:
    clock, said = Clock(), list[str]()
    Lines.last_line = clock.now
    for number in range(10):
        watch(f"step {number}", said, clock, 15.0, part=True)
    # 150 seconds in all: the third minute is not over.
    assert [line.partition(":")[0] for line in said] == ["step 3", "step 7"]


def test_what_a_teacher_reads_counts_beside_the_answers() -> None:
    out = io.StringIO()
    pulses = Sum(ANSWERED, READ), Sum(ENDED, READ)
    with stage(Console(file=out, width=200), "sampling and reading", 200, pulses=pulses):
        for pulse in (ANSWERED, READ):
            for _ in range(10):
                pulse.add(10)
                time.sleep(0.02)
    done = [int(found) for found in re.findall(r": (\d+)/200 answers", out.getvalue())]
    assert any(0 < count < 100 for count in done)
    assert any(100 < count < 200 for count in done)


def test_more_than_was_expected_is_counted_without_an_end() -> None:
    clock, said = Clock(), list[str]()
    Lines.last_line = clock.now
    lines = Lines(said.append, "sampling", 4, "answers", clock=clock)
    for seconds, done in ((30, 3), (60, 4), (120, 9)):
        clock.now += 60
        lines.show(done, seconds)
    assert said == [
        "sampling: 3/4 answers  30 s, 10 s left",
        "sampling: 4/4 answers  60 s, 0 s left",
        "sampling: 9 answers  120 s",
    ]


def test_a_stage_without_a_count_says_how_long_it_takes(monkeypatch: pytest.MonkeyPatch) -> None:
    clock, said = Clock(), list[str]()
    monkeypatch.setattr(Lines, "last_line", clock.now)
    lines = Lines(said.append, "checking settings", 0, "", clock=clock)
    lines.begin()
    for second in range(1, 130):
        clock.now += 1
        lines.show(0, second)
    assert said == ["checking settings", "checking settings: 60 s", "checking settings: 120 s"]


def test_a_terminal_sees_a_step_learn_on_the_bar_of_the_run() -> None:
    shown, out = list[str](), io.StringIO()
    console = Console(file=out, force_terminal=True, width=100)
    with learning(console, "step 3", 96, slow=True, bar=shown.append):
        LEARNED.add(24)
        time.sleep(0.1)
    assert shown[-2:] == ["learning 24/96", ""]
    assert out.getvalue() == ""


def test_a_share_counts_up_to_its_whole() -> None:
    pulse = Pulse()
    first, other = Share(pulse, 8), Share(pulse, 2)
    for share in (0.25, 0.5, 0.5, 0.1):
        first.reach(share)
    assert pulse.done == 4
    other.reach(3)
    first.reach(1)
    assert pulse.done == 10


@pytest.mark.parametrize("slow", [True, False])
def test_checks_that_take_long_say_so_through_a_pipe(
    slow: bool, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("coterie.training.run.stage_progress.SILENCE_S", 0.0)
    monkeypatch.setattr("coterie.training.run.stage_progress.PERIOD_S", 0.005)
    with checking(slow=slow):
        time.sleep(0.2)
    assert ("checking settings, models and problems: " in capsys.readouterr().out) == slow
