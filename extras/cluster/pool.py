"""The processes of one run: which process serves which role, and how dead ones are replaced.

Each base model has a learner for its trained roles: one process, or several ranks that shard the
weights. It also has any number of engines that sample; without engines the learner samples too.
A base with several ranks, or without a learner, has at least one engine. The learner sends its
weights to all engines before sampling begins and never during it, so no request sees two versions.
"""

import asyncio
import pickle
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence, Set
from concurrent.futures import ThreadPoolExecutor, wait
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from coterie.agents.team.backend import (
    Died,
    Learners,
    LearningSetup,
    Models,
    RestorePoint,
    RoleLearner,
)
from coterie.agents.team.model_specs import check_engines
from coterie.agents.team.reading import ReadRequest
from coterie.agents.team.settings import AgentSettings
from coterie.agents.vllm.settings import VllmSettings
from coterie.datatypes import Completion, Reading, Trajectory, UserError
from coterie.extras.cluster.actor import Actor, Cluster
from coterie.extras.cluster.bases import Base, cores_and_gpus, plan_bases
from coterie.extras.cluster.engine_worker import EngineWorker
from coterie.extras.cluster.processes import Machine, Process
from coterie.extras.cluster.remote_roles import RemotePolicy, RemoteRole, RoleRequest
from coterie.extras.cluster.settings import ClusterSettings
from coterie.extras.cluster.starting import start
from coterie.extras.cluster.worker import About, Stamp
from coterie.rollouts.coalesce import Coalescer

T = TypeVar("T")

_IMITATING = ("imitate", "begin")
"""Methods of :class:`coterie.agents.team.trained_role.TrainedRole` that change a learner."""
_LET_GO_S = 20.0
"""Seconds that engines get to end the processes that they started."""
_ATTEMPTS, _PAUSE_S = 8, 5.0
"""Attempts to replace a process, and seconds between them: Ray needs half a minute to notice that
a node is gone."""


class Pool:
    """A :class:`coterie.agents.team.backend.Backend` of processes on this machine or a cluster."""

    def __init__(
        self,
        settings: ClusterSettings,
        *,
        threads: int = 0,
        vllm: VllmSettings | None = None,
        folder: Path | None = None,
    ) -> None:
        """``threads``: threads of each process; 0 means its number of cores. ``vllm``: settings of
        the vLLM engines; None means the built-in sampler. ``folder``: run directory that learners
        write to; None means that this process writes."""
        self._settings, self._vllm = settings, vllm
        self._folder = folder
        self._threads = threads or max(1, int(settings.cpus))
        self._cluster: Cluster | Machine | None = None
        self._bases: list[Base] = []
        self._trained: dict[str, RemoteRole] = {}
        self._about: dict[str, About] = {}
        self._engine_stamps: dict[str, Stamp] = {}
        """Role -> stamp of the weights that the engines sample with."""
        self._load: Counter[str] = Counter()
        """Engine name -> number of requests in flight."""
        self._restore: RestorePoint | None = None

    def load(
        self,
        models: Mapping[str, AgentSettings],
        learns: Set[str],
        learning: LearningSetup | None,
        seed: int,
    ) -> Models:
        """Start every process and load the models there. For the arguments see
        :meth:`coterie.agents.team.backend.Backend.load`.

        Raises:
            UserError: the cluster is too small or has different code, or a model fails to load.
        """
        try:
            return self._open(models, learns, learning, seed)
        except BaseException:
            self.close()
            raise

    def _open(
        self,
        models: Mapping[str, AgentSettings],
        learns: Set[str],
        learning: LearningSetup | None,
        seed: int,
    ) -> Models:
        used = self._settings.used
        self._cluster = cluster = Cluster(self._settings) if used else Machine()
        kind, gpus = Actor if used else Process, cluster.has_gpus()
        if self._vllm is not None:
            # Before, nobody knew what GPUs the cluster has.
            check_engines("vllm", self._vllm, models, here=False, gpus=gpus)
        more = {"seed": seed, "threads": self._threads}
        self._bases = plan_bases(
            models, learns, learning, kind, cluster.meeting, vllm=self._vllm, gpus=gpus, **more
        )
        cpus = self._settings.cpus
        processes = [process for actor in self._actors for process in actor.processes]
        needs = [(process, cores_and_gpus(process, cpus=cpus, gpus=gpus)) for process in processes]
        cluster.reserve({process.name: need for process, need in needs})
        for number, (process, need) in enumerate(needs):
            process.options = cluster.place(number, need)
        self._about = about = start(self._actors, self._folder)
        self._engine_stamps = {role: model.stamp for role, model in about.items()}
        for base in self._bases:
            self._trained |= self._roles(base, partial(self._learn, base))
            base.sent = self._newest(base)
        self._trained = {role: self._trained[role] for role in models if role in learns}
        ask = self._answer_request
        if self._vllm is None:
            ask = Coalescer(self._answer, key=lambda call: (call[0], call[1], call[2].seed))
        return Models(
            policies={role: RemotePolicy(role, about[role], ask) for role in models},
            codecs={role: about[role].codec for role in models},
            trained=self._trained,
        )

    async def start(self) -> None:
        """Nothing to do: :meth:`load` has started everything."""

    async def refresh(self) -> None:
        """Update every engine to the newest weights. No request may be in flight."""
        for base in self._bases:
            if base.sampling_learner is not None:
                if self._vllm is not None:
                    self._ask(base.sampling_learner, "refresh")
            elif any(
                self._trained[r].stamp != self._engine_stamps[r] for r in self._learning(base)
            ):
                self._publish(base)
            self._engine_stamps |= {
                role: self._trained[role].stamp for role in self._learning(base)
            }

    async def rest(self) -> None:
        """Free the device for each learner that shares its process with an engine. Samplers apart
        forget contexts, which new weights make stale."""
        for base in self._bases:
            for engine in base.engines if self._vllm is None else [base.sampling_learner]:
                if engine is not None:
                    self._ask(engine, "rest")

    async def read(
        self, name: str, rows: Sequence[Trajectory], request: ReadRequest
    ) -> list[Reading | None]:
        """See :meth:`coterie.agents.team.backend.Backend.read`; the engines share the rows."""
        engines = self._base_of(name).engines
        readings: list[Reading | None] = [None] * len(rows)

        async def read_share(number: int, engine: Actor) -> None:
            share = slice(number, None, len(engines))
            if part := rows[share]:
                packed = pickle.dumps((part, request))
                answer = await asyncio.to_thread(self._ask, engine, "score", name, packed)
                readings[share] = pickle.loads(answer)

        await asyncio.gather(*(read_share(n, engine) for n, engine in enumerate(engines)))
        return readings

    def learn(self, work: Callable[[str, RoleLearner], T]) -> dict[str, T]:
        """See :meth:`coterie.agents.team.backend.Backend.learn`."""
        by_base = [roles for base in self._bases if (roles := self._learning(base))]

        def work_on(roles: Sequence[str]) -> dict[str, T]:
            return {role: work(role, self._trained[role]) for role in roles}

        if len(by_base) < 2:
            return work_on(list(self._trained))
        with ThreadPoolExecutor(len(by_base)) as threads:
            done = {k: v for part in threads.map(work_on, by_base) for k, v in part.items()}
        return {role: done[role] for role in self._trained}

    def save(self, write: Callable[[Learners], RestorePoint]) -> None:
        """See :meth:`coterie.agents.team.backend.Backend.save`."""
        self._restore = write(self._trained)
        for base in self._bases:
            base.done.clear()

    def restore(self, read: Callable[[Learners], RestorePoint]) -> None:
        """See :meth:`coterie.agents.team.backend.Backend.restore`."""
        self.save(read)

    def places(self) -> list[dict[str, str]]:
        """See :meth:`coterie.agents.team.backend.Backend.places`."""
        return [process.row for actor in self._actors for process in actor.processes]

    def spent(self) -> list[dict[str, str]]:
        """See :meth:`coterie.agents.team.backend.Backend.spent`."""
        return []

    def close(self) -> None:
        """End all processes, and Ray if this run started it."""
        if self._cluster is None:
            return
        engines = [a for a in self._actors if a.worker is EngineWorker and a.handle]
        wait([engine.future(engine.begin("close")) for engine in engines], _LET_GO_S)
        for actor in self._actors:
            actor.stop()
        self._cluster.close()
        self._cluster = None

    @property
    def _actors(self) -> list[Actor]:
        return [actor for base in self._bases for actor in base.actors]

    def _learning(self, base: Base) -> list[str]:
        return [role for role in base.roles if role in self._trained]

    def _roles(self, base: Base, ask: Callable[..., Any]) -> dict[str, RemoteRole]:
        """The roles of ``base`` that learn."""
        if base.learner is None:
            return {}
        learns: Set[str] = base.learner.processes[0].arguments[1]
        about, shared = self._about, self._folder is not None
        return {r: RemoteRole(r, ask, about[r], shared=shared) for r in base.roles if r in learns}

    # Sampling

    def _answer(self, requests: list[RoleRequest]) -> list[Completion]:
        """Sample a batch on all engines in parallel."""
        parts: dict[tuple[str, str], list[int]] = {}
        load: Counter[str] = Counter()
        for index, (role, _, request) in enumerate(requests):
            engine = self._base_of(role).engine_for(request, load)
            load[engine.name] += 1
            parts.setdefault((role, engine.name), []).append(index)
        begun = []
        for (role, name), indices in parts.items():
            engine = next(actor for actor in self._actors if actor.name == name)
            packed = pickle.dumps([requests[index][1:] for index in indices])
            arguments = ("sample", role, packed, self._engine_stamps[role][0])
            begun.append((engine, engine.handle, arguments, indices, engine.begin(*arguments)))
        completions: dict[int, Completion] = {}
        for engine, handle, arguments, indices, call in begun:
            try:
                answers = engine.result(call)
            except Died as error:
                self._replace(engine, handle, error)
                answers = self._ask(engine, *arguments)
            completions |= zip(indices, pickle.loads(answers))
        return [completions[index] for index in range(len(requests))]

    async def _answer_request(self, call: RoleRequest) -> Completion:
        """Sample one completion; the engines do the batching."""
        role, agent, request = call
        engine = self._base_of(role).engine_for(request, self._load)
        packed = pickle.dumps([(agent, request)])
        self._load[engine.name] += 1
        try:
            while True:
                handle = engine.handle
                begun = engine.begin("sample", role, packed, self._engine_stamps[role][0])
                try:
                    (answer,) = pickle.loads(await engine.wait(begun))
                    return answer
                except Died as error:
                    self._replace(engine, handle, error)
        finally:
            self._load[engine.name] -= 1

    def _ask(self, actor: Actor, verb: str, *arguments: Any) -> Any:
        """Call a method of ``actor`` and return its result; replace the actor if it has died."""
        while True:
            handle = actor.handle
            try:
                return actor.ask(verb, *arguments)
            except Died as error:
                self._replace(actor, handle, error)

    def _learn(self, base: Base, verb: str, role: str, *arguments: Any) -> Any:
        """Call the learner, and log calls that change its weights."""
        assert base.learner is not None
        assert self._cluster is not None
        imitates = verb == "learn" and arguments[0] in _IMITATING
        if verb == "update" or imitates:
            arguments = tuple(self._cluster.keep(argument) for argument in arguments)
        result = self._ask(base.learner, verb, role, *arguments)
        if verb in ("update", "read") or imitates:
            base.done.append((verb, role, *arguments))
        return result

    # Weights

    def _newest(self, base: Base) -> dict[str, Any]:
        """Role -> reference to the newest weights, so that they do not pass through this process;
        if NCCL sends them from GPU to GPU, role -> version."""
        learner = base.learner
        if learner is None or not base.separate_engines:
            return {}
        if base.transfer is not None:
            return {role: self._trained[role].version for role in self._learning(base)}
        begun = {role: learner.begin("weights", role) for role in self._learning(base)}
        return {role: learner.reference(call) for role, call in begun.items()}

    def _send(
        self, base: Base, engines: Sequence[Actor], sent: Mapping[str, Any]
    ) -> dict[str, UserError]:
        """Send these weights to ``engines``; return the errors by engine name."""
        if base.transfer is not None:
            return base.transfer.give(engines, sent[base.transfer.role])
        begun = [
            (engine, engine.begin("take", role, weights))
            for role, weights in sent.items()
            for engine in engines
        ]
        failed: dict[str, UserError] = {}
        for engine, taken in begun:
            try:
                engine.result(taken)
            except UserError as error:
                failed[engine.name] = error
        return failed

    def _publish(self, base: Base) -> None:
        """Send the newest weights to all engines of ``base``, or to none. If an engine dies or
        fails, the others return to their earlier weights (or stop sampling if they kept no copy),
        and a new process replaces it.

        Raises:
            UserError: an engine fails twice.
        """
        newest, refused = self._newest(base), set[str]()
        while failed := self._send(base, base.separate_engines, newest):
            if base.transfer is None:
                others = [engine for engine in base.separate_engines if engine.name not in failed]
                self._send(base, others, base.sent)
            else:
                base.sent = newest  # no engine keeps a copy of its earlier weights
            if self._has_died(base):
                newest = self._newest(base)
                # The others failed for want of its weights.
                failed = {name: error for name, error in failed.items() if isinstance(error, Died)}
            for engine in base.separate_engines:
                error = failed.get(engine.name)
                if error is None:
                    continue
                if engine.name in refused:
                    raise error
                if not isinstance(error, Died):
                    refused.add(engine.name)
                self._replace(engine, engine.handle, error)
        base.sent = newest

    # Replacing dead processes

    def _has_died(self, base: Base) -> bool:
        """Whether the learner died, so that engines could not get its weights. If so, replace
        it."""
        assert base.learner is not None
        handle = base.learner.handle
        try:
            base.learner.locate()
        except Died as error:
            self._replace(base.learner, handle, error)
            return True
        return False

    def _replace(self, actor: Actor, handle: Any, error: UserError) -> None:
        """Replace ``actor``, whose ``handle`` no longer answers.

        Raises:
            UserError: ``error``, if the actor has died too often.
        """
        base = self._base_of(actor.roles[0])
        with base.lock:
            if actor.handle is not handle:
                return  # another thread has replaced it
            actor.restarts += 1
            if actor.restarts > self._settings.restarts:
                raise error
            for left in reversed(range(_ATTEMPTS)):
                try:
                    start([actor], self._folder)
                    if actor is base.learner:
                        self._learn_again(base)
                    else:
                        self._catch_up(base, actor)
                    return
                except Died:
                    if not left:
                        raise
                time.sleep(_PAUSE_S)

    def _learn_again(self, base: Base) -> None:
        """Restore a new learner from the newest checkpoint, and repeat the updates and imitation
        steps since then."""
        assert base.learner is not None
        if self._restore is not None:
            self._restore(self._roles(base, base.learner.ask))
        for done in base.done:
            base.learner.ask(*done)
        if self._vllm is not None and base.sampling_learner is not None:
            base.sampling_learner.ask("refresh")

    def _catch_up(self, base: Base, engine: Actor) -> None:
        """Send a new engine the weights that the other engines sample with."""
        failed = self._send(base, [engine], base.sent)
        if failed and not isinstance(failed[engine.name], Died):
            # The weights may be lost with the learner's node. Its version is still the requested
            # one; otherwise the engine refuses the requests.
            self._has_died(base)
            base.sent = self._newest(base)
            failed = self._send(base, [engine], base.sent)
        if failed:
            raise failed[engine.name]

    def _base_of(self, role: str) -> Base:
        return next(base for base in self._bases if role in base.roles)
