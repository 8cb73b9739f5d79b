"""Consultation: a policy may ask experts, whose help fades during training.

| | |
|---|---|
| Creation | ``coterie.make("eapo-consultation")``; PettingZoo's id is ``eapo-consultation-v0`` |
| Actions | text; tokens in the token view |
| Parallel API | yes |
| Agents | ``policy_0``, ``expert_0 .. expert_{K-1}``; with lone traces ``policy_1 ..`` |
| Action space | ``TextSpace``; ``TokenSpace`` in the token view |
| Observation space | ``Dict(text: TextSpace, active: Discrete(2))`` |

An episode is one conversation (EAPO, arXiv:2509.23730, section 2). The policy thinks, and either
answers or calls up to K experts at once; each expert sees only its own query. A coin for each
reply, whose acceptance probability falls with the training step
(:func:`coterie.envs.eapo_consultation.fading.acceptance`), decides whether the policy's context
gets the reply. G replicas of a problem are compared with each other.

Modes (``options["mode"]``): ``train``; ``eval``, without experts and with a prompt that does not
mention them, where calls are ordinary text; ``assisted``, evaluation with experts whose replies are
always accepted; ``workflow``, where all experts get the question beforehand and the policy reads
their whole replies. Outside of training the reward is correctness.

Observation: for the policy its prompt, then the experts' replies as continuations of its turn; for
an expert its query.

The policy gets its reward at the end: its answer, and a penalty on consulting. Experts are frozen:
they earn 0 and carry no loss. An expert without an entry in ``actions``, or with an empty one, is
unavailable to the policy.
"""

from collections.abc import Collection, Generator, Mapping
from functools import partial
from typing import Any

import numpy as np

from coterie.datatypes import Problem, ScoreRequests, UserError, derive_seed
from coterie.envs.conversation import ConversationEnv
from coterie.envs.eapo_consultation.fading import acceptance, turn_budget
from coterie.envs.eapo_consultation.lone import with_lone
from coterie.envs.eapo_consultation.messages import (
    ExpertCall,
    Move,
    ReturnEntry,
    as_result,
    move_of,
    parse_calls,
    write_returns,
)
from coterie.envs.eapo_consultation.outcome import Consultation, Dispatch, outcome_of
from coterie.envs.eapo_consultation.panel import training_prompt
from coterie.envs.eapo_consultation.settings import (
    Consult,
    EapoConsultationSettings,
    fading_of,
)
from coterie.envs.problem_env import metadata_of
from coterie.envs.prompts import lone_prompt
from coterie.envs.settings import token_limit
from coterie.envs.turns import Answers, Ask, Conversation, Turn
from coterie.rewards.consultation import CALLS, graded_part

POLICY = "policy_0"
# Ignored calls inside thoughts after which calls are switched off.
_MOST_IGNORED = 8
# Modes that override ``EapoConsultationSettings.consult``.
_CONSULT: dict[str, Consult] = {"eval": "never", "assisted": "free", "workflow": "always"}

Returned = Generator[Turn, Answers, str]
"""The part of a conversation from a call to the text that the policy reads."""


class EapoConsultationEnv(ConversationEnv):
    """The text environment; ``coterie.make`` wraps it in tokens."""

    title = "eapo-consultation"
    metadata = metadata_of(
        "eapo_consultation_v0", "problem", "problem+role", default_group="problem+role"
    )
    settings: EapoConsultationSettings
    settings_class = EapoConsultationSettings
    default_roles = ("policy", "expert")
    modes = ("train", "eval", "assisted", "workflow")

    def check_roles(self) -> None:
        if set(self.roles) != {"policy", "expert"}:
            raise UserError(
                f"eapo-consultation: the roles are policy and expert, not {', '.join(self.roles)}."
            )

    def places(self) -> Mapping[str, int]:
        return {"policy": 1 + self.settings.lone, "expert": self.settings.experts}

    def replicas(self) -> int:
        return self.settings.group_size

    def conversation(
        self, problem: Problem, options: Mapping[str, Any], random: np.random.Generator
    ) -> Conversation:
        """Play one of the G conversations about a problem (EAPO, arXiv:2509.23730, section 2).

        Options: ``mode``, ``step`` (default 1, counted from 1), ``replica`` (default 0; replicas
        of a seed differ in their coins).
        """
        settings, mode = self.settings, options.get("mode", "train")
        training = mode == "train"
        step = self.number_of(options, "step", 1)
        turns = settings.budget
        if training:
            turns = turn_budget(
                step, first=turns, last=settings.turns_end, anneal=settings.anneal_steps
            )
        episode = Consultation(
            mode=mode,
            step=step,
            replica=self.number_of(options, "replica", 0),
            consult=_CONSULT.get(mode, settings.consult),
            acceptance=acceptance(fading_of(settings), step) if training else 1.0,
            turns_allowed=turns,
            max_new_tokens=token_limit(settings, training=training),
        )

        # Lone traces are written during the policy's first turn.
        others = self.agents_of("policy")[1:]
        lone: dict[str, Ask] = {}
        if training:
            prompt = lone_prompt(problem.question, settings.prompt_style, problem.kind)
            lone = dict.fromkeys(others, Ask(prompt, "message", episode.max_new_tokens, []))
        written: dict[str, str] = {}

        # The policy gets the question; in a workflow, with every expert's reply to it.
        text, piece = self._opening(problem, episode.consult), "message"
        if episode.consult == "always":
            calls = [ExpertCall(i + 1, problem.question) for i in range(settings.experts)]
            text += yield from self._consult(episode, problem, calls)
        while True:
            episode.show(text)
            may_call = (
                episode.consult == "free"
                and not episode.exhausted
                and episode.ignored < _MOST_IGNORED
                and episode.tokens < episode.max_new_tokens
            )
            left = max(1, episode.max_new_tokens - episode.tokens)
            stop = [CALLS[1]] if may_call else []
            ask = Ask(text, piece, left, stop, continues=may_call)
            scores = partial(self._needed, episode, problem, may_call, tuple(lone))
            answers = yield Turn({POLICY: ask, **lone}, scores)
            written |= {agent: answers[agent] for agent in lone if agent in answers}
            lone = {}
            if POLICY not in answers:
                episode.failed = True
                break
            move = self._move(episode, answers[POLICY], may_call)
            episode.record(move)

            if move.kind == "answer":
                break
            piece = "continuation"
            if move.kind == "call":
                text = yield from self._answer_call(episode, problem, move.payload)
            else:
                text = ""
                episode.ignored += 1

        experts = dict(enumerate(self.agents_of("expert"), 1))
        outcome = outcome_of(episode, problem, settings, self.scorer, POLICY, experts)
        if not others:
            return outcome
        meter = self.meters["policy"]
        return with_lone(outcome, others, written, episode, problem, settings, self.scorer, meter)

    def _opening(self, problem: Problem, consult: Consult) -> str:
        settings, question = self.settings, problem.question
        if consult != "free":
            return lone_prompt(question, settings.prompt_style, problem.kind)
        return training_prompt(
            question,
            settings.prompt_style,
            kind=problem.kind,
            experts=settings.experts,
            at_once=settings.parallel,
            budget=settings.budget,
        )

    def _needed(
        self,
        episode: Consultation,
        problem: Problem,
        may_call: bool,
        lone: Collection[str],
        answers: Answers,
    ) -> ScoreRequests:
        """The scores that these answers of the policy and of ``lone`` agents need."""
        text = answers.get(POLICY, "")
        written, results = [answers[agent] for agent in lone if agent in answers], list[str]()
        if POLICY not in answers or self._move(episode, text, may_call).kind == "answer":
            written.append(episode.own + text)
            results = [dispatch.result for dispatch in episode.dispatched]
        checks = [*results, *(graded_part(own, problem.kind) for own in written)]
        return ScoreRequests(tuple((check, problem) for check in checks if check))

    def _move(self, episode: Consultation, text: str, may_call: bool) -> Move:
        """Parse the policy's turn. A call that spends the last token leaves no room for a reply, so
        it is an answer."""
        tokens = self.meters["policy"].count(text)
        may_call = may_call and episode.tokens + tokens < episode.max_new_tokens
        return move_of(text, tokens, thinking=episode.thinking, may_call=may_call)

    def _answer_call(self, episode: Consultation, problem: Problem, payload: str) -> Returned:
        """Pass a block of calls to the experts, within the budget."""
        settings, allowed = self.settings, episode.turns_allowed
        parsed = parse_calls(payload, settings.experts, settings.parallel)
        error, calls = (parsed, []) if isinstance(parsed, str) else ("", parsed)
        if not error:
            episode.answered_calls += 1
        # A malformed block costs as much as one call.
        size, left = 1, allowed - episode.rounds_used
        if settings.budget_unit == "calls":
            size, left = max(1, len(calls)), allowed - episode.calls_used
        if left < 1 or episode.rounds_used >= allowed:
            episode.exhausted = True
            return write_returns([ReturnEntry("BUDGET_EXHAUSTED", "no consultations are left")])
        if size > left:
            # The error costs a round, so that the episode ends, and no call: a smaller block may
            # follow.
            error, size = f"{size} are asked and {left} can still be asked", 0
        episode.rounds_used += 1
        episode.calls_used += size
        if error:
            episode.errors += 1
            return write_returns([ReturnEntry("ERROR", error)])
        return (yield from self._consult(episode, problem, calls))

    def _consult(
        self, episode: Consultation, problem: Problem, calls: list[ExpertCall]
    ) -> Returned:
        """Ask the experts of a block of calls; a coin for each reply decides what is returned."""
        settings, number = self.settings, len(episode.rounds)
        replica = None if settings.coin == "group" else episode.replica
        block: list[Dispatch] = []
        for call in calls:
            u = coin(self.episode_seed, replica, number, call.expert_id)
            query = self._query(problem, call, number)
            block.append(Dispatch(call, query, is_accepted(u, episode.acceptance)))
        episode.rounds.append(block)
        dispatched = {
            f"expert_{dispatch.call.expert_id - 1}": dispatch
            for dispatch in block
            if dispatch.accepted or not settings.draw_before_dispatch
        }
        if dispatched:
            style, longest = settings.prompt_style, settings.expert_max_new_tokens
            replies = yield Turn(
                {
                    agent: Ask(lone_prompt(dispatch.query, style), "fresh", longest, ())
                    for agent, dispatch in dispatched.items()
                },
                scores=lambda answers: ScoreRequests(),
            )
            meter = self.meters["policy"]
            for agent, dispatch in dispatched.items():
                result = as_result(
                    replies.get(agent, ""),
                    meter,
                    # The paper's offline workflow passes whole solutions.
                    limit=None if episode.mode == "workflow" else settings.reply_tokens,
                    thinking_tokens=settings.reply_thinking_tokens,
                )
                dispatch.replied = bool(result)
                dispatch.result = result if dispatch.accepted else ""
                episode.expert_tokens += meter.count(dispatch.result) if dispatch.result else 0
        return write_returns([dispatch.entry for dispatch in block])

    def _query(self, problem: Problem, call: ExpertCall, number: int) -> str:
        """The query that an expert gets. With shuffled queries it is another problem's question."""
        if self.settings.queries == "own":
            return call.query
        key = ("shuffled", self.episode_seed, number, call.expert_id)
        drawn = (self.problem_of(derive_seed(*key, k), {}).question for k in range(8))
        return next((other for other in drawn if other != problem.question), problem.question)


def coin(seed: int, replica: int | None, round_: int, expert_id: int) -> float:
    """Return the draw u in (0, 1] for one reply; with ``replica`` None all replicas share it."""
    number = -1 if replica is None else replica
    return (derive_seed("eapo-consultation", "coin", seed, number, round_, expert_id) + 1) / 2**63


def is_accepted(u: float, probability: float) -> bool:
    """Whether the draw accepts the reply: never with probability 0, always with 1."""
    return u <= probability
