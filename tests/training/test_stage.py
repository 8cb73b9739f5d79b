"""How far a stage is, through a pipe and on a terminal."""

import io
import re
import time

import pytest
from rich.console import Console

from coterie.datatypes.pulse import ANSWERED, ENDED, LOADED, Pulse, Share
from coterie.training.stage import loading, stage, stage_of_step


def run(console: Console, parts: int = 20, each: float = 5.0, total: float = 100.0, **how: float):
    with stage(console, "evaluating", total, **how):  # type: ignore[arg-type]
        for _ in range(parts):
            ANSWERED.add(each)
            time.sleep(0.02)


@pytest.fixture(autouse=True)
def _often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("coterie.training.stage.PERIOD_S", 0.005)


def test_a_pipe_has_a_line_at_the_start_and_at_every_tenth() -> None:
    out = io.StringIO()
    run(Console(file=out, width=200))
    lines = out.getvalue().splitlines()
    assert lines[0] == "evaluating: 100 answers"
    done = [int(re.search(r": (\d+)/100 answers", line)[1]) for line in lines[1:]]  # type: ignore
    assert done == sorted(done)
    assert len({one // 10 for one in done}) == len(done) > 3
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


def test_a_share_counts_up_to_its_whole() -> None:
    pulse = Pulse()
    first, other = Share(pulse, 8), Share(pulse, 2)
    for share in (0.25, 0.5, 0.5, 0.1):
        first.reach(share)
    assert pulse.done == 4
    other.reach(3)
    first.reach(1)
    assert pulse.done == 10
