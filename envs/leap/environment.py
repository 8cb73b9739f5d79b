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

Observation: the question, then the opening of a summary, then peers' summaries, as continuations
of the path's turn. ``active`` says who is asked now.

Rewards: 1 for a right answer, at the end. A path that is asked and has no entry in ``actions``
failed: it earns 0 and writes no more.

Version history: v0, the first.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from envs.bytes_codec import TextMeter
from envs.eapo_consultation.prompts import lone_prompt
from envs.leap.path import Game, Path, final_info, summaries, to_check
from envs.leap.routing import choose
from envs.leap.settings import LeapSettings
from envs.problem_env import ProblemEnv, text_of
from problems.source import ProblemSource
from rewards.consultation import final_answer
from vocabulary import Scorer, ScoreRequests, UserError, derive_seed

SUMMARY = ("<summarize>", "</summarize>")
PEERS = ("<peer_summaries>", "</peer_summaries>")


class LeapEnv(ProblemEnv):
    """The text environment; ``envs.make`` wraps it in tokens."""

    title = "leap"
    metadata: dict[str, Any] = {  # noqa: RUF012 (PettingZoo's convention)
        "name": "leap_v0",
        "render_modes": ["human", "ansi"],
        "render_fps": 1,
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
        render_mode: str | None = None,
    ) -> None:
        """Set up an environment in which any number of episodes can be played.

        Args:
            settings: see :class:`LeapSettings`.
            roles: the one role that writes all paths.
            scorer: checks answers; an ``AnswerScorer`` of its own without one.
            source: problems for episodes whose options name none; generated chains without one.
            tokenizers: role -> the meter of its tokens; bytes without one.
            render_mode: ``human`` prints the transcript of each episode, ``ansi`` returns it.

        Raises:
            UserError: not exactly one role, or an unknown render mode.
        """
        if len(roles) != 1:
            raise UserError(f"leap: one role writes all paths, not {len(roles)}.")
        self.settings = settings or LeapSettings()
        super().__init__(
            [f"{roles[0]}_{k}" for k in range(self.settings.paths)],
            roles,
            scorer=scorer,
            source=source,
            tokenizers=tokenizers,
            render_mode=render_mode,
        )
        self._meter = self.meters[roles[0]]
        self._game: Game | None = None

    def reset(
        self, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[dict[str, dict[str, Any]], dict[str, dict[str, Any]]]:
        """Begin an episode.

        Args:
            seed: draws the problem, if none is given, and the random router's choices.
            options: ``problem``.

        Raises:
            UserError: an option that makes no sense.
        """
        seed = self.seeded(seed)
        problem = self.problem_of(seed, options or {})
        game = self._game = Game(problem, seed, {agent: Path() for agent in self.possible_agents})
        self.agents = list(self.possible_agents)
        question = lone_prompt(problem.question, self.settings.prompt_style)
        return self._show(game, dict.fromkeys(self.agents, question), "message")

    def step(self, actions: Mapping[str, Any]) -> Any:
        game = self._game
        if game is None or not self.agents:
            return {}, {}, {}, {}, {}
        for agent in game.asked:
            self._written(game, agent, actions)
        going_on = [agent for agent in game.asked if not game.paths[agent].done]
        game.pauses += game.summarising
        game.summarising = bool(going_on) and not game.summarising
        if not going_on:
            return self._ended(game)
        if game.summarising:
            shown = dict.fromkeys(going_on, f"\n{SUMMARY[0]}")
        else:
            shown = {agent: self._peers(game, agent) for agent in going_on}
        observations, infos = self._show(game, shown, "continuation")
        return self.stepped(observations, infos, done=False)

    def score_requests(self, actions: Mapping[str, Any]) -> ScoreRequests:
        """What ``step(actions)`` may ask of the scorer; changes nothing."""
        game = self._game
        if game is None or not self.agents:
            return ScoreRequests()
        texts = [
            path.own + (text_of(actions.get(agent)) if agent in game.asked else "")
            for agent, path in game.paths.items()
        ]
        return ScoreRequests(tuple(pair for text in texts for pair in to_check(text, game.problem)))

    def transcript(self) -> str | None:
        return None if self._game is None else self._game.transcript()

    def _written(self, game: Game, agent: str, actions: Mapping[str, Any]) -> None:
        path, text = game.paths[agent], text_of(actions.get(agent))
        path.failed = agent not in actions
        path.tokens += self._meter.count(text)
        game.pieces.append((agent, text))
        over = path.failed or path.tokens >= self.settings.max_new_tokens
        if game.summarising:
            path.summary = text.partition(SUMMARY[1])[0].strip()
            path.done = over
            return
        path.own += text
        answered = final_answer(path.own) is not None
        path.done = over or answered or not text or game.pauses >= self.settings.pauses

    def _peers(self, game: Game, agent: str) -> str:
        """What a path reads on its return from a pause."""
        settings, others = self.settings, summaries(game, agent)
        seed = derive_seed("leap", game.seed, game.pauses, agent)
        chosen = choose(game.paths[agent].summary, others, settings.peers, settings.router, seed)
        return "\n".join(["", PEERS[0], *(others[peer] for peer in chosen), PEERS[1], ""])

    def _show(
        self, game: Game, texts: Mapping[str, str], piece: str
    ) -> tuple[dict[str, dict[str, Any]], dict[str, dict[str, Any]]]:
        """Ask the agents of ``texts``, and nobody else."""
        settings, game.asked = self.settings, list(texts)
        limit = settings.max_new_tokens
        if game.summarising:
            limit = settings.summary_tokens
        elif game.pauses < settings.pauses:
            limit = settings.block_tokens
        stop = [SUMMARY[1]] if game.summarising else []
        observations, infos = self.asked(texts, limit=limit, stop=stop, piece=piece)
        for agent, text in texts.items():
            left = settings.max_new_tokens - game.paths[agent].tokens
            infos[agent]["max_new_tokens"] = min(limit, left)
            game.pieces.append((f"to {agent}", text))
        return observations, infos

    def _ended(self, game: Game) -> Any:
        observations = {agent: {"text": "", "active": 0} for agent in self.agents}
        infos = {
            agent: final_info(path, game, self.roles[0], self.scorer)
            for agent, path in game.paths.items()
        }
        truncated = [agent for agent, info in infos.items() if info["answer"] is None]
        return self.stepped(observations, infos, done=True, truncated=truncated)
