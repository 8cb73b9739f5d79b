"""The loop of train.py."""

from collections.abc import Callable

import pytest

from coterie.training.session import Session


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
        return session.run.read_log("metrics.jsonl")

    return through
