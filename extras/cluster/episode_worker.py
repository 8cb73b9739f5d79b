"""An episode worker: it holds environments and a scorer; other processes sample the answers."""

import asyncio
import pickle
from collections.abc import Iterator, Sequence
from functools import partial

from coterie.agents.team.graders import build_scorer
from coterie.agents.team.recipe import EnvRecipe
from coterie.datatypes import Episode, Sampling
from coterie.extras.cluster.worker import About, BaseWorker
from coterie.rollouts import Collector, Deadlines, Task
from coterie.rollouts.play import AgentRequest, TurnAnswers

Given = tuple[int, Task | None, list[TurnAnswers]]
"""(episode number, task, answers of its first turns); a task of None means that the episode is
in progress and this answers its current turn."""
Turn = tuple[Sequence[AgentRequest], float | None]
"""One turn of an episode: (requests to agents, time limit in seconds)."""
Reply = tuple[dict[int, Turn], dict[int, Episode]]
"""(episode number -> its open turn, episode number -> finished episode)."""


class EpisodeWorker(BaseWorker):
    """Plays and scores episodes. An episode depends only on its task and on the answers, so another
    worker can replay it from its start."""

    def __init__(self, name: str, recipe: EnvRecipe, *, threads: int) -> None:
        super().__init__(name, threads)
        self._recipe = recipe
        self._playing: dict[int, asyncio.Task[Episode]] = {}
        self._waiting: dict[int, asyncio.Future[TurnAnswers]] = {}
        self._asked: dict[int, Turn] = {}

    def load(self) -> dict[str, About]:
        """Build the scorer, and check that the environment can be built here."""
        scorer, self._graders = build_scorer(self._recipe.scoring)
        make_env = partial(self._recipe.make, scorer)
        make_env().close()
        self._collector = Collector(make_env, {}, sampling=Sampling(0), scorer=scorer)
        return {}

    async def play(self, sampling: Sampling, deadlines: Deadlines, given: bytes) -> bytes:
        """Continue with ``given`` (a pickled list of :data:`Given`) until every episode has ended
        or waits for an answer. Returns a pickled :data:`Reply`."""
        self._collector.sampling, self._collector.deadlines = sampling, deadlines
        news: list[Given] = pickle.loads(given)
        for number, task, answers in news:
            if task is None:
                self._waiting.pop(number).set_result(answers[0])
            else:
                played = self._collector.play(task, partial(self._ask, number, iter(answers)))
                self._playing[number] = asyncio.create_task(played)
        while not all(
            number in self._waiting or episode.done() for number, episode in self._playing.items()
        ):
            await asyncio.sleep(0)
        ended = [number for number, episode in self._playing.items() if episode.done()]
        asked, self._asked = self._asked, {}
        return pickle.dumps((asked, {n: self._playing.pop(n).result() for n in ended}))

    async def _ask(
        self,
        number: int,
        known: Iterator[TurnAnswers],
        asked: Sequence[AgentRequest],
        limit_s: float | None,
    ) -> TurnAnswers:
        for answers in known:
            return answers
        self._asked[number] = asked, limit_s
        self._waiting[number] = asyncio.get_running_loop().create_future()
        return await self._waiting[number]
