"""Whole runs, small enough for a test."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from coterie.datatypes.arguments import overlay
from coterie.training.command_line import parse
from coterie.training.preflight import preflight
from coterie.training.session import Session, open_session

SMALL = ("--steps", "2", "--rollout.problems-per-step", "8", "--eval.no-enabled")


@pytest.fixture
def opened(tmp_path: Path) -> Iterator[Callable[..., Session]]:
    """Opens a session of a small run with further flags."""
    sessions: list[Session] = []

    def start(*flags: str) -> Session:
        settings = parse(
            overlay([*SMALL, "--run-dir", str(tmp_path / f"run{len(sessions)}"), *flags])
        )
        session = open_session(settings, preflight(settings))
        sessions.append(session)
        return session

    yield start
    for session in sessions:
        session.__exit__()


@pytest.fixture
def train() -> Callable[[Session], list[dict[str, float]]]:
    """The loop of train.py; gives the metrics of each step."""

    def through(session: Session) -> list[dict[str, float]]:
        with session.open_logbook() as logbook:
            for step in session.steps_left():
                batch = session.sample(step)
                credit = session.credit(batch)
                session.sample_ahead(step + 1)
                session.record(step, batch, credit, session.update(batch, credit), logbook)
                session.evaluate_between(step, logbook)
                session.checkpoint(step)
        lines = (session.run.path / "metrics.jsonl").read_text().splitlines()
        return [json.loads(line) for line in lines]

    return through
