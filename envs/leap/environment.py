"""Learning from peers: paths that pause, summarise, and read what others have found.

| | |
|---|---|
| Creation | ``envs.make("envs.leap:LeapEnv")`` |
| Actions | text; tokens in the token view |
| Parallel API | yes |
| Agents | ``policy_0 .. policy_{n-1}`` |
| Action space | ``TextSpace``; ``TokenSpace`` in the token view |
| Observation space | ``Dict(text: TextSpace, active: Discrete(2))`` |

A baseline that needs no training (LeaP, arXiv:2505.07787; a row of EAPO's table, arXiv:2509.23730).
n paths answer one problem. After every T tokens those that have no answer yet write a summary
between ``<summarize>`` tags; a router picks whose summaries each of them reads, and it goes on.

Rewards: 1 for a right answer, at the end.

Version history: v0, the first.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from gymnasium import Space, spaces
from pettingzoo import ParallelEnv

from envs.bytes_codec import BytesCodec, TextMeter
from envs.eapo_consultation.prompts import lone_prompt
from envs.eapo_consultation.settings import PromptStyle
from envs.leap.routing import choose, similarities
from envs.leap.settings import LeapSettings
from envs.spaces import TextSpace
from problems.source import ProblemSource
from rewards.consultation_format import ANSWER, final_answer
from rewards.squad_f1 import squad_f1
from vocabulary import Problem, Scorer, ScoreRequests, UserError, Verdict, derive_seed

SUMMARY = ("<summarize>", "</summarize>")
PEERS = ("<peer_summaries>", "</peer_summaries>")


@dataclass
class _Path:
    own: str = ""
    tokens: int = 0
    summary: str = ""
    done: bool = False
    failed: bool = False


@dataclass
class _Game:
    problem: Problem
    seed: int
    paths: list[_Path]
    pauses: int = 0
    summarising: bool = False
    asked: list[int] = field(default_factory=list)


class LeapEnv(ParallelEnv[str, dict[str, Any], Any]):
    """The text environment; ``envs.make`` wraps it in tokens."""

    metadata: dict[str, Any] = {  # noqa: RUF012 (PettingZoo's convention)
        "name": "leap_v0",
        "render_modes": [],
        "is_parallelizable": True,
        "group_keys": ("problem", "problem+role"),
        "default_group": "problem+role",
    }

    def __init__(
        self,
        settings: LeapSettings | None = None,
        *,
        roles: Sequence[str] = ("policy",),
        scorer: Scorer | None = None,
        source: ProblemSource | None = None,
        tokenizers: Mapping[str, TextMeter] | None = None,
        prompt_style: PromptStyle = "plain",
    ) -> None:
        """Set up an environment in which any number of episodes can be played.

        Raises:
            UserError: not exactly one role.
        """
        if len(roles) != 1:
            raise UserError(f"leap: one role writes all paths, not {len(roles)}.")
        self.settings = settings or LeapSettings()
        self._style: PromptStyle = prompt_style
        self._scorer, self._source = scorer, source
        self._meter = (tokenizers or {}).get(roles[0], BytesCodec())
        self.render_mode = None
        self._role = roles[0]
        self.possible_agents = [f"{roles[0]}_{k}" for k in range(self.settings.paths)]
        self.agents: list[str] = []
        self._observation_spaces = {
            agent: spaces.Dict({"text": TextSpace(), "active": spaces.Discrete(2)})
            for agent in self.possible_agents
        }
        self._action_spaces = {agent: TextSpace() for agent in self.possible_agents}
        self._fresh_seed = int(np.random.default_rng().integers(2**62))
        self._game: _Game | None = None

    def observation_space(self, agent: str) -> Space[Any]:
        return self._observation_spaces[agent]

    def action_space(self, agent: str) -> Space[Any]:
        return self._action_spaces[agent]

    @property
    def scorer(self) -> Scorer:
        """The injected scorer, or one of its own, built when first needed."""
        if self._scorer is None:
            from rewards.scorer import AnswerScorer

            self._scorer = AnswerScorer()
        return self._scorer

    def reset(
        self, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[dict[str, dict[str, Any]], dict[str, dict[str, Any]]]:
        """Begin an episode; ``options["problem"]`` names its problem, otherwise the seed draws."""
        if seed is None:
            self._fresh_seed += 1
            seed = self._fresh_seed
        else:
            for place, space in enumerate(self._action_spaces.values()):
                space.seed(seed + place)
        problem = (options or {}).get("problem")
        if problem is None:
            if self._source is None:
                from problems.chains import ChainSource

                self._source = ChainSource()
            source = self._source
            problem = source[derive_seed("leap", "problem", seed) % (source.size or 2**31)]
        if not isinstance(problem, Problem):
            raise UserError("leap: options['problem'] must be a vocabulary.Problem.")
        paths = [_Path() for _ in self.possible_agents]
        self._game = _Game(problem, seed, paths, asked=list(range(len(paths))))
        self.agents = list(self.possible_agents)
        prompt = lone_prompt(problem.question, self._style)
        return self._show(self._game, dict.fromkeys(self._game.asked, prompt), "message")

    def step(self, actions: Mapping[str, Any]) -> Any:
        game = self._game
        if game is None or not self.agents:
            return {}, {}, {}, {}, {}
        for number in game.asked:
            self._written(game, number, actions)
        if not game.summarising:
            game.asked = [n for n, path in enumerate(game.paths) if not path.done]
            if not game.asked:
                return self._ended(game)
            game.summarising = True
            return self._going_on(game, dict.fromkeys(game.asked, f"\n{SUMMARY[0]}"))
        game.summarising = False
        game.pauses += 1
        shown = {n: self._peers(game, n) for n in game.asked if not game.paths[n].done}
        game.asked = list(shown)
        return self._going_on(game, shown) if shown else self._ended(game)

    def score_requests(self, actions: Mapping[str, Any]) -> ScoreRequests:
        """What ``step(actions)`` may ask of the scorer; changes nothing."""
        game = self._game
        if game is None or not self.agents:
            return ScoreRequests()
        checks: list[tuple[str, Problem]] = []
        for number, path in enumerate(game.paths):
            added = actions.get(self.possible_agents[number], "") if number in game.asked else ""
            answer = final_answer(path.own + (added if isinstance(added, str) else ""))
            if answer is not None:
                checks.append((f"{ANSWER} {answer}", game.problem))
        return ScoreRequests(tuple(checks))

    def close(self) -> None:
        self.agents = []

    def _written(self, game: _Game, number: int, actions: Mapping[str, Any]) -> None:
        path, agent = game.paths[number], self.possible_agents[number]
        if agent not in actions:
            path.failed = path.done = True
            return
        action = actions[agent]
        text = action if isinstance(action, str) else ""
        path.tokens += self._meter.count(text)
        if game.summarising:
            path.summary = text.partition(SUMMARY[1])[0].strip()
            path.done = path.tokens >= self.settings.max_new_tokens
            return
        path.own += text
        over = path.tokens >= self.settings.max_new_tokens or not text
        path.done = over or final_answer(path.own) is not None or self._last_block(game)

    def _last_block(self, game: _Game) -> bool:
        return game.pauses >= self.settings.pauses

    def _peers(self, game: _Game, number: int) -> str:
        """What a path reads: summaries of others that paused with it or before."""
        texts = [path.summary for path in game.paths]
        chosen = choose(
            similarities(texts),
            number,
            self.settings.peers,
            self.settings.router,
            derive_seed(game.seed, game.pauses),
        )
        told = "\n".join(texts[other] for other in chosen if texts[other])
        return f"\n{PEERS[0]}\n{told}\n{PEERS[1]}\n"

    def _show(
        self, game: _Game, texts: Mapping[int, str], piece: str
    ) -> tuple[dict[str, dict[str, Any]], dict[str, dict[str, Any]]]:
        settings = self.settings
        observations: dict[str, dict[str, Any]] = {
            agent: {"text": "", "active": 0} for agent in self.agents
        }
        infos: dict[str, dict[str, Any]] = {agent: {} for agent in self.agents}
        for number, text in texts.items():
            agent, left = (
                self.possible_agents[number],
                settings.max_new_tokens - game.paths[number].tokens,
            )
            limit = settings.summary_tokens if game.summarising else settings.block_tokens
            if not game.summarising and self._last_block(game):
                limit = left
            observations[agent] = {"text": text, "active": 1}
            infos[agent] = {
                "piece": piece,
                "max_new_tokens": max(1, min(limit, left)),
                "stop": [SUMMARY[1]] if game.summarising else [],
            }
        return observations, infos

    def _going_on(self, game: _Game, texts: Mapping[int, str]) -> Any:
        observations, infos = self._show(game, texts, "continuation")
        no = dict.fromkeys(self.agents, False)
        return observations, dict.fromkeys(self.agents, 0.0), no, dict(no), infos

    def _ended(self, game: _Game) -> Any:
        observations = {agent: {"text": "", "active": 0} for agent in self.agents}
        problem, infos, rewards = game.problem, {}, {}
        for agent, path in zip(self.agents, game.paths, strict=True):
            answer = final_answer(path.own)
            verdict = Verdict(False, None, "none")
            if answer is not None and not path.failed:
                verdict = self.scorer.check(f"{ANSWER} {answer}", problem)
            rewards[agent] = float(verdict.correct)
            infos[agent] = {
                "reward_terms": {"correct": rewards[agent]},
                "groups": {"problem": problem.id, "problem+role": f"{problem.id}/{self._role}"},
                "correct": bool(verdict.correct),
                "failed": path.failed,
                "answer": verdict.answer,
                "f1": squad_f1(answer or "", [problem.gold]),
                "response_tokens": path.tokens,
                "expert_tokens": 0,
                "episode": {"problem": problem.id, "pauses": game.pauses},
            }
        done = dict.fromkeys(self.agents, True)
        self.agents = []
        return observations, rewards, done, dict.fromkeys(done, False), infos
