"""The processes of one run on a cluster: who lives together, and who answers for whom.

A base has one process that learns for the roles on it, or several ranks among which its weights lie
in shards, and any number that answer for them; with none of these the one that learns answers too.
Beside several ranks, and where nobody learns, there is one at least. Weights go from the learner to
all of them before anybody is asked, and never meanwhile, so that no request sees two versions.
"""

import pickle
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass
from functools import cached_property

from coterie.cluster.actor import Actor, Cluster, Died, died
from coterie.cluster.group import Group
from coterie.cluster.processes import Machine, Process
from coterie.cluster.roles import Asked, RemotePolicy, RemoteRole, live_together, share_batch
from coterie.cluster.routing import choose
from coterie.cluster.settings import ClusterSettings, has_processes
from coterie.cluster.worker import About, Rank, Stamp, code_mark
from coterie.datatypes import Completion, UserError
from coterie.models.loading import base_key
from coterie.models.sampler import Request
from coterie.teams.models import model_spec
from coterie.teams.settings import AgentSettings
from coterie.teams.team import Learning, Models

_ATTEMPTS, _PAUSE_S = 8, 5.0
"""To start an engine again: Ray takes half a minute to see that a node has gone."""


@dataclass(frozen=True)
class Base:
    """One model, the roles on it and their processes."""

    roles: Sequence[str]
    learner: Actor | None
    engines: Sequence[Actor]
    """Who answers: at least one process, the learner where there is no other."""

    @cached_property
    def apart(self) -> list[Actor]:
        """Engines that weights are sent to."""
        return [engine for engine in self.engines if not engine.learns]

    def engine_for(self, request: Request, load: Mapping[str, int]) -> Actor:
        """Who is asked, beside what each has to answer already."""
        name = choose(request.tokens, [one.name for one in self.engines], load)
        return next(one for one in self.engines if one.name == name)


class Pool:
    """Implements :class:`coterie.teams.team.Engines`, and as a function
    :data:`coterie.teams.team.Holder`."""

    def __init__(self, settings: ClusterSettings, *, threads: int = 0) -> None:
        """``threads``: of each process; 0: as many as it has cores."""
        self._settings = settings
        self._threads = threads or max(1, int(settings.cpus))
        self._cluster: Cluster | Machine | None = None
        self._actors: list[Actor] = []
        self._bases: list[Base] = []
        self._trained: dict[str, RemoteRole] = {}
        self._handed: dict[str, Stamp] = {}
        """What engines apart from their learner answer with."""

    def __call__(
        self,
        models: Mapping[str, AgentSettings],
        learns: Set[str],
        learning: Learning | None,
        seed: int,
    ) -> Models:
        """Start every process and load the models there.

        Raises:
            UserError: the cluster cannot hold them, runs other code, or a model cannot be loaded.
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
        learning: Learning | None,
        seed: int,
    ) -> Models:
        self._cluster = cluster = Cluster(self._settings) if self._settings.used else Machine()
        kind = Actor if self._settings.used else Process
        self._actors = _planned(
            models, learns, learning, kind, cluster.meeting, seed=seed, threads=self._threads
        )
        gpus = cluster.has_gpus()
        needs = {
            actor.name: self._need(models[actor.roles[0]].device, gpus) for actor in self._actors
        }
        cluster.reserve(needs)
        for number, actor in enumerate(self._actors):
            actor.options = cluster.place(number, needs[actor.name])
            actor.start()
        mark = code_mark()
        for actor, begun in [(one, one.begin("code")) for one in self._actors]:
            if actor.result(begun) != mark:
                raise UserError(
                    f"{actor.name} runs other code, or another torch, than this process: install "
                    "the same version on every node"
                )
        about: dict[str, About] = {}
        for actor, begun in [(one, one.begin("load")) for one in self._actors]:
            # The first of a base is the one that learns, where one does.
            about = actor.result(begun) | about
            actor.locate()
        self._bases = _bases(self._actors)
        learners = {role: base.learner for base in self._bases for role in base.roles}
        self._handed = {role: one.stamp for role, one in about.items()}
        self._trained = {
            role: RemoteRole(role, learner, about[role])
            for role in models
            if role in learns and (learner := learners[role])
        }
        ask = share_batch(self._answer)
        return Models(
            policies={role: RemotePolicy(role, about[role], ask) for role in models},
            codecs={role: about[role].codec for role in models},
            trained=self._trained,
            fleet=self,
        )

    async def start(self) -> None:
        """Nothing to do: :meth:`__call__` has started everything."""

    async def refresh(self) -> None:
        """Have every engine answer with the newest weights; no request may be under way."""
        changed = [r for r, one in self._trained.items() if one.stamp != self._handed[r]]
        for base in self._bases:
            if mine := [role for role in changed if role in base.roles]:
                for engine in self._hand_over(base, mine, base.apart):
                    self._restart(engine)
        self._handed |= {role: self._trained[role].stamp for role in changed}

    async def rest(self) -> None:
        """Nothing to do: who learns and who answers share no device."""

    def places(self) -> list[dict[str, str]]:
        """See :class:`coterie.teams.team.Engines`."""
        return [actor.row for actor in self._actors]

    def close(self) -> None:
        """End all processes, and Ray where it was started."""
        for actor in self._actors:
            if self._cluster is not None:
                actor.stop()
        if self._cluster is not None:
            self._cluster.close()
            self._cluster = None

    def _need(self, device: str, gpus: bool) -> dict[str, float]:
        gpu = device == "cuda" or (device == "auto" and gpus)
        return {"CPU": self._settings.cpus} | ({"GPU": 1.0} if gpu else {})

    def _hand_over(self, base: Base, roles: Sequence[str], engines: Sequence[Actor]) -> list[Actor]:
        """Send the newest weights of ``roles``, from process to process; who has died."""
        begun = []
        for role in roles:
            if base.learner is not None and engines:
                # What is given is a reference: weights do not pass through this process.
                weights = base.learner.begin("weights", role)
                version = self._trained[role].version
                begun += [(one, one.begin("take", role, weights, version)) for one in engines]
        dead = {}
        for engine, taken in begun:
            try:
                engine.result(taken)
            except Died:
                dead[engine.name] = engine
            except UserError:
                if base.learner is not None:
                    base.learner.locate()  # who has died is to blame for what others could not do
                raise
        return list(dead.values())

    def _answer(self, asked: list[Asked]) -> list[Completion]:
        """All engines at the same time; one that has died is started again and asked again."""
        parts: dict[tuple[str, str], list[int]] = {}
        load: Counter[str] = Counter()
        for place, (role, _, request) in enumerate(asked):
            engine = self._base_of(role).engine_for(request, load)
            load[engine.name] += 1
            parts.setdefault((role, engine.name), []).append(place)
        begun = []
        for (role, name), places in parts.items():
            engine = next(one for one in self._actors if one.name == name)
            wanted = pickle.dumps([asked[place][1:] for place in places])
            version = self._trained[role].version if role in self._trained else None
            arguments = ("sample", role, wanted, version)
            begun.append((engine, arguments, places, engine.begin(*arguments)))
        found: dict[int, Completion] = {}
        for engine, arguments, places, ref in begun:
            try:
                answers = engine.result(ref)
            except Died:
                self._restart(engine)
                answers = engine.ask(*arguments)
            found |= zip(places, pickle.loads(answers))
        return [found[place] for place in range(len(asked))]

    def _restart(self, engine: Actor) -> None:
        """Another process in the place of an engine that has died, with the newest weights.

        Raises:
            Died: it was the one that learns.
        """
        base = self._base_of(engine.roles[0])
        if engine.learns:
            raise Died(died(engine.name))
        mine = [role for role in base.roles if role in self._trained]
        for left in reversed(range(_ATTEMPTS)):
            if base.learner is not None:
                base.learner.locate()  # or its node has gone too
            try:
                engine.start()
                engine.ask("load")
                engine.locate()
                if not self._hand_over(base, mine, [engine]):
                    return
            except Died:
                pass
            if left:
                time.sleep(_PAUSE_S)
        raise Died(died(engine.name))

    def _base_of(self, role: str) -> Base:
        return next(base for base in self._bases if role in base.roles)


def pool_for(
    settings: ClusterSettings, agents: Mapping[str, AgentSettings], threads: int
) -> Pool | None:
    """What holds the models of a run; None: the process that asks does."""
    return Pool(settings, threads=threads) if has_processes(settings, agents) else None


def _planned(
    models: Mapping[str, AgentSettings],
    learns: Set[str],
    learning: Learning | None,
    kind: type[Actor],
    meeting: Callable[[], str],
    *,
    seed: int,
    threads: int,
) -> list[Actor]:
    """The processes of every base, the one that learns first; none of them runs yet."""
    specs = {role: model_spec(one) for role, one in models.items()}
    keys = {role: base_key(one) if one.lora else None for role, one in specs.items()}
    actors = []
    for roles in live_together(keys):
        mine = {role: models[role] for role in roles}
        trained = learns & set(roles)
        several = max(one.engine_replicas for one in mine.values())
        ranks = max((models[role].learner_devices for role in trained), default=0)
        engines = several or (0 if ranks == 1 else 1)
        where = meeting() if ranks > 1 else ""
        learners = [f"learner {i + 1}" for i in range(ranks)] if ranks > 1 else ["learner"] * ranks
        for i, part in enumerate(learners + [f"engine {i + 1}" for i in range(engines)]):
            learns_here = i < ranks
            rank = Rank(i, ranks, where) if learns_here else Rank()
            actors.append(
                kind(
                    f"{part} of {' and '.join(roles)}",
                    roles,
                    learns_here,
                    {},
                    (mine, trained, learning if learns_here else None),
                    {"seed": seed, "threads": threads, "rank": rank},
                )
            )
    return actors


def _bases(actors: Sequence[Actor]) -> list[Base]:
    groups: dict[tuple[str, ...], list[Actor]] = {}
    for actor in actors:
        groups.setdefault(tuple(actor.roles), []).append(actor)
    bases = []
    for roles, group in groups.items():
        learners = [actor for actor in group if actor.learns]
        engines = [actor for actor in group if not actor.learns]
        learner = learners[0] if learners else None
        if learner is not None and len(learners) > 1:
            learner = Group(learner.name, roles, True, {}, (), {}, ranks=learners)
        bases.append(Base(roles, learner, engines or learners))
    return bases
