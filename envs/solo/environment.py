"""One agent, one problem, one answer: the simplest environment, for evaluation.

| | |
|---|---|
| Creation | ``coterie.make("solo")``, ``pettingzoo.make("parallel", "solo-v0")`` |
| Actions | text; tokens in the token view |
| Parallel API | yes |
| Agents | ``solver_0`` |
| Action space | ``TextSpace``; ``TokenSpace`` in the token view |
| Observation space | ``Dict(text: TextSpace, active: Discrete(2))`` |

Reward: 1 for a right answer; a custom checker may give partial credit.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
from annotated_types import Ge

from coterie.datatypes import Problem, UserError, Validated
from coterie.envs.conversation import ConversationEnv
from coterie.envs.env_spec import never_rereads
from coterie.envs.turns import Conversation, Outcome
from coterie.rewards.grading.answers.confidence import parse_confidence


@dataclass(frozen=True)
class SoloSettings(Validated):
    """The prompt of a single agent."""

    prompt: str = (
        "{question}\n\nPlease reason step by step, and put your final answer within \\boxed{}."
    )
    """The prompt; ``{question}`` stands for the problem."""
    max_new_tokens: Annotated[int, Ge(1)] = 4096
    """Longest answer."""
    eval_answers: Annotated[int, Ge(1)] = 1
    """Answers to each held-out problem in evaluation."""

    def check(self) -> None:
        if "{question}" not in self.prompt:
            raise UserError("solo: prompt must say where the problem goes: write {question} in it")


class SoloEnv(ConversationEnv):
    """The text environment; ``coterie.make`` wraps it in tokens."""

    title = "solo"
    metadata: dict[str, Any] = {**ConversationEnv.metadata, "name": "solo_v0"}  # noqa: RUF012
    settings_class = SoloSettings
    default_roles = ("solver",)
    rereads = staticmethod(never_rereads)

    def conversation(
        self, problem: Problem, options: Mapping[str, Any], random: np.random.Generator
    ) -> Conversation:
        (agent,) = self.possible_agents
        # str.format would fail on the braces of formulas.
        message = self.settings.prompt.replace("{question}", problem.question)
        answers = yield {agent: message}
        if agent not in answers:
            return Outcome({agent: {"correct": 0.0}})
        text = answers[agent]
        verdict = self.scorer.check(text, problem)
        measured = {
            "correct": bool(verdict.correct),
            "stated": verdict.answer is not None,
            "answer": verdict.answer,
            "method": verdict.method,
            "confidence": parse_confidence(text),
        }
        return Outcome({agent: {"correct": verdict.credit}}, {agent: measured})
