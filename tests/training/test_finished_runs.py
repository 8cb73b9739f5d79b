"""What a run has finished is never overwritten, and what never began leaves nothing."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from coterie import train
from coterie.cli.command_line import parse
from coterie.datatypes import UserError
from coterie.training.config.preflight import preflight
from coterie.training.run import checkpoint
from coterie.training.session import Session, open_session


def a_run(folder: Path, *flags: str) -> Path:
    folder.mkdir()
    config = parse(["--steps", "4", *flags]).plain()
    (folder / "config.json").write_text(json.dumps(config))
    return folder


@pytest.mark.parametrize("left", ["summary.json", "final/alice/config.json"])
def test_an_ended_run_without_checkpoints_is_not_begun_again(tmp_path: Path, left: str) -> None:
    run = a_run(tmp_path / "run")
    (run / left).parent.mkdir(parents=True, exist_ok=True)
    (run / left).write_text("{}")
    (run / "metrics.jsonl").write_text('{"step": 1}\n')
    with pytest.raises(UserError, match="has ended and has no checkpoint left to continue from"):
        parse(["--resume", str(run), "--steps", "9"])
    with pytest.raises(UserError, match="has ended"):
        parse(["--resume", str(run)])


def test_nor_is_one_whose_checkpoints_must_have_been_there(tmp_path: Path) -> None:
    run = a_run(tmp_path / "run", "--checkpoint-every", "2")
    (run / "metrics.jsonl").write_text('{"step": 1}\n{"step": 2}\n')
    # Stopped in the step of its first checkpoint: nothing but that is lost.
    assert parse(["--resume", str(run)]).run.steps == 4
    with (run / "metrics.jsonl").open("a") as file:
        file.write('{"step": 3}\n')
    with pytest.raises(UserError, match="has logged 3 steps and has no checkpoint left"):
        parse(["--resume", str(run)])


def test_more_steps_are_remembered(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = tmp_path / "run"
    few = ("--rollout.problems-per-step", "2", "--eval.no-enabled", "--threads", "1")
    assert train.main([*few, "--steps", "1", "--run-dir", str(run)]) == 0
    # Stopped before the first of the further steps.
    longer = parse(["--resume", str(run), "--steps", "2"])
    with open_session(longer, preflight(longer)):
        pass
    said: list[str] = []
    checkpoint.check(run / "checkpoints" / "step-000001", said.append)
    assert said == []
    again = parse(["--resume", str(run)])
    assert again.run.steps == 2
    assert train.main(["--resume", str(run)]) == 0
    capsys.readouterr()
    # As after a kill in one of the further steps: plain --resume goes on to their end.
    summary, kept = run / "summary.json", (run / "summary.json").read_text()
    of_first = json.loads(kept)
    of_first["config"]["run"]["steps"] = 1
    summary.write_text(json.dumps(of_first))
    assert parse(["--resume", str(run)]).run.steps == 2
    summary.write_text(kept)
    with pytest.raises(SystemExit):
        parse(["--resume", str(run)])
    shown = capsys.readouterr().out
    assert "has ended; --steps above 2 continues it" in shown
    assert "has changed" not in shown


def test_a_run_that_is_refused_before_it_begins_leaves_nothing(
    opened: Callable[..., Session],
) -> None:
    session = opened()
    folder = session.run.path
    with pytest.raises(UserError, match="no answer"), session:
        raise UserError("no answer")
    assert not folder.exists()


def test_one_that_has_done_something_stays(opened: Callable[..., Session]) -> None:
    session = opened()
    session.run.append("metrics.jsonl", [{"step": 1}])
    with pytest.raises(UserError, match="no answer"), session:
        raise UserError("no answer")
    assert (session.run.path / "config.json").is_file()
