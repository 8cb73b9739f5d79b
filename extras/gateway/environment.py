"""An episode that a program plays: whoever is called is active, and sees what was sent."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from gymnasium import spaces

from coterie.datatypes import Scorer, TokenCodec, UserError
from coterie.envs.bytes_codec import BytesCodec
from coterie.envs.contract import role_of
from coterie.envs.problem_env import ProblemEnv
from coterie.envs.spaces import Seen, TokenSpace
from coterie.extras.gateway.episode import GatewayEpisode
from coterie.extras.gateway.gateway import gateway
from coterie.extras.gateway.outcome import Played
from coterie.extras.gateway.programs import Endpoints, Program
from coterie.extras.gateway.session import Ended, Session, Situation
from coterie.extras.gateway.settings import GatewaySettings
from coterie.problems.source import ProblemSource


class GatewayEnv(ProblemEnv):
    """Each role is one agent, ``ROLE_0``. It speaks token ids by itself: a program sends messages,
    and :class:`GatewayEpisode` makes exact contexts of them."""

    metadata = {  # noqa: RUF012 (PettingZoo's convention)
        **ProblemEnv.metadata,
        "name": "gateway_v0",
        "group_keys": ("problem+role", "problem"),
        "default_group": "problem+role",
    }
    speaks_tokens = True
    branches = True
    append_only = False

    def __init__(
        self,
        name: str,
        program: Program,
        settings: GatewaySettings,
        *,
        turns: Callable[[Played], bool] | None = None,
        roles: Sequence[str],
        scorer: Scorer | None = None,
        source: ProblemSource | None = None,
        tokenizers: Mapping[str, TokenCodec] | None = None,
        render_mode: str | None = None,
    ) -> None:
        """
        Args:
            name: as the user writes it.
            program: plays.
            settings: what it may do.
            turns: says which turns are learned; None: the settings do.
            roles: names; each is one agent.
            scorer: checks answers; an ``AnswerScorer`` of its own without one.
            source: problems for episodes whose options name none; generated chains without one.
            tokenizers: role -> codec; UTF-8 bytes without one.
            render_mode: ``human`` prints the transcript of each episode, ``ansi`` returns it.
        """
        self.title = name
        self.settings, self._program, self._turns = settings, program, turns
        self._codecs = {role: (tokenizers or {}).get(role, BytesCodec()) for role in roles}
        super().__init__(
            [f"{role}_0" for role in roles],
            roles,
            scorer=scorer,
            source=source,
            tokenizers=self._codecs,
            render_mode=render_mode,
        )
        self.metadata = {**self.metadata, "replicas": settings.replicas}
        widths = {agent: self._codecs[role_of(agent)].vocab_size for agent in self.possible_agents}
        self._action_spaces = {agent: TokenSpace(width) for agent, width in widths.items()}
        self._observation_spaces = {
            agent: spaces.Dict({"tokens": TokenSpace(width), "active": spaces.Discrete(2)})
            for agent, width in widths.items()
        }
        self._session: Session | None = None
        self._episode: GatewayEpisode | None = None

    def reset(self, seed: int | None = None, options: dict[str, Any] | None = None) -> Seen:
        return self._see(self._wait(self._begin(seed, options)))

    async def areset(self, seed: int | None = None, options: dict[str, Any] | None = None) -> Seen:
        """:meth:`reset`, while other episodes go on."""
        return self._see(await self._gather(self._begin(seed, options)))

    def step(self, actions: Mapping[str, Any]) -> Any:
        if self._session is None or not self.agents:
            return {}, {}, {}, {}, {}
        return self._stepped(self._wait(self._answer(self._session, actions)))

    async def astep(self, actions: Mapping[str, Any]) -> Any:
        """:meth:`step`, while other episodes go on."""
        if self._session is None or not self.agents:
            return {}, {}, {}, {}, {}
        return self._stepped(await self._gather(self._answer(self._session, actions)))

    def transcript(self) -> str | None:
        return None if self._episode is None else self._episode.transcript()

    def close(self) -> None:
        self._give_up()
        super().close()

    def _begin(self, seed: int | None, options: dict[str, Any] | None) -> Callable[[], Session]:
        """Starts the program of a new episode."""
        self._give_up()
        options = options or {}
        problem = self.problem_of(self.next_seed(seed), options)
        self.agents = list(self.possible_agents)
        training = options.get("mode", "train") == "train"
        self._episode = GatewayEpisode(problem, self._codecs, self.settings, training=training)
        server = gateway()

        def begin() -> Session:
            self._session = session = Session(self.roles, self.settings, self._codecs)
            keys = server.open(session)
            stop = self._program(Endpoints(server.url, keys), problem, session.finish)

            def ended() -> None:
                stop()
                server.shut(session, keys.values())

            session.stop = ended
            return session

        return begin

    def _answer(self, session: Session, actions: Mapping[str, Any]) -> Callable[[], Session]:
        """Hands on what those who were asked answered."""
        assert self._episode is not None
        answers = self._episode.answer({role_of(agent): a for agent, a in actions.items()})

        def hand_on() -> Session:
            session.answer(answers)
            return session

        return hand_on

    def _wait(self, act: Callable[[], Session]) -> Situation:
        """Do this in the gateway's loop, and wait until the program asks again or ends."""

        async def turn() -> Situation:
            session = act()
            await session.asked()
            return session.situation()

        return gateway().submit(turn()).result()

    async def _gather(self, act: Callable[[], Session]) -> Situation:
        """The same, until the programs of all other episodes ask again or end, too."""
        player, server = asyncio.get_running_loop(), gateway()
        future: asyncio.Future[Situation] = player.create_future()

        async def turn() -> None:
            try:
                gate, session = server.gate(player, self.settings.gather_s), act()
                if session.ended is None:  # else nobody would take it out again
                    gate.enter(session)
                await session.asked()
                gate.wait(session, lambda: deliver(session.situation()))
            except Exception as error:
                player.call_soon_threadsafe(future.set_exception, error)

        def deliver(situation: Situation) -> Callable[[], None]:
            return lambda: None if future.done() else future.set_result(situation)

        server.start(turn())
        return await future

    def _stepped(self, situation: Situation) -> Any:
        observations, infos = self._see(situation)
        if (ended := situation.ended) is None:
            return self.step_result(observations, infos, done=False)
        episode, session = self._episode, self._session
        assert episode is not None
        assert session is not None
        problem = episode.problem
        last = episode.infos(
            ended,
            session,
            title=self.title,
            correct=lambda text: bool(self.scorer.check(text, problem).correct),
            chosen=self._turns,
        )
        self._session = None
        infos = {agent: last[role_of(agent)] for agent in self.possible_agents}
        return self.step_result(observations, infos, done=True)

    def _see(self, situation: Situation) -> Seen:
        """Show whoever is called its context.

        Raises:
            UserError: the program failed and has never asked anything, in no episode: most likely
                all would end like this.
        """
        calls, ended, proven = situation.calls, situation.ended, gateway().proven
        if calls:
            proven.add(self.title)
        elif ended is not None and ended.failure and self.title not in proven:
            raise UserError(
                f"{self.title}: {ended.failure}, before it asked anything; mend the program."
            )
        assert self._episode is not None
        shown = self._episode.show(calls)
        observations: dict[str, dict[str, Any]] = {}
        infos: dict[str, dict[str, Any]] = {}
        for agent in self.possible_agents:
            asked = shown.get(role_of(agent))
            ids = np.zeros(0, dtype=np.int64) if asked is None else asked.opened.ids.copy()
            observations[agent] = {"tokens": ids, "active": int(asked is not None)}
            infos[agent] = {} if asked is None else dict(asked.info)
        return observations, infos

    def _give_up(self) -> None:
        """End an episode that is still on."""
        session, self._session = self._session, None
        if session is not None:

            async def end() -> None:
                session.finish(Ended(failure="it was given up"))

            gateway().submit(end()).result(timeout=10)
