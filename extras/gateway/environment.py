"""The environment of ``harness:`` and ``command:``: a program plays, and roles answer its calls."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from gymnasium import spaces

from coterie.datatypes import Scorer, TokenCodec, UserError, role_of
from coterie.envs.bytes_codec import BytesCodec
from coterie.envs.problem_env import ProblemEnv
from coterie.envs.spaces import Seen, TokenSpace
from coterie.extras.gateway.episode import GatewayEpisode
from coterie.extras.gateway.gateway import gateway
from coterie.extras.gateway.outcome import Played
from coterie.extras.gateway.programs import Endpoints, Program
from coterie.extras.gateway.session import ProgramResult, Session, SessionState
from coterie.extras.gateway.settings import GatewaySettings
from coterie.problems.source import ProblemSource


class GatewayEnv(ProblemEnv):
    """Each role is one agent, ``ROLE_0``, active whenever the program calls it.

    Observations and actions are token ids: :class:`GatewayEpisode` makes exact contexts of the
    program's messages.
    """

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
            name: the environment's name, as the user writes it.
            program: the program that plays.
            settings: what the program may do.
            turns: whether a turn is trained; None: as the settings say.
            roles: role names; each is one agent.
            scorer: checks answers; None: an ``AnswerScorer``.
            source: problems for episodes whose options name none; None: generated chains.
            tokenizers: role -> codec; UTF-8 bytes for roles without one.
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
        # Each step answers a call of at least one role.
        self.most_turns = settings.max_calls * len(roles)
        self._session: Session | None = None
        self._episode: GatewayEpisode | None = None

    def reset(self, seed: int | None = None, options: dict[str, Any] | None = None) -> Seen:
        return self._observe(self._wait(self._begin(seed, options)))

    async def areset(self, seed: int | None = None, options: dict[str, Any] | None = None) -> Seen:
        """Like :meth:`reset`, without blocking other episodes."""
        return self._observe(await self._gather(self._begin(seed, options)))

    def step(self, actions: Mapping[str, Any]) -> Any:
        if self._session is None or not self.agents:
            return {}, {}, {}, {}, {}
        return self._finish_step(self._wait(self._answer(self._session, actions)))

    async def astep(self, actions: Mapping[str, Any]) -> Any:
        """Like :meth:`step`, without blocking other episodes."""
        if self._session is None or not self.agents:
            return {}, {}, {}, {}, {}
        return self._finish_step(await self._gather(self._answer(self._session, actions)))

    def transcript(self) -> str | None:
        return None if self._episode is None else self._episode.transcript()

    def close(self) -> None:
        self._abandon()
        super().close()

    # The functions that _begin and _answer return run in the gateway's loop.

    def _begin(self, seed: int | None, options: dict[str, Any] | None) -> Callable[[], Session]:
        """Return a function that starts the program of a new episode."""
        self._abandon()
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

            def end() -> None:
                stop()
                server.shut(session, keys.values())

            session.stop = end
            return session

        return begin

    def _answer(self, session: Session, actions: Mapping[str, Any]) -> Callable[[], Session]:
        """Return a function that sends the answers of the roles to the program."""
        assert self._episode is not None
        answers = self._episode.answer({role_of(agent): a for agent, a in actions.items()})

        def send() -> Session:
            session.answer(answers)
            return session

        return send

    def _wait(self, act: Callable[[], Session]) -> SessionState:
        """Run ``act``, and block until the program makes its next call or ends."""

        async def turn() -> SessionState:
            session = act()
            await session.next_calls()
            return session.state()

        return gateway().submit(turn()).result()

    async def _gather(self, act: Callable[[], Session]) -> SessionState:
        """Run ``act``, and wait until the programs of all episodes make their next call or end."""
        player, server = asyncio.get_running_loop(), gateway()
        future: asyncio.Future[SessionState] = player.create_future()

        async def turn() -> None:
            try:
                gate, session = server.gate(player, self.settings.gather_s), act()
                if session.result is None:  # an ended session has left the gate already
                    gate.enter(session)
                await session.next_calls()
                gate.wait(session, lambda: deliver(session.state()))
            except Exception as error:
                player.call_soon_threadsafe(future.set_exception, error)

        def deliver(state: SessionState) -> Callable[[], None]:
            return lambda: None if future.done() else future.set_result(state)

        server.start(turn())
        return await future

    def _finish_step(self, state: SessionState) -> Any:
        observations, infos = self._observe(state)
        if (result := state.result) is None:
            return self.step_result(observations, infos, done=False)
        episode, session = self._episode, self._session
        assert episode is not None
        assert session is not None
        problem = episode.problem
        last = episode.infos(
            result,
            session,
            title=self.title,
            correct=lambda text: bool(self.scorer.check(text, problem).correct),
            selects=self._turns,
        )
        self._session = None
        infos = {agent: last[role_of(agent)] for agent in self.possible_agents}
        return self.step_result(observations, infos, done=True)

    def _observe(self, state: SessionState) -> Seen:
        calls, result, proven = state.calls, state.result, gateway().proven
        if calls:
            proven.add(self.title)
        elif result is not None and result.failure and self.title not in proven:
            # It has never made a call, in any episode: all episodes would probably fail like this.
            raise UserError(
                f"{self.title}: {result.failure}, before it asked anything; mend the program."
            )
        assert self._episode is not None
        by_role = self._episode.observe(calls)
        observations: dict[str, dict[str, Any]] = {}
        infos: dict[str, dict[str, Any]] = {}
        for agent in self.possible_agents:
            observed = by_role.get(role_of(agent))
            ids = np.zeros(0, dtype=np.int64) if observed is None else observed.context.ids.copy()
            observations[agent] = {"tokens": ids, "active": int(observed is not None)}
            infos[agent] = {} if observed is None else dict(observed.info)
        return observations, infos

    def _abandon(self) -> None:
        """End an episode that still runs."""
        session, self._session = self._session, None
        if session is not None:

            async def end() -> None:
                session.finish(ProgramResult(failure="it was given up"))

            gateway().submit(end()).result(timeout=10)
