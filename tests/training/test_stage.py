"""How far a stage is, through a pipe and on a terminal."""

import io
import math
import re
import time
from itertools import pairwise

import pytest
from rich.console import Console

from coterie.datatypes.pulse import ANSWERED, ENDED, LEARNED, LOADED, Pulse, Share
from coterie.training.stage import Lines, checking, learning, loading, stage, stage_of_step


def run(
    console: Console, parts: int = 20, each: float = 5.0, total: float = 100.0, **options: float
):
    with stage(console, "evaluating", total, **options):  # type: ignore[arg-type]
        for _ in range(parts):
            ANSWERED.add(each)
            time.sleep(0.02)


@pytest.fixture(autouse=True)
def _often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("coterie.training.stage.PERIOD_S", 0.005)
    monkeypatch.setattr(Lines, "heard", time.monotonic())


def test_a_pipe_has_a_line_at_the_start_and_at_every_tenth() -> None:
    out = io.StringIO()
    run(Console(file=out, width=200))
    lines = out.getvalue().splitlines()
    assert lines[0] == "evaluating: 100 answers"
    done = [int(re.search(r": (\d+)/100 answers", line)[1]) for line in lines[1:]]  # type: ignore
    assert done == sorted(done)
    assert len({count // 10 for count in done}) == len(done) > 3
    assert re.fullmatch(r"evaluating: \d+/100 answers  \d+ s, \d+ s left", lines[1])


def test_a_terminal_has_a_bar_that_moves_while_the_process_computes() -> None:
    out = io.StringIO()
    run(Console(file=out, force_terminal=True, width=100, color_system=None))
    shown = out.getvalue()
    assert len(set(re.findall(r"(\d+)/100", shown))) > 2
    assert re.search(r"\d:\d\d:\d\d", shown)


def test_more_answers_than_were_reckoned_are_no_more_than_all() -> None:
    out = io.StringIO()
    run(Console(file=out, force_terminal=True, width=100, color_system=None), each=50.0)
    assert "100/100" in out.getvalue()
    assert "150/100" not in out.getvalue()


def test_a_part_of_a_step_that_is_short_says_nothing() -> None:
    out = io.StringIO()
    with stage_of_step(Console(file=out), "step 1: sampling", 100, lines=True):
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


def watch(title: str, said: list[str], clock: Clock, until: float, **options: float) -> list[float]:
    """Watch a stage of 1,000 parts that does one in a second, four times in each; when it wrote."""
    lines = Lines(said.append, title, 1000, "answers", clock=clock, **options)
    start, wrote = clock.now, []
    if not options:
        lines.begin()
        wrote.append(start)
    while clock.now < until:
        clock.now += 0.25
        before = len(said)
        lines.show(clock.now - start, clock.now - start)
        wrote += [clock.now] * (len(said) - before)
    return wrote


def test_a_pipe_is_never_silent_for_five_seconds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Lines, "heard", -math.inf)
    clock, said = Clock(), list[str]()
    wrote = watch("evaluating", said, clock, clock.now + 200)
    gaps = [b - a for a, b in pairwise(wrote)]
    assert max(gaps) <= 5
    # No flood either: a line in four seconds, and one more at each of two tenths.
    assert len(said) <= 1 + 200 / 4 + 2
    assert said[1] == "evaluating: 4/1000 answers  4 s, 996 s left"


def test_short_parts_of_steps_are_no_long_silence_together(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    clock, said, wrote = Clock(), list[str](), list[float]()
    monkeypatch.setattr(Lines, "heard", clock.now)
    start = clock.now
    for number in range(40):
        wrote += watch(f"step {number}", said, clock, clock.now + 1.5, least_s=4.0)
    assert all(b - a <= 5 for a, b in pairwise([start, *wrote, clock.now]))
    # Each of a second and a half: what takes less than four seconds in all says nothing.
    assert said[0] == "step 2: 1/1000 answers  1 s, 999 s left"


def test_a_stage_without_a_count_says_how_long_it_takes(monkeypatch: pytest.MonkeyPatch) -> None:
    clock, said = Clock(), list[str]()
    monkeypatch.setattr(Lines, "heard", -math.inf)
    lines = Lines(said.append, "checking settings", 0, "", clock=clock)
    lines.begin()
    for second in range(1, 11):
        clock.now += 1
        lines.show(0, second)
    assert said == ["checking settings", "checking settings: 4 s", "checking settings: 8 s"]


def test_a_terminal_sees_a_step_learn_on_the_bar_of_the_run() -> None:
    shown, out = list[str](), io.StringIO()
    console = Console(file=out, force_terminal=True, width=100)
    with learning(console, "step 3", 96, lines=True, bar=shown.append):
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


@pytest.mark.parametrize("lines", [True, False])
def test_checks_that_take_long_say_so_through_a_pipe(
    lines: bool, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("coterie.training.stage.SILENCE_S", 0.0)
    monkeypatch.setattr("coterie.training.stage.PERIOD_S", 0.005)
    with checking(lines=lines):
        time.sleep(0.2)
    assert ("checking settings, models and problems: " in capsys.readouterr().out) == lines
