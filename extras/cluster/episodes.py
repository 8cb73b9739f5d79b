"""Worker processes play and score episodes; this process samples the answers."""

import asyncio
import pickle
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

from coterie.agents.team.backend import Died
from coterie.agents.team.recipe import EnvRecipe
from coterie.agents.team.settings import AgentSettings
from coterie.datatypes import Episode
from coterie.experts.naming import SERVER, pool_members
from coterie.extras.cluster.actor import Actor
from coterie.extras.cluster.episode_worker import EpisodeWorker, Given, Reply, Turn
from coterie.extras.cluster.processes import Machine, Process
from coterie.extras.cluster.settings import ClusterSettings, has_processes
from coterie.extras.cluster.starting import give_places, start, start_again
from coterie.rollouts.collect import Collector, Task, check_paid, together
from coterie.rollouts.play import TurnAnswers, ask_policies


class EpisodeWorkers:
    """The processes of ``--cluster.episode-workers``."""

    def __init__(
        self, settings: ClusterSettings, agents: Mapping[str, AgentSettings], *, vllm: bool
    ) -> None:
        """``vllm``: whether vLLM engines sample.

        Raises:
            UserError: this machine has no room for the workers.
        """
        self._settings, self._open = settings, False
        players = [member for agent in agents.values() for member in pool_members(agent.model)]
        self.lock_step = not vllm and not any(model.startswith(SERVER) for model in players)
        """Whether sampling starts only when all episodes wait for an answer. A batching sampler
        then gets the same batches as without workers."""
        kind = Actor if settings.used else Process
        self.actors = [
            kind(f"episode worker {i + 1}", list(agents), worker=EpisodeWorker)
            for i in range(settings.episode_workers)
        ]
        if not has_processes(settings, agents):  # otherwise the pool gives them places
            with closing(Machine()) as machine:
                give_places(machine, [(actor, {"CPU": settings.cpus}) for actor in self.actors])

    @property
    def places(self) -> list[dict[str, str]]:
        """See :meth:`coterie.agents.team.backend.Backend.places`."""
        return [actor.row for actor in self.actors]

    def open(self, recipe: EnvRecipe, threads: int) -> None:
        """Start the workers.

        Raises:
            UserError: a node has different code or lacks the environment.
        """
        for actor in self.actors:
            actor.arguments = (recipe,)
            actor.more = {"threads": threads or self._settings.cores}
        self.start()

    def start(self) -> None:
        """Start the workers that do not run yet."""
        self._open = True
        idle = [actor for actor in self.actors if actor.handle is None]
        start(idle, most=self._settings.restarts)

    def close(self) -> None:
        """End the workers and do not replace them."""
        self._open = False
        for actor in self.actors:
            actor.stop()

    def collector(self, *arguments: Any, **more: Any) -> Collector:
        """A :class:`Collector` whose episodes the workers play; it takes the same arguments."""
        return _DealingCollector(self, *arguments, **more)

    async def play_on(
        self,
        actor: Actor,
        limits: tuple[Any, Any],
        news: list["_DealtEpisode"],
        all_of_it: list["_DealtEpisode"],
    ) -> Reply:
        """Have a worker continue the episodes of ``news``. If it has died, a new worker replays
        ``all_of_it`` up to the same point.

        Args:
            actor: the worker.
            limits: sampling and deadlines.
            news: episodes that begin, or have an answer.
            all_of_it: every episode of this worker.
        """
        given: list[Given] = [
            (played.number, None if played.answers else played.task, played.answers[-1:])
            for played in news
        ]
        while given:
            try:
                begun = actor.begin("play", *limits, pickle.dumps(given))
                return pickle.loads(await actor.wait(begun))
            except Died as error:
                if not self._open:
                    raise
                start_again(actor, error, self._settings.restarts)
                given = [(played.number, played.task, played.answers) for played in all_of_it]
        return {}, {}


@dataclass(eq=False)
class _DealtEpisode:
    """An episode that a worker plays."""

    number: int
    task: Task
    group: int
    """The same worker plays all episodes of a group."""
    answers: list[TurnAnswers] = field(default_factory=list)
    """One entry per turn."""

    def dealt(self, actors: Sequence[Actor]) -> Actor:
        """The worker that plays this episode."""
        return actors[self.group % len(actors)]


class _DealingCollector(Collector):
    def __init__(self, workers: EpisodeWorkers, *arguments: Any, **more: Any) -> None:
        super().__init__(*arguments, **more)
        self._workers = workers

    async def collect(
        self, tasks: Sequence[Task], *, done: Callable[[], None] | None = None
    ) -> list[Episode]:
        """See :meth:`Collector.collect`."""
        workers, episodes = self._workers, dict[int, Episode]()
        workers.start()
        actors, groups, todo = workers.actors, dict[Any, int](), list[_DealtEpisode]()
        for number, task in enumerate(tasks):
            group = groups.setdefault((task.problem and task.problem.id, task.seed), len(groups))
            todo.append(_DealtEpisode(number, task, group))

        def end(number: int, episode: Episode) -> None:
            episodes[number] = episode
            if done is not None:
                done()

        parts = [(actors, todo)]
        if not workers.lock_step:
            shares = (
                [played for played in todo if played.dealt(actors) is actor] for actor in actors
            )
            parts = [([actor], share) for actor, share in zip(actors, shares)]
        try:
            await together(self._play(*part, self.concurrency // len(parts), end) for part in parts)
        except BaseException:
            workers.close()  # drop the episodes in progress
            raise
        return check_paid([episodes[number] for number in range(len(tasks))])

    async def _play(
        self,
        actors: Sequence[Actor],
        todo: Sequence[_DealtEpisode],
        concurrency: int,
        end: Callable[[int, Episode], None],
    ) -> None:
        """Have ``actors`` play ``todo``. In lock step, sampling starts when all episodes wait, and
        play continues when all answers are there."""
        ahead, limits = iter(todo), (self.sampling, self.deadlines)
        until = asyncio.ALL_COMPLETED if self._workers.lock_step else asyncio.FIRST_COMPLETED
        playing: dict[int, _DealtEpisode] = {}
        turns: dict[int, Turn] = {}
        asked: dict[asyncio.Task[TurnAnswers], _DealtEpisode] = {}
        answered: list[_DealtEpisode] = []
        try:
            while True:
                begun = list(islice(ahead, max(1, concurrency) - len(playing)))
                playing |= {played.number: played for played in begun}
                if news := [*begun, *answered]:
                    replies = await together(
                        self._workers.play_on(
                            actor,
                            limits,
                            [played for played in news if played.dealt(actors) is actor],
                            [
                                played
                                for played in playing.values()
                                if played.dealt(actors) is actor
                            ],
                        )
                        for actor in actors
                    )
                    # A restarted episode repeats requests that are already in flight.
                    under_way = {played.number for played in asked.values()}
                    for ask, ended in replies:
                        turns |= {n: turn for n, turn in ask.items() if n not in under_way}
                        for number, episode in ended.items():
                            del playing[number]
                            end(number, episode)
                    answered = []
                    continue  # new episodes may start in place of those that ended
                for number, turn in sorted(turns.items()):
                    call = asyncio.create_task(ask_policies(self.policies, *turn))
                    asked[call] = playing[number]
                turns = {}
                if not asked:
                    return
                for call in (await asyncio.wait(asked, return_when=until))[0]:
                    played = asked.pop(call)
                    played.answers.append(call.result())
                    answered.append(played)
        finally:
            for call in asked:
                call.cancel()
