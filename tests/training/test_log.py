"""What a run's progress looks like, on a terminal and elsewhere."""

import io

from rich.console import Console

from coterie.training.run.directory import RunDirectory
from coterie.training.run.log import Logbook

HEADLINE = ("reward/alice", "reward/bob", "measured/alice/correct", "measured/bob/correct")


def logged(tmp_path, metrics, *, headline=HEADLINE, **console):
    file = io.StringIO()
    run = RunDirectory.create(tmp_path / "run", {})
    book = Logbook(run, Console(file=file, **console), first=1, last=330, headline=headline)
    with book:
        book.step(1, metrics)
        book._bar.refresh()
    run.close()
    return file.getvalue()


def test_rewards_and_headline_of_every_role_in_one_line(tmp_path):
    metrics = dict(zip(HEADLINE, (-0.25, 1.671, 0.5, 1.0))) | {"reward/alice/rescue": 0.1}
    said = logged(tmp_path, metrics, width=80)
    assert said.startswith("step 1/330  alice, bob: reward -.25 1.67  correct .50 1.00  ")
    assert said.endswith(" s left\n")
    assert said.count("\n") == 1


def test_what_failed_is_a_dash_and_a_single_role_is_not_named(tmp_path):
    shown = logged(tmp_path, dict(zip(HEADLINE[1:], (1, 0.5, 1))), width=80)
    assert "alice, bob: reward – 1.00  correct .50 1.00" in shown
    alone = logged(tmp_path / "alone", {"reward/alice": 2, "rollout/rounds": 3}, width=80,
                   headline=("reward/alice", "rollout/rounds"))  # fmt: skip
    assert alone.startswith("step 1/330  reward 2.00  rollout/rounds 3.00  ")


def test_a_pipe_has_the_first_step_and_ten_more(tmp_path):
    for last, steps in ((16, 11), (19, 11), (330, 11), (7, 7)):
        file = io.StringIO()
        run = RunDirectory.create(tmp_path / str(last), {})
        with Logbook(run, Console(file=file), first=1, last=last, headline=()) as book:
            for step in range(1, last + 1):
                book.step(step, {})
        run.close()
        said = file.getvalue().splitlines()
        assert len(said) == len(set(said)) == steps
        assert said[-1].startswith(f"step {last}/{last} ")


def test_a_terminal_of_80_columns_shows_all_of_it(tmp_path):
    metrics = dict(zip(HEADLINE, (-0.25, 1.671, 0.5, 1.0)))
    said = logged(tmp_path, metrics, width=80, force_terminal=True, color_system=None)
    line = next(row for row in said.splitlines() if "1/330" in row)
    for part in (
        "1/330   0:00:0",
        " + ",
        " left alice, bob: ",
        "reward -.25 1.67  correct .50 1.00",
    ):
        assert part in line


def test_a_terminal_shows_the_part_of_a_step(tmp_path):
    file = io.StringIO()
    run = RunDirectory.create(tmp_path / "run", {})
    console = Console(file=file, width=120, force_terminal=True, color_system=None)
    with Logbook(run, console, first=1, last=9, headline=()) as book:
        book.part("learning 24/96")
        book._bar.refresh()
        at_work = file.getvalue()
        book.part("")
        book._bar.refresh()
    run.close()
    assert "left [learning 24/96]" in at_work
    assert "learning" not in file.getvalue().removeprefix(at_work)
