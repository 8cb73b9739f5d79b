"""A debate: several rounds in which each debater reads the others, then a judge answers.

Train it: ``python train.py --env examples.debate:SPEC``. The last role is the judge.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal

import numpy as np
from annotated_types import Ge

from coterie.datatypes import Problem, Validated
from coterie.envs import Conversation, ConversationEnv, EnvSpec, Fresh, Outcome
from coterie.envs.reasoning import strip_answers


@dataclass(frozen=True)
class DebateSettings(Validated):
    """Settings of a debate; each field is a flag, such as ``--env.rounds 3``."""

    rounds: Annotated[int, Ge(1)] = 2
    """How often every debater speaks."""
    own: float = 0.5
    """Reward of a debater whose own last answer is right."""
    final: float = 1.0
    """Reward of everyone if the judge's answer is right."""
    show_answers: bool = False
    """Let others read stated answers too, not the reasoning alone."""
    train_turns: Literal["all", "last"] = "all"
    """Which of its messages a debater learns from: all, or its last."""
    max_new_tokens: Annotated[int, Ge(1)] = 40
    """Longest message."""


class Debate(ConversationEnv):
    """See the module."""

    title = "debate"
    metadata = {**ConversationEnv.metadata, "name": "debate_v0"}  # noqa: RUF012
    settings_class = DebateSettings
    default_roles = ("alice", "bob", "judge")
    more_roles = True

    def conversation(
        self, problem: Problem, options: Mapping[str, Any], random: np.random.Generator
    ) -> Conversation:
        *debaters, judge = self.possible_agents
        said: dict[str, str] = {}
        for _ in range(self.settings.rounds):
            messages = {
                me: self.question(problem, (text for who, text in said.items() if who != me))
                for me in debaters
            }
            said |= yield messages
        # A random order, so that the judge favours nobody's position.
        speakers = random.permutation(sorted(said))
        verdict = yield {judge: self.question(problem, (said[speaker] for speaker in speakers))}

        right = {
            agent: self.scorer.check(text, problem).correct
            for agent, text in {**said, **verdict}.items()
        }
        final = right.get(judge, False)
        terms = {agent: {"final": self.settings.final * final} for agent in self.possible_agents}
        for me in debaters:
            terms[me]["own"] = self.settings.own * right.get(me, False)
        return Outcome(
            terms,
            measured={agent: {"correct": value} for agent, value in right.items()},
            episode={"final_correct": final, "own_correct": sum(right.get(d, 0) for d in debaters)},
        )

    def question(self, problem: Problem, others: Iterable[str]) -> Fresh:
        """The problem and the others' messages, in words that the tiny team knows."""
        if not self.settings.show_answers:
            others = map(strip_answers, others)
        texts = "".join(f"{text}\n" for text in others if text)
        hint = f"Hint:\n{texts}" if texts else ""
        return Fresh(f"Question: {problem.question}\n{hint}Let's solve this step by step:")


SPEC = EnvSpec(
    name="debate",
    version=0,
    factory="examples.debate:Debate",
    settings=DebateSettings,
    roles=Debate.default_roles,
    defaults={"agents": {"judge": {"model": "tiny:carol"}}},
)
