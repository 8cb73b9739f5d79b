"""A role that learns on a server."""

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
import numpy.typing as npt

from coterie.agents.team.backend import LearningSetup
from coterie.agents.team.trained_role import OtherFormat
from coterie.algorithms.imitation import LIKELIHOOD, describe_imitation
from coterie.algorithms.turn_credit import TurnBonus
from coterie.datatypes import Trajectory, UserError
from coterie.extras.tinker.adapter import fetch_adapter, note_state
from coterie.extras.tinker.learner import Score, ServerLearner, ServerWeights
from coterie.extras.tinker.model import ServerModel, Tokens
from coterie.extras.tinker.service import Lost, NoAnswer

STATE = "tinker.json"
"""File of a checkpoint, or of a trained model, that names the state on the server."""


class ServerRole:
    """Implements :class:`coterie.agents.team.backend.RoleLearner` on a server.

    A checkpoint holds the name of a state on the server: weights and moments stay there.
    """

    def __init__(
        self,
        weights: ServerWeights,
        start: Score,
        learning: LearningSetup,
        name_of: Callable[[str], str],
        frozen: Mapping[str, ServerModel] = MappingProxyType({}),
    ) -> None:
        """
        Args:
            weights: of the role.
            start: scores rows with the base model.
            learning: how it learns.
            name_of: version -> name of a state, which no other run has.
            frozen: models that do not learn, whose tokens a checkpoint keeps as well.
        """
        role = weights.model.role
        self._weights, self._name_of, self._frozen = weights, name_of, frozen
        self._begun = ""
        """State at the start of training, after imitation; empty: the base model."""
        self._at_start: ServerWeights | None = None
        """The weights of that state, once they are read."""
        self._states: list[str] = []
        """States of checkpoints on the server."""
        self._base = start
        settings = learning.learners.get(role, learning.settings)
        self.learner = ServerLearner(
            weights,
            self._start,
            learning.algorithm_of(role),
            settings,
            total_steps=learning.total_steps,
        )
        self.imitator: ServerLearner | None = None
        if (first := learning.imitation) is not None:
            self.imitator = ServerLearner(
                weights, start, LIKELIHOOD, first.settings(settings), total_steps=first.steps
            )

    @property
    def version(self) -> int:
        return self._weights.model.version

    @property
    def token_bonus(self) -> dict[int, npt.NDArray[np.float64]]:
        return self.learner.token_bonus

    def update(
        self,
        trajectories: Sequence[Trajectory],
        advantage_B: npt.ArrayLike,
        turn_bonus: TurnBonus = MappingProxyType({}),
    ) -> dict[str, float]:
        """See :meth:`coterie.algorithms.step_learner.StepLearner.update`."""
        return self.learner.update(trajectories, advantage_B, turn_bonus)

    def imitate(self, rows: Sequence[Trajectory]) -> dict[str, float]:
        """See :meth:`coterie.agents.team.trained_role.TrainedRole.imitate`."""
        assert self.imitator is not None, "this role imitates nothing, or has begun"
        return describe_imitation(self.imitator.update(rows, np.ones(len(rows))))

    def begin(self) -> None:
        """End imitation: further steps have moments of their own, and the current weights are the
        start of training."""
        if self.imitator is not None:
            self.imitator = None
            self._begun = self._save("begun")
            self._weights.client = self._load(self._begun, moments=False)

    def divergences(self, trajectories: Sequence[Trajectory]) -> npt.NDArray[Any]:
        """See :meth:`coterie.algorithms.step_learner.StepLearner.divergences`."""
        return self.learner.divergences(trajectories)

    def save(self, directory: Path | str) -> dict[str, Any]:
        """Save the state on the server, and write its name into ``directory``; return JSON data
        that a resumed run also needs."""
        model = self._weights.model
        path = self._save(f"{model.version}{'i' if self.imitator else ''}")
        folder = Path(directory)
        self._write(folder, path)
        self._forget(folder.parent.parent, path)
        plain: dict[str, Any] = {
            "state": path,
            "states": self._states,
            "begun": self._begun,
            "version": model.version,
            "tokens": model.tokens.plain(),
            "frozen": {name: frozen.tokens.plain() for name, frozen in self._frozen.items()},
            **self.learner.counters(),
        }
        return plain | ({"imitation": self.imitator.counters()} if self.imitator else {})

    def load(self, directory: Path | str, plain: dict[str, Any]) -> None:
        """Continue from what :meth:`save` saved.

        Raises:
            OtherFormat: the server has it no longer.
        """
        if "state" not in plain:
            raise OtherFormat(
                "it was trained in this process, not on a server: leave --engine as it was"
            )
        self._weights.client = self._load(plain["state"], moments=True)
        self._begun, self._states = str(plain["begun"]), list(plain["states"])
        self._weights.model.version = int(plain["version"])
        self._weights.model.tokens = Tokens(**plain["tokens"])
        for name, tokens in plain["frozen"].items():
            self._frozen[name].tokens = Tokens(**tokens)
        self.learner.restore(plain)
        if "imitation" not in plain:
            self.imitator = None
        elif self.imitator is not None:
            self.imitator.restore(plain["imitation"])

    def export(self, directory: Path | str) -> None:
        """Write the adapter in peft's format, if the server gives it out, and the name of its state
        on the server."""
        folder = Path(directory)
        path = self._save("final")
        self._write(folder, path)
        fetch_adapter(
            self._weights, self._name_of(f"{self._weights.model.role}-final"), path, folder
        )

    def _start(self, rows: Sequence[Trajectory]) -> Any:
        """Score rows with the weights before training."""
        if not self._begun:
            return self._base(rows)
        if self._at_start is None:
            service, model = self._weights.service, self._weights.model
            client = self._load(self._begun, moments=False)
            self._at_start = ServerWeights(service, model, client, self._weights.budget)
        return self._at_start.logprobs(rows)

    def _save(self, which: str) -> str:
        """Save weights and moments on the server; return the path of the state."""
        service, role = self._weights.service, self._weights.model.role
        future = self._weights.client.save_state(self._name_of(f"{role}-{which}"))
        return str(service.wait(f"save the state of {role}", future).path)

    def _forget(self, checkpoints: Path, newest: str) -> None:
        """Delete the states of deleted checkpoints on the server, where it allows that."""
        files = checkpoints.glob(f"*/{self._weights.model.role}/{STATE}")
        named = {json.loads(file.read_text(encoding="utf-8"))["state"] for file in files}
        for path in self._states:
            if path not in named:
                self._weights.service.delete(path)
        self._states = [path for path in self._states if path in named]
        if newest not in self._states:
            self._states.append(newest)

    def _load(self, path: str, *, moments: bool) -> Any:
        """A training client with the state at ``path``.

        Raises:
            OtherFormat: the server has it no longer.
            NoAnswer: it does not answer.
        """
        service, role = self._weights.service, self._weights.model.role
        client = service.client
        load = client.create_training_client_from_state
        if moments:
            load = client.create_training_client_from_state_with_optimizer
        try:
            return service.run(f"load the state of {role}", lambda: load(path))
        except UserError as error:
            if isinstance(error, NoAnswer) and not isinstance(error, Lost):
                raise
            raise OtherFormat(
                f"its weights are the state {path} on a server, and {error}; start the server with "
                "its stored states, or begin a new run"
            ) from None

    def _write(self, folder: Path, path: str) -> None:
        model = self._weights.model
        facts = {"state": path, "base_model": model.name, "rank": model.rank}
        (folder / STATE).write_text(json.dumps(facts, indent=1) + "\n", encoding="utf-8")
        note_state(self._weights.service, path, folder)
