"""A learner in another process is given what a local one is."""

from types import SimpleNamespace
from typing import Any

import numpy as np

from coterie.extras.cluster.remote_roles import RemoteRole
from coterie.extras.cluster.worker import Worker


class Trained:
    """Keeps what it is given, and adds a bonus to the first row."""

    loaded = SimpleNamespace(handle=SimpleNamespace(stamp=(1, 0)))

    def update(self, *given: Any) -> dict[str, float]:
        self.given = given
        self.token_bonus = {0: np.ones(2)}
        return {"loss": 0.5}


def test_an_update_arrives_whole() -> None:
    trained = Trained()
    worker = object.__new__(Worker)
    worker.models = SimpleNamespace(trained={"a": trained})  # type: ignore[assignment]
    about: Any = SimpleNamespace(context=8, stamp=(0, 0))
    role = RemoteRole("a", lambda name, *args: getattr(worker, name)(*args), about, shared=True)
    rows: list[Any] = [["first"], ["second"]]
    assert role.update(rows, [1.0, 2.0], {1: np.array([0.5])}) == {"loss": 0.5}
    assert trained.given == (rows, [1.0, 2.0], {1: np.array([0.5])})
    assert list(role.token_bonus) == [0]
    role.update(rows, [1.0, 2.0])
    assert trained.given == (rows, [1.0, 2.0], {})
