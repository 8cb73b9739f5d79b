"""Environments that are written as one generator, from the first question to the rewards."""

from abc import abstractmethod
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import is_dataclass, replace
from types import MappingProxyType
from typing import Any, NoReturn

import numpy as np

from coterie.datatypes import (
    Problem,
    Scorer,
    ScoreRequests,
    UserError,
    derive_seed,
    role_of,
    validate,
)
from coterie.envs.bytes_codec import TextMeter
from coterie.envs.contract import CONTEXTS, python_info, why_not_grouped
from coterie.envs.problem_env import ProblemEnv, copy_plain, reward_of, text_of
from coterie.envs.spaces import Seen
from coterie.envs.tool_calls import FoundCall, as_response, find_calls
from coterie.envs.tools import ToolCall, Tools
from coterie.envs.turns import (
    Answers,
    Ask,
    Conversation,
    Outcome,
    Turn,
    as_asks,
    why_no_asks,
    why_no_outcome,
)
from coterie.problems.source import ProblemSource


class ConversationEnv(ProblemEnv):
    """Base of text environments that are written as one generator.

    A subclass sets the attributes below, ``title``, and ``metadata`` (that of this class with a
    name and, if needed, other ``replicas``), and writes :meth:`conversation`. With several agents
    for a role it also overrides :meth:`places`. ``examples/debate`` is an example.
    """

    metadata: dict[str, Any] = {  # noqa: RUF012 (PettingZoo's convention)
        **ProblemEnv.metadata,
        "group_keys": ("problem+role", "problem"),
        "default_group": "problem+role",
        # Episodes of one problem that are compared with each other.
        "replicas": 8,
    }
    settings_class: type | None = None
    """Frozen dataclass whose fields are flags ``--env.FIELD`` (see :class:`EnvSpec`); None: there
    are no settings. A field ``max_new_tokens`` limits answers. With a field ``train_turns`` an
    agent learns only its ``last`` answer, or ``all``."""
    default_roles: tuple[str, ...] = ()
    """The default roles, whose number is the minimum."""
    more_roles: bool = False
    """Whether there may be more roles than ``default_roles``."""
    modes: tuple[str, ...] = ()
    """Allowed values of ``options["mode"]``, which defaults to ``train``; empty: any value."""

    def __init__(
        self,
        settings: Any = None,
        *,
        roles: Sequence[str] | None = None,
        scorer: Scorer | None = None,
        source: ProblemSource | None = None,
        tokenizers: Mapping[str, TextMeter] | None = None,
        render_mode: str | None = None,
    ) -> None:
        """Create an environment for any number of episodes.

        Args:
            settings: an instance of ``settings_class``; None: its defaults.
            roles: names of the roles; None: ``default_roles``.
            scorer: checks answers and embeds texts; None: a new ``AnswerScorer``.
            source: problems for episodes whose options name none; None: generated chains.
            tokenizers: role -> meter of its tokens; roles without one count bytes.
            render_mode: ``human`` prints the transcript of each episode, ``ansi`` returns it.

        Raises:
            UserError: settings that do not fit, unsupported or repeated roles, or an unknown render
                mode.
        """
        if settings is None and self.settings_class is not None:
            settings = self.settings_class()
        self.settings: Any = settings
        self.title = self.title or type(self).__name__
        if not isinstance(settings, self.settings_class or object):
            raise UserError(
                f"{self.title}: its settings are {settings!r:.80}; give an instance of "
                f"{getattr(self.settings_class, '__name__', '')}."
            )
        if is_dataclass(settings):
            validate(settings)
        if lacking := {*ProblemEnv.metadata, "group_keys"} - {*(self.metadata or ())}:
            raise UserError(
                f"{self.title}: metadata lacks {min(lacking)}; begin with those of the base class: "
                'metadata = {**ConversationEnv.metadata, "name": "my_env_v0"}.'
            )
        if not self.default_roles or isinstance(self.default_roles, str):
            raise UserError(f'{self.title}: say who takes part: default_roles = ("alice", "bob").')
        self.roles = self.default_roles if roles is None else tuple(roles)
        self.check_roles()
        self._agents_of = {
            role: [f"{role}_{i}" for i in range(count)] for role, count in self.places().items()
        }
        super().__init__(
            [agent for agents in self._agents_of.values() for agent in agents],
            self.roles,
            scorer=scorer,
            source=source,
            tokenizers=tokenizers,
            render_mode=render_mode,
        )
        self._tools = self._tools_by_agent()
        if (replicas := self.replicas()) is not None:
            self.metadata = {**self.metadata, "replicas": replicas}
        self.episode_seed = 0
        """The seed of the episode, for random draws that depend on nothing else."""
        self._conversation: Conversation | None = None
        self._problem: Problem | None = None
        self._scores: Callable[[Answers], ScoreRequests] | None = None
        self._asks: list[dict[str, Ask]] = []
        self._answers: list[dict[str, str]] = []
        self._failed: dict[str, bool] = {}
        self._calls: dict[str, list[ToolCall]] = {}
        self._last_answers: dict[str, str] = {}
        """Answers to the questions of this turn, of agents that call no more tools."""
        self._calls_left: dict[str, int] = {}
        self.last_infos: dict[str, dict[str, Any]] = {}
        """The infos of the last step, for transcripts; only with a render mode."""

    @abstractmethod
    def conversation(
        self, problem: Problem, options: Mapping[str, Any], random: np.random.Generator
    ) -> Conversation:
        """Play one episode, from the first question to the rewards.

        Args:
            problem: the problem; ``self.scorer.check(text, problem).correct`` grades a text.
            options: the options of the reset: ``mode`` (``train``, ``eval``), ``step``, ``epoch``,
                ``replica``. Raise ``UserError`` before the first ``yield`` to refuse them.
            random: the only source of randomness, so that a seed reproduces the episode; besides
                :func:`coterie.datatypes.derive_seed` of ``self.episode_seed``.
        """

    def places(self) -> Mapping[str, int]:
        """Return role -> number of its agents."""
        return dict.fromkeys(self.roles, 1)

    def tools(self) -> Mapping[str, Tools]:
        """Return role -> the tools that its agents may call; none by default.

        An agent that calls tools reads their results and answers again, before the conversation
        goes on. The conversation receives its last answer; :meth:`calls_of` has the calls.
        """
        return {}

    def replicas(self) -> int | None:
        """Return the number of compared episodes of a problem, if the settings determine it; None:
        the number in ``metadata``."""
        return None

    def check_roles(self) -> None:
        """Refuse unsupported ``self.roles``.

        Raises:
            UserError: too few or too many.
        """
        needed = len(self.default_roles)
        if len(self.roles) < needed or (len(self.roles) > needed and not self.more_roles):
            raise UserError(
                f"{self.title}: {len(self.roles)} roles; name {'at least ' * self.more_roles}"
                f"{needed}, such as {' '.join(self.default_roles)}."
            )

    def agents_of(self, role: str) -> list[str]:
        """Return the agents that play ``role``, in order."""
        return self._agents_of[role]

    def tool_schemas(self) -> dict[str, list[dict[str, Any]]]:
        """Return role -> its tools in the format of chat templates."""
        return {role_of(agent): tools.schemas for agent, tools in self._tools.items()}

    def calls_of(self, agent: str) -> tuple[ToolCall, ...]:
        """Return the tool calls of ``agent`` in this episode, in order."""
        return tuple(self._calls.get(agent, ()))

    def reset(self, seed: int | None = None, options: dict[str, Any] | None = None) -> Seen:
        """Begin an episode.

        Args:
            seed: determines the problem, if the options name none, and all randomness.
            options: ``problem``, ``mode``, and further options of the conversation.

        Raises:
            UserError: an invalid option.
        """
        options = options or {}
        seed = self.episode_seed = self.next_seed(seed)
        problem = self.problem_of(seed, options)
        mode = options.get("mode", "train")
        if self.modes and mode not in self.modes:
            known = ", ".join(self.modes)
            raise UserError(f"{self.title}: mode {mode!r} is unknown; choose one of {known}.")
        random = np.random.default_rng(derive_seed(self.title, "random", seed))
        conversation = self.conversation(problem, options, random)
        if not isinstance(conversation, Generator):
            self._refuse("is no generator: ask with `answers = yield {agent: message}`")
        # Forget the last episode before the conversation can refuse this one.
        self._conversation, self._problem, self.agents = None, None, []
        self._asks, self._answers, self._failed, self.last_infos = [], [], {}, {}
        self._calls, self._last_answers = {}, {}
        first = self._next_turn(conversation, None)
        if isinstance(first, Outcome):
            self._refuse("ended before it asked anybody anything")
        self._conversation, self._problem = conversation, problem
        self.agents = list(self.possible_agents)
        return self._show(first)

    def step(self, actions: Mapping[str, Any]) -> Any:
        if self._conversation is None or not self.agents:
            return {}, {}, {}, {}, {}
        answers = self._answers_in(actions)
        for agent in self._asks[-1]:
            self._failed[agent] = self._failed.get(agent, False) or agent not in answers
        self._answers.append(answers)
        results = self._call_tools(answers)
        self._last_answers |= {a: text for a, text in answers.items() if a not in results}
        if results:
            self._asks.append({agent: ask for agent, (ask, _) in results.items()})
            shown = {agent: calls for agent, (_, calls) in results.items()}
            return self.step_result(*self._show(self._asks[-1], shown), done=False)
        answers, self._last_answers = self._last_answers, {}
        turn = self._next_turn(self._conversation, answers)
        if isinstance(turn, Outcome):
            observations, infos = self._show({})[0], self._final_infos(turn)
            if self.render_mode is not None:
                self.last_infos = copy_plain(infos)
            return self.step_result(observations, infos, done=True, truncated=turn.truncated)
        return self.step_result(*self._show(turn), done=False)

    def score_requests(self, actions: Mapping[str, Any]) -> ScoreRequests:
        """Return the scores that ``step(actions)`` may request; changes nothing."""
        if self._problem is None or not self.agents:
            return ScoreRequests()
        answers = self._answers_in(actions)
        if any(self._readable_calls(agent, text) for agent, text in answers.items()):
            # The step runs tools, and the conversation goes on later.
            return ScoreRequests()
        answers = {**self._last_answers, **answers}
        if self._scores is None:
            return ScoreRequests(tuple((text, self._problem) for text in answers.values()))
        requests = self._scores(answers)
        if not isinstance(requests, ScoreRequests):
            self._refuse(f"has scores that give {requests!r:.100}; they must give ScoreRequests")
        return requests

    def transcript(self) -> str | None:
        if self._problem is None:
            return None
        lines = [f"{self._problem.id}: {self._problem.question}"]
        if golds := " or ".join(filter(None, self._problem.golds)):
            lines.append(f"gold answer: {golds}")
        shown = ""
        for asks, answers in zip(self._asks, self._answers):
            for agent, ask in asks.items():
                # What several agents are asked is shown once.
                question = (ask.text, "--") if ask.text not in ("", shown) else ()
                answer = answers.get(agent, "(no answer)")
                lines += ["", f"== {agent} ==", *question, answer]
                shown = ask.text
        return "\n".join([*lines, "", *map(_told, self.last_infos, self.last_infos.values())])

    def _answers_in(self, actions: Mapping[str, Any]) -> dict[str, str]:
        """Select the answers of the active agents."""
        return {agent: text_of(actions[agent]) for agent in self._asks[-1] if agent in actions}

    def _next_turn(
        self, conversation: Conversation, answers: Answers | None
    ) -> dict[str, Ask] | Outcome:
        """Send the answers; return the next questions, or the outcome."""
        try:
            # A generator that has not begun takes None.
            turn = conversation.send(answers)  # pyright: ignore[reportArgumentType]
        except StopIteration as end:
            if why := why_no_outcome(end.value, self.possible_agents):
                self._refuse(why)
            return end.value
        asks, self._scores = (turn.asks, turn.scores) if isinstance(turn, Turn) else (turn, None)
        if why := why_no_asks(asks, self.possible_agents, self._failed):
            self._refuse(why)
        self._asks.append(as_asks(asks))
        self._calls_left = {a: tools.calls for a, tools in self._tools.items()}
        return self._asks[-1]

    def _tools_by_agent(self) -> dict[str, Tools]:
        offered = self.tools()
        whole = isinstance(offered, Mapping) and all(
            isinstance(tools, Tools) for tools in offered.values()
        )
        if not whole or not set(self.roles).issuperset(offered):
            raise UserError(
                f"{self.title}: tools() gave {offered!r:.200}; it must give Tools((function, ...)) "
                f"for some of {', '.join(self.roles)}."
            )
        return {agent: tools for role, tools in offered.items() for agent in self.agents_of(role)}

    def _readable_calls(self, agent: str, text: str) -> Sequence[FoundCall]:
        """The calls in an answer, if the agent may still call tools."""
        return find_calls(text) if agent in self._tools and self._calls_left[agent] else ()

    def _call_tools(self, answers: Answers) -> dict[str, tuple[Ask, list[ToolCall]]]:
        """Agent -> the results of its calls as the next question, and the calls themselves."""
        results: dict[str, tuple[Ask, list[ToolCall]]] = {}
        for agent, text in answers.items():
            if not (found := self._readable_calls(agent, text)):
                continue
            tools, left = self._tools[agent], self._calls_left[agent]
            calls = tools.run(found[:left])
            self._calls_left[agent] -= len(calls)
            if len(found) > left:
                why = f"error: there are at most {tools.calls} calls; the others were not made"
                calls.append(ToolCall(found[left].name, {}, why, failed=True))
            self._calls.setdefault(agent, []).extend(calls)
            shown = "\n".join(as_response(call.result) for call in calls)
            results[agent] = replace(self._asks[-1][agent], text=shown, piece="tools"), calls
        return results

    def _show(
        self,
        asks: Mapping[str, Ask],
        calls: Mapping[str, Sequence[ToolCall]] = MappingProxyType({}),
    ) -> Seen:
        """Observations and infos: agents in ``asks`` get their question, or the results of their
        ``calls``, all others nothing."""
        observations: dict[str, dict[str, Any]] = {}
        infos: dict[str, dict[str, Any]] = {}
        for agent in self.agents:
            ask = asks.get(agent)
            observations[agent] = {"text": ask.text if ask else "", "active": int(ask is not None)}
            infos[agent] = self._info_of(agent, ask, calls.get(agent, ())) if ask else {}
        return observations, infos

    def _info_of(self, agent: str, ask: Ask, calls: Sequence[ToolCall]) -> dict[str, Any]:
        """What an agent that is asked reads beside the text: piece, tools and limits."""
        info: dict[str, Any] = {"piece": ask.piece}
        if ask.piece == "tools":
            info["tool_results"] = [_as_result(call) for call in calls]
        elif agent in self._tools:
            info["offered_tools"] = self._tools[agent].schemas
        if ask.continues or agent in self._tools:
            info["continues"] = True
        for name in ("max_new_tokens", "stop"):
            limit = getattr(ask, name)
            if limit is None:
                limit = getattr(self.settings, name, None)
            if limit is not None:
                info[name] = limit
        if isinstance(info.get("stop"), list | tuple):  # the contract's rules refuse other types
            info["stop"] = list(info["stop"])
        return info

    def _final_infos(self, outcome: Outcome) -> dict[str, dict[str, Any]]:
        problem = self._problem.id if self._problem else ""
        episode = {"problem": problem, **outcome.episode}
        keys = self.metadata.get("group_keys", ())
        failed = self._failed if outcome.failed is None else outcome.failed
        infos: dict[str, dict[str, Any]] = {}
        for agent in self.possible_agents:
            groups = {"problem": problem, "problem+role": f"{problem}/{role_of(agent)}"}
            groups = {key: groups[key] for key in keys if key in groups}
            info = infos[agent] = {
                "reward_terms": dict(outcome.terms.get(agent, {})),
                "groups": groups | dict(outcome.groups.get(agent, {})),
                "episode": copy_plain(episode),
                **({"failed": failed[agent]} if agent in failed else {}),
                **self._measured_calls(agent),
                **copy_plain(outcome.measured.get(agent, {})),
            }
            for name in ("turn_rewards", "loss_weight", *CONTEXTS):
                if agent in getattr(outcome, name):
                    info[name] = getattr(outcome, name)[agent]
            if "turn_rewards" in info and agent in self._calls:
                info["turn_rewards"] = self._by_turn(agent, info["turn_rewards"])
            if (trained := self._trained_turns(agent)) is not None:
                info["trained_turns"] = trained
        return self._checked_infos(infos)

    def _trained_turns(self, agent: str) -> list[int] | None:
        """Indices of the agent's turns that are learned; None: all are."""
        asks = self._asks_of(agent)
        trained = [i for i, ask in enumerate(asks) if ask.trained]
        if trained and getattr(self.settings, "train_turns", "all") == "last":
            # The calls of an answer belong to it.
            first = next(i for i in range(trained[-1], -1, -1) if asks[i].piece != "tools")
            trained = [i for i in trained if i >= first]
        return None if len(trained) == len(asks) else trained

    def _asks_of(self, agent: str) -> list[Ask]:
        """The agent's questions, and the results of its calls."""
        return [turn[agent] for turn in self._asks if agent in turn]

    def _by_turn(self, agent: str, rewards: Any) -> Any:
        """The rewards of an agent's answers by its turns: calls earn what comes after them."""
        # A turn called tools if their results follow it; nothing follows the last turn.
        called = [*(ask.piece == "tools" for ask in self._asks_of(agent)[1:]), False]
        if not isinstance(rewards, Sequence) or len(rewards) != called.count(False):
            return rewards  # the rules of the contract refuse it
        left = iter(rewards)
        return [0.0 if called_tools else next(left) for called_tools in called]

    def _measured_calls(self, agent: str) -> dict[str, int]:
        if agent not in self._tools:
            return {}
        calls = self.calls_of(agent)
        return {"tool_calls": len(calls), "tool_errors": sum(call.failed for call in calls)}

    def _checked_infos(self, infos: dict[str, dict[str, Any]]) -> dict[str, dict[str, Any]]:
        """Convert NumPy numbers to Python's, and test the infos against the contract."""
        keys = self.metadata.get("group_keys", ())
        for agent in infos:
            infos[agent], why = python_info(agent, infos[agent], active=False)
            if why:
                self._refuse(f"ended, and {why}")
            if why := why_not_grouped(agent, infos[agent]["groups"], keys):
                self._refuse(f"ended, and {why}")
        return infos

    def _refuse(self, sentence: str) -> NoReturn:
        raise UserError(f"{self.title}: conversation() {sentence}.")


def _told(agent: str, info: Mapping[str, Any]) -> str:
    """What an agent earned, and what is true of it."""
    terms = [f"{name} {value:+.3f}" for name, value in info["reward_terms"].items() if value]
    true = [name for name, value in info.items() if value is True]
    parts = [f"reward {reward_of(info):+.3f}", ", ".join(terms), ", ".join(true)]
    return f"{agent}: {'; '.join(filter(None, parts))}"


def _as_result(call: ToolCall) -> dict[str, str]:
    """A result as a message of a chat template. A failed call may have any name."""
    return {"content": call.result} | ({} if call.failed else {"name": call.name})
