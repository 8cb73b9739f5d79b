"""The token view of a text environment, which ``make`` returns. Here prompts become tokens.

An agent's context is a sequence of ids that only grows at its end, until a fresh context begins.
Each new piece is rendered by the role's codec, which applies the model's chat template
(:mod:`coterie.agents.models.codec`). Sampled ids are never tokenized again.
"""

import json
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from gymnasium import spaces
from pettingzoo import ParallelEnv

from coterie.datatypes import ScoreRequests, TokenCodec, UserError, role_of
from coterie.datatypes.thinking import as_said, opened_by
from coterie.envs.bytes_codec import BytesCodec
from coterie.envs.contract import CONTEXTS, roles_of
from coterie.envs.spaces import Seen, TokenSpace, View, token_ids
from coterie.envs.tool_calls import introduce
from coterie.envs.tools import offered_tools

Tokens = npt.NDArray[np.int64]


class TokenView(View):
    """Observation ``Dict(tokens, active)``, action a one-dimensional ``int64`` array of ids.

    ``tokens`` is the agent's full context in its role's vocabulary, including its sampled ids. An
    active agent's info has the context as ``text``. Where an agent ends, its info has it as
    ``texts``, alternating pieces of environment and agent. Malformed actions are tolerated: ids
    outside the vocabulary are dropped, and an action without ids is an empty answer.

    If the context opens a thought (a chat template that ends in ``<think>``), the text of the
    answer begins with that mark, so that the environment can tell thought from answer. The answer
    to a continuation gets no mark, because its text has begun already.
    """

    def __init__(
        self,
        env: ParallelEnv[str, dict[str, Any], Any],
        codecs: Mapping[str, TokenCodec] | None = None,
    ) -> None:
        """Wrap a text environment.

        Args:
            env: observations ``Dict(text, active)``, actions strings.
            codecs: role -> codec; roles without one use UTF-8 bytes.

        Raises:
            UserError: ``codecs`` names a role that the environment does not have.
        """
        super().__init__(env)
        roles = roles_of(self.possible_agents)
        for role in codecs or {}:
            if role not in roles:
                raise UserError(
                    f"a codec was given for role {role!r}, but the roles are {', '.join(roles)}"
                )
        for role, tools in offered_tools(env).items():
            why = getattr((codecs or {}).get(role), "why_no_tools", None)
            if why is not None and (sentence := why(tools)):
                raise UserError(
                    f"{role} may call tools and is played by a model {sentence}; take another, or "
                    f"say --agents.{role}.chat plain"
                )
        plain = BytesCodec()
        self._codecs: dict[str, TokenCodec] = {
            agent: (codecs or {}).get(role_of(agent), plain) for agent in self.possible_agents
        }
        self._observation_spaces = {
            agent: spaces.Dict(
                {"tokens": TokenSpace(codec.vocab_size), "active": spaces.Discrete(2)}
            )
            for agent, codec in self._codecs.items()
        }
        self._action_spaces = {
            agent: TokenSpace(codec.vocab_size) for agent, codec in self._codecs.items()
        }
        self._contexts: dict[str, _Context] = {}

    def reset(self, seed: int | None = None, options: dict[str, Any] | None = None) -> Seen:
        if seed is not None:
            self.seed_actions(seed)
        observations, infos = self.env.reset(seed=seed, options=options)
        self._contexts = {agent: _Context(self._codecs[agent]) for agent in self.possible_agents}
        return self._seen(observations, infos)

    def step(self, actions: Mapping[str, Any]) -> Any:
        texts: dict[str, str] = {}
        for agent, action in actions.items():
            if context := self._contexts.get(agent):
                ids = context.ids_of(action)
                texts[agent] = context.text_of(ids)
                if context.active:
                    context.answer(ids, texts[agent])
        observations, rewards, terminations, truncations, infos = self.env.step(texts)
        observations, infos = self._seen(observations, infos)
        return observations, rewards, terminations, truncations, infos

    def score_requests(self, actions: Mapping[str, Any]) -> ScoreRequests:
        """Return the scores that ``step(actions)`` will request; empty without a scorer."""
        if not hasattr(self.env, "score_requests"):
            return ScoreRequests()
        texts = {
            agent: context.text_of(context.ids_of(action))
            for agent, action in actions.items()
            if (context := self._contexts.get(agent))
        }
        return self.env.score_requests(texts)  # pyright: ignore[reportAttributeAccessIssue]

    def _seen(self, observations: Mapping[str, Any], infos: Mapping[str, Any]) -> Seen:
        """Append the new pieces; return the contexts and infos."""
        self.agents = list(self.env.agents)
        seen_observations: dict[str, dict[str, Any]] = {}
        seen_infos: dict[str, dict[str, Any]] = {}
        for agent in {**observations, **infos}:
            # An agent may end without a last observation.
            observation = observations.get(agent, {"text": "", "active": 0})
            info = dict(infos.get(agent, {}))
            context = self._contexts[agent]
            piece = info.pop("piece", "message")
            if piece == "fresh":
                info["fresh"] = True
            tools, results = info.pop("offered_tools", ()), info.pop("tool_results", ())
            context.give(observation["text"], piece, tools, results)
            context.active = bool(observation["active"])
            if context.active:
                info["text"] = context.text()
            if agent not in self.agents:
                info["texts"] = context.pieces()
            for name in CONTEXTS & info.keys():
                info[name] = np.asarray(context.opening(info[name])[0], dtype=np.int64)
            seen_infos[agent] = info
            if agent in observations:
                seen_observations[agent] = {
                    "tokens": context.tokens(),
                    "active": observation["active"],
                }
        return seen_observations, seen_infos


class _Context:
    """An agent's context so far, in ids and in text."""

    def __init__(self, codec: TokenCodec) -> None:
        self.codec = codec
        self.active = False
        self._tokens: Tokens = np.zeros(0, dtype=np.int64)
        self._texts: list[str] = []
        self._pieces: list[str] = []
        self._tools: Sequence[Mapping[str, Any]] = ()
        self._mark: int | None = None
        """The id with which the agent ended its turn, if it is the last of the context."""
        self._opened = ""
        """The mark of a thought that the context opens for the agent."""
        self._decoded: tuple[bytes, str] = (b"", "")

    def tokens(self) -> Tokens:
        return self._tokens.copy()

    def text(self) -> str:
        return "".join(self._texts)

    def pieces(self) -> list[str]:
        return list(self._pieces)

    def give(
        self,
        text: str,
        piece: str,
        tools: Sequence[Mapping[str, Any]] = (),
        results: Sequence[Mapping[str, Any]] = (),
    ) -> None:
        if not text:
            return
        if piece == "fresh":
            self._tokens, self._texts = np.zeros(0, dtype=np.int64), []
        if piece == "continuation":
            ids = self.codec.extend(text)
        elif len(self._tokens):
            ids = self._following(text, results)
        else:
            self._tools = tools
            ids, text = self.opening(text)
        self._append(np.asarray(ids, dtype=np.int64), text)
        self._opened = "" if piece == "continuation" else opened_by(self.codec, self._tokens)
        self._mark = None  # what the agent reads now comes after it
        self._decoded = (b"", "")

    def opening(self, text: str) -> tuple[list[int], str]:
        """Return a message that begins a context, in ids and in text, with a description of the
        tools: the template's if it has one."""
        shown = introduce(
            [json.dumps(t["function"], ensure_ascii=False) for t in self._tools], text
        )
        ids = None
        if self._tools and getattr(self.codec, "knows_tools", False):
            messages = [{"role": "user", "content": text}]
            ids = self.codec.open_chat(messages, self._tools)  # pyright: ignore[reportAttributeAccessIssue]
        return (self.codec.open(shown) if ids is None else ids), shown

    def _following(self, text: str, results: Sequence[Mapping[str, Any]]) -> list[int]:
        ended = {"ended": self._mark is not None, "mark": self._mark}
        if results and getattr(self.codec, "knows_tools", False):
            messages = [{"role": "tool", **result} for result in results]
            ids = self.codec.follow_chat(messages, **ended)  # pyright: ignore[reportAttributeAccessIssue]
            if ids is not None:
                return ids
        return self.codec.follow(text, **ended)

    def answer(self, ids: Tokens, text: str) -> None:
        self._append(ids, text)
        if len(ids):  # what follows goes on inside the thought, which is not opened again
            self._opened, self._decoded = "", (b"", "")
        last = int(ids[-1]) if len(ids) else None
        self._mark = last if last in self.codec.eos_ids else None

    def ids_of(self, action: Any) -> Tokens:
        return token_ids(action, self.codec.vocab_size)

    def text_of(self, ids: Tokens) -> str:
        # Scoring and the step decode the same answer.
        key = ids.tobytes()
        if self._decoded[0] != key:
            text = self.codec.decode(ids) if len(ids) else ""
            self._decoded = (key, as_said(self._opened, text))
        return self._decoded[1]

    def _append(self, ids: Tokens, text: str) -> None:
        self._tokens = np.concatenate([self._tokens, ids])
        self._texts.append(text)
        self._pieces.append(text)
