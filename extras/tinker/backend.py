"""The backend whose models are on a server with Tinker's API."""

import asyncio
import re
from collections.abc import Callable, Mapping, Sequence, Set
from concurrent.futures import wait
from functools import partial
from typing import Any, TypeVar

import numpy as np
import torch
from torch import Tensor

from coterie.agents.team.backend import Learners, LearningSetup, Models, RestorePoint, RoleLearner
from coterie.agents.team.reading import ReadRequest
from coterie.agents.team.settings import AgentSettings
from coterie.datatypes import Reading, Trajectory, UserError, derive_seed
from coterie.extras.tinker.learner import ServerWeights
from coterie.extras.tinker.model import ServerModel, server_model
from coterie.extras.tinker.policy import ServerPolicy
from coterie.extras.tinker.role import ServerRole
from coterie.extras.tinker.service import NoAnswer, Service, in_thread
from coterie.extras.tinker.settings import TinkerSettings

T = TypeVar("T")

_SEEDS = 1 << 31
_PROBE = Trajectory(
    agent="",
    role="",
    tokens=np.array([0, 1]),
    mask=np.array([False, True]),
    logprobs=np.zeros(2, np.float32),
    reward=0.0,
    reward_terms={},
    groups={},
)
"""A row of two tokens that every vocabulary has."""
_PARALLEL = 16
"""Requests for log-probabilities of base models in flight."""

_NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9._-]+")


def state_name(run: str, which: str) -> str:
    """The name of a state of the run, of characters that servers take.

    >>> state_name("my run", "alice-2")
    'my-run-alice-2'
    """
    stem = _NOT_IN_NAMES.sub("-", run).strip(".-")[:60] or "run"
    return f"{stem}-{_NOT_IN_NAMES.sub('-', which)}"


class TinkerBackend:
    """Implements :class:`coterie.agents.team.backend.Backend`: each role that learns is a training
    session of the server, and each frozen role a sampling session."""

    def __init__(self, settings: TinkerSettings, run: str) -> None:
        """``run``: name of the run, for the states on the server."""
        self._settings, self._run = settings, run
        self._service: Service | None = None
        self._models: dict[str, ServerModel] = {}
        self._policies: dict[str, ServerPolicy] = {}
        self._learners: dict[str, ServerRole] = {}
        self._weights: dict[str, ServerWeights] = {}
        self._bases: dict[str, Any] = {}
        """Base model -> its sampling client."""

    def load(
        self,
        models: Mapping[str, AgentSettings],
        learns: Set[str],
        learning: LearningSetup | None,
        seed: int,
    ) -> Models:
        """Open the sessions. For the arguments see
        :meth:`coterie.agents.team.backend.Backend.load`.

        Raises:
            UserError: the server does not answer, or refuses a model.
        """
        self._service = service = Service(self._settings)
        self._models = {
            name: server_model(name, agent, self._settings) for name, agent in models.items()
        }
        self._policies = {n: ServerPolicy(service, model) for n, model in self._models.items()}
        frozen = {name: model for name, model in self._models.items() if name not in learns}
        for name, model in self._models.items():
            if name not in learns or learning is None:
                self._policies[name].use(self._base(model.name), 0)
                continue
            client = service.run(
                f"open a training session on {model.name!r}",
                partial(
                    service.client.create_lora_training_client,
                    base_model=model.name,
                    rank=model.rank,
                    seed=derive_seed(seed, "lora", name) % _SEEDS,
                    train_unembed=False,
                ),
            )
            budget = learning.learners.get(name, learning.settings).micro_batch_tokens
            weights = ServerWeights(service, model, client, budget)
            start = partial(self._score_with_base, model)
            name_of = partial(state_name, self._run)
            self._weights[name] = weights
            self._learners[name] = ServerRole(weights, start, learning, name_of, frozen)
        if learning is not None:
            self._try_scores(learning)
        codecs = {name: model.codec for name, model in self._models.items()}
        return Models(self._policies, codecs, self._learners)

    def _try_scores(self, learning: LearningSetup) -> None:
        """Refuse a server that gives no log-probabilities of prompts, if a role needs them.

        Raises:
            UserError: names the role and the setting.
        """
        for role in self._learners:
            algorithm = learning.algorithm_of(role)
            distillation = algorithm.distillation
            reads_start = distillation.beta > 0 and distillation.reader == "start"
            needed_by = {
                "--algo.distillation.teacher": bool(distillation.teacher),
                "--algo.distillation.reader start": reads_start and not distillation.teacher,
                "--algo.kl-coefficient": algorithm.kl_coefficient > 0,
                "--algo.kl-in-reward": algorithm.kl_in_reward > 0,
            }
            flags = [flag for flag, needed in needed_by.items() if needed]
            if not flags:
                continue
            model = self._models[role]
            try:
                self._score_with_base(model, [_PROBE])
            except NoAnswer as error:
                raise UserError(
                    f"{flags[0]} needs log-probabilities of prompts: {error}; leave it out for "
                    f"{role}, or take another server"
                ) from None

    def _base(self, name: str) -> Any:
        """The sampling client of a base model, which its roles share."""
        assert self._service is not None
        if name not in self._bases:
            self._bases[name] = self._service.base(name)
        return self._bases[name]

    def _score_with_base(self, model: ServerModel, rows: Sequence[Trajectory]) -> list[Tensor]:
        """Score rows with the base model, which is a new adapter's start."""
        assert self._service is not None
        policy = ServerPolicy(self._service, model)
        policy.use(self._base(model.name), 0)

        async def score() -> list[list[float]]:
            gate = asyncio.Semaphore(_PARALLEL)

            async def one(row: Trajectory) -> list[float]:
                async with gate:
                    return await policy.score(row.tokens.tolist())

            return await asyncio.gather(*map(one, rows))

        # The caller may be in an event loop.
        scored = in_thread(lambda: asyncio.run(score())).result()
        return [torch.tensor(logp_T[1:], dtype=torch.float32) for logp_T in scored]

    async def start(self) -> None:
        """Do nothing: :meth:`load` has opened the sessions."""

    async def refresh(self) -> None:
        """Sample with the newest weights from now on."""
        assert self._service is not None
        await asyncio.gather(*map(self._publish, self._learners))

    async def _publish(self, name: str) -> None:
        assert self._service is not None
        weights, policy = self._weights[name], self._policies[name]
        # A session that was loaded has another client at the same version.
        stamp = (weights.client, weights.model.version)
        if policy.stamp != stamp:
            client = await self._service.answer(
                f"give out the weights of {name} for sampling",
                weights.client.save_weights_and_get_sampling_client,
            )
            policy.use(client, weights.model.version, stamp)

    async def rest(self) -> None:
        """Do nothing: the server manages its memory."""

    async def read(
        self, name: str, rows: Sequence[Trajectory], request: ReadRequest
    ) -> list[Reading | None]:
        """See :meth:`coterie.agents.team.backend.Backend.read`."""
        return await self._policies[name].read(rows)

    def learn(self, work: Callable[[str, RoleLearner], T]) -> dict[str, T]:
        """See :meth:`coterie.agents.team.backend.Backend.learn`; the server computes for all roles
        at the same time."""
        done = {n: in_thread(partial(work, n, learner)) for n, learner in self._learners.items()}
        wait(done.values())
        return {name: future.result() for name, future in done.items()}

    def save(self, write: Callable[[Learners], RestorePoint]) -> None:
        """See :meth:`coterie.agents.team.backend.Backend.save`."""
        write(self._learners)

    def restore(self, read: Callable[[Learners], RestorePoint]) -> None:
        """See :meth:`coterie.agents.team.backend.Backend.restore`."""
        read(self._learners)

    def places(self) -> list[dict[str, str]]:
        """Return the rows of a table of roles and their models on the server."""
        return [
            {
                "role": name,
                "model on the server": model.name,
                "learns": "yes" if name in self._learners else "no",
            }
            for name, model in self._models.items()
        ]

    def spent(self) -> list[dict[str, str]]:
        """Return the rows of a table of the tokens that the server has computed, and their cost."""
        return [
            {
                "role": name,
                **{f"{what} tokens": f"{n:,}" for what, n in model.tokens.plain().items()},
                **({"cost": f"{model.tokens.cost(model.prices):.2f}"} if model.prices else {}),
            }
            for name, model in self._models.items()
        ]

    def close(self) -> None:
        """Close the connection."""
        if self._service is not None:
            self._service.close()
            self._service = None
