"""Consultation: a policy that may ask experts, whose help fades while it learns.

| | |
|---|---|
| Creation | ``envs.make("eapo-consultation")``; PettingZoo's id is ``eapo-consultation-v0`` |
| Actions | text; tokens in the token view |
| Parallel API | yes |
| Agents | ``policy_0``, ``expert_0 .. expert_{K-1}`` |
| Action space | ``TextSpace``; ``TokenSpace`` in the token view |
| Observation space | ``Dict(text: TextSpace, active: Discrete(2))`` |

An episode is one conversation (EAPO, arXiv:2509.23730, section 2). The policy thinks, and either
answers or calls up to K experts at once; each of them sees its own query and nothing else. A coin
per reply, whose chance falls with the training step, decides what comes back into the policy's
context; then it goes on. G replicas of a problem are compared with each other.

Modes (``options["mode"]``): ``train``; ``eval``, without experts and with a prompt that does not
mention them, where a call is text like any other; ``assisted``, evaluation with experts whose
replies are always let in; ``workflow``, where all experts are asked the question itself beforehand.
Outside of training the reward is correctness.

Observation: the policy's prompt, then what experts returned, as continuations of its turn; an
expert's query. ``active`` says who is asked now.

Rewards are paid to the policy at the end: its answer, and a penalty on consulting. Experts are
frozen: they earn 0 and carry no loss. An expert that is asked and has no entry in ``actions``, or
an empty one, is unavailable to the policy.

Version history: v0, the first.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from envs.bytes_codec import TextMeter
from envs.eapo_consultation.calls import Call, parse_calls
from envs.eapo_consultation.episode import (
    Asked,
    Consultation,
    begin,
    coin,
    is_accepted,
    other_question,
)
from envs.eapo_consultation.moves import Move, move_of
from envs.eapo_consultation.outcome import final_infos, final_requests
from envs.eapo_consultation.prompts import lone_prompt, training_prompt
from envs.eapo_consultation.replies import as_result
from envs.eapo_consultation.report import GROUP_KEYS, transcript
from envs.eapo_consultation.returns import Entry, returned
from envs.eapo_consultation.settings import EapoConsultationSettings
from envs.problem_env import ProblemEnv, private, text_of
from problems.source import ProblemSource
from rewards.consultation import CALLS
from vocabulary import Scorer, ScoreRequests, UserError, derive_seed

POLICY = "policy_0"
# Calls inside thoughts that are passed over before calls are switched off.
_MOST_IGNORED = 8


class EapoConsultationEnv(ProblemEnv):
    """The text environment; ``envs.make`` wraps it in tokens."""

    title = "eapo-consultation"
    metadata: dict[str, Any] = {  # noqa: RUF012 (PettingZoo's convention)
        "name": "eapo_consultation_v0",
        "render_modes": ["human", "ansi"],
        "render_fps": 1,
        "is_parallelizable": True,
        "group_keys": GROUP_KEYS,
        "default_group": "problem+role",
    }

    def __init__(
        self,
        settings: EapoConsultationSettings | None = None,
        *,
        roles: Sequence[str] = ("policy", "expert"),
        scorer: Scorer | None = None,
        source: ProblemSource | None = None,
        tokenizers: Mapping[str, TextMeter] | None = None,
        render_mode: str | None = None,
    ) -> None:
        """Set up an environment in which any number of episodes can be played.

        Args:
            settings: see :class:`EapoConsultationSettings`.
            roles: ``policy`` and ``expert``; they have their parts and cannot be others.
            scorer: checks answers; an ``AnswerScorer`` of its own without one.
            source: problems for episodes whose options name none, and for shuffled queries;
                generated chains without one.
            tokenizers: role -> the meter of its tokens, for budgets; bytes without one.
            render_mode: ``human`` prints the transcript of each episode, ``ansi`` returns it.

        Raises:
            UserError: other roles, or an unknown render mode.
        """
        if set(roles) != {"policy", "expert"}:
            raise UserError(
                f"eapo-consultation: the roles are policy and expert, not {', '.join(roles)}."
            )
        self.settings = settings or EapoConsultationSettings()
        self._expert = {k + 1: f"expert_{k}" for k in range(self.settings.experts)}
        super().__init__(
            [POLICY, *self._expert.values()],
            roles,
            scorer=scorer,
            source=source,
            tokenizers=tokenizers,
            render_mode=render_mode,
        )
        self.metadata = {**self.metadata, "replicas": self.settings.group_size}
        self._meter = self.meters["policy"]
        self._episode: Consultation | None = None

    def reset(
        self, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[dict[str, dict[str, Any]], dict[str, dict[str, Any]]]:
        """Begin an episode.

        Args:
            seed: draws the problem (if none is given) and the coins.
            options: ``problem``, ``step`` (1, counted from 1), ``replica`` (0; replicas of one
                seed differ in their coins) and ``mode`` (train).

        Raises:
            UserError: an option that makes no sense.
        """
        options = options or {}
        seed = self.seeded(seed)
        episode = begin(self.problem_of(seed, options), seed, options, self.settings)
        self._episode = episode
        self.agents = list(self.possible_agents)
        if episode.consult == "always":
            calls = [Call(expert, episode.problem.question) for expert in self._expert]
            if not self._dispatch(episode, calls):
                return self._ask_policy(episode, self._opening(episode))
            return self._ask_experts(episode)
        return self._ask_policy(episode, self._opening(episode))

    def step(self, actions: Mapping[str, Any]) -> Any:
        episode = self._episode
        if episode is None or not self.agents:
            return {}, {}, {}, {}, {}
        if episode.asking:
            return self.stepped(*self._replied(episode, actions), done=False)
        if POLICY not in actions:
            episode.failed = True
            return self._ended(episode)
        move = self._move(episode, actions[POLICY])
        episode.record(POLICY, move)
        if move.kind == "answer":
            return self._ended(episode)
        if move.kind == "ignored call":
            episode.ignored += 1
            return self.stepped(*self._ask_policy(episode, ""), done=False)
        return self.stepped(*self._called(episode, move.payload), done=False)

    def score_requests(self, actions: Mapping[str, Any]) -> ScoreRequests:
        """What ``step(actions)`` will ask of the scorer; changes nothing."""
        episode = self._episode
        if episode is None or not self.agents or episode.asking or POLICY not in actions:
            return ScoreRequests()
        move = self._move(episode, actions[POLICY])
        if move.kind != "answer":
            return ScoreRequests()
        return final_requests(episode, episode.own + move.text, self.settings)

    def transcript(self) -> str | None:
        return None if self._episode is None else transcript(self._episode)

    def _opening(self, episode: Consultation) -> str:
        question, style = episode.problem.question, self.settings.prompt_style
        if episode.consult == "free":
            return training_prompt(
                question,
                style,
                experts=self.settings.experts,
                at_once=self.settings.parallel,
                budget=self.settings.budget,
            )
        prompt = lone_prompt(question, style)
        if episode.consult == "always":
            prompt += returned([one.entry for one in episode.rounds[-1]])
        return prompt

    def _calls_enabled(self, episode: Consultation) -> bool:
        return (
            episode.consult == "free"
            and not episode.exhausted
            and episode.ignored < _MOST_IGNORED
            and episode.tokens < episode.max_new_tokens
        )

    def _move(self, episode: Consultation, action: Any) -> Move:
        """What the policy's action amounts to; one of another type is an empty answer."""
        text = text_of(action)
        tokens = self._meter.count(text)
        may_call = self._calls_enabled(episode) and (
            episode.tokens + tokens < episode.max_new_tokens
        )
        return move_of(text, tokens, thinking=episode.thinking, may_call=may_call)

    def _called(self, episode: Consultation, payload: str) -> tuple[Any, Any]:
        """The policy made a call: on to the experts, or straight back to the policy."""
        calls = parse_calls(payload, self.settings.experts, self.settings.parallel)
        episode.answered_calls += not isinstance(calls, str)
        by_calls = self.settings.budget_unit == "calls"
        allowed = episode.turns_allowed
        left = allowed - (episode.calls_used if by_calls else episode.rounds_used)
        size = len(calls) if by_calls and not isinstance(calls, str) else 1
        if left < 1 or episode.rounds_used >= allowed:
            episode.exhausted = True
            entry = Entry("BUDGET_EXHAUSTED", "no consultations are left")
            return self._ask_policy(episode, returned([entry]))
        if size > left:
            # It costs a round and no call: a smaller block may follow, and there is an end to it.
            calls, size = f"{size} are asked and {left} can still be asked", 0
        episode.rounds_used += 1
        episode.calls_used += size
        if isinstance(calls, str):
            episode.errors += 1
            return self._ask_policy(episode, returned([Entry("ERROR", calls)]))
        if self._dispatch(episode, calls):
            return self._ask_experts(episode)
        return self._ask_policy(episode, returned([one.entry for one in episode.rounds[-1]]))

    def _dispatch(self, episode: Consultation, calls: Sequence[Call]) -> bool:
        """Draw the coins of a block of calls; whether any expert is really asked."""
        replica = None if self.settings.coin == "group" else episode.replica
        number = len(episode.rounds)
        block: list[Asked] = []
        for call in calls:
            u = coin(episode.seed, replica, number, call.expert_id)
            query = call.query
            if self.settings.queries == "shuffled":
                where = ("shuffled", episode.seed, number, call.expert_id)
                others = [self.problem_of(derive_seed(*where, k), {}).question for k in range(8)]
                query = other_question(episode.problem.question, others)
            block.append(Asked(call, query, is_accepted(u, episode.acceptance)))
        episode.rounds.append(block)
        early = self.settings.draw_before_dispatch
        episode.asking = [one for one in block if one.accepted or not early]
        return bool(episode.asking)

    def _replied(self, episode: Consultation, actions: Mapping[str, Any]) -> tuple[Any, Any]:
        """The experts' replies are in: back to the policy."""
        settings = self.settings
        for one in episode.asking:
            agent = self._expert[one.call.expert_id]
            text = text_of(actions.get(agent))
            result = as_result(
                text,
                self._meter,
                limit=settings.reply_tokens,
                thinking_tokens=settings.reply_thinking_tokens,
            )
            one.replied = bool(result)
            one.result = result if one.accepted else ""
            episode.expert_tokens += self._meter.count(one.result) if one.result else 0
            episode.pieces.append((agent, text))
        episode.asking = []
        if episode.consult == "always":
            return self._ask_policy(episode, self._opening(episode))
        return self._ask_policy(episode, returned([one.entry for one in episode.rounds[-1]]))

    def _ask_policy(
        self, episode: Consultation, text: str
    ) -> tuple[dict[str, dict[str, Any]], dict[str, dict[str, Any]]]:
        if text:
            episode.pieces.append(("environment", text))
        return self.asked(
            {POLICY: text},
            limit=max(1, episode.max_new_tokens - episode.tokens),
            stop=[CALLS[1]] if self._calls_enabled(episode) else [],
            piece="continuation" if episode.own else "message",
        )

    def _ask_experts(
        self, episode: Consultation
    ) -> tuple[dict[str, dict[str, Any]], dict[str, dict[str, Any]]]:
        prompts = {
            self._expert[one.call.expert_id]: lone_prompt(one.query, self.settings.prompt_style)
            for one in episode.asking
        }
        limit = self.settings.expert_max_new_tokens
        return self.asked(prompts, limit=limit, stop=(), piece="fresh")

    def _ended(self, episode: Consultation) -> Any:
        observations = {agent: {"text": "", "active": 0} for agent in self.agents}
        infos = final_infos(
            episode, self.settings, self.scorer, policy=POLICY, experts=self._expert
        )
        if self.render_mode is not None:
            episode.infos = private(infos)
        # Whoever gave no answer ran out of tokens, or of words.
        truncated = self.agents if infos[POLICY]["answer"] is None else ()
        return self.stepped(observations, infos, done=True, truncated=truncated)
