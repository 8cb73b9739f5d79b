"""Solver and verifier: one answers, the other accepts or rejects; a rejection allows a new try.

Train it: ``python train.py --env examples.solver_verifier:SPEC``.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
from annotated_types import Ge

from coterie.datatypes import Episode, Problem, Validated
from coterie.envs import Conversation, ConversationEnv, EnvSpec, Outcome
from coterie.evaluation import per_episode

# A verdict in words, or in a digit, which is easier for small models.
_VERDICT = re.compile(r"\b(?:(right|1)|(wrong|0))\b", re.IGNORECASE)


@dataclass(frozen=True)
class SolverVerifierSettings(Validated):
    """Settings of the environment; each field is a flag, such as ``--env.tries 3``."""

    tries: Annotated[int, Ge(1)] = 2
    """How often the solver may answer; it is asked again only after a rejection."""
    max_new_tokens: Annotated[int, Ge(1)] = 40
    """Longest answer."""


class SolverVerifier(ConversationEnv):
    """See the module."""

    title = "solver-verifier"
    metadata = {**ConversationEnv.metadata, "name": "solver_verifier_v0"}  # noqa: RUF012
    settings_class = SolverVerifierSettings
    default_roles = ("solver", "verifier")

    def conversation(
        self, problem: Problem, options: Mapping[str, Any], random: np.random.Generator
    ) -> Conversation:
        solver, verifier = self.possible_agents
        question = f"Question: {problem.question}\n"
        solve = f"{question}Let's solve this step by step:"
        solved, judged, tries = False, [], 0
        while tries < self.settings.tries:
            tries += 1
            message = solve if tries == 1 else f"Wrong. Try again.\n{solve}"
            answers = yield {solver: message}
            if solver not in answers:
                break
            solved = self.scorer.check(answers[solver], problem).correct
            judge = f"{question}Hint:\n{answers[solver]}\nIs it right? Say 1 if so, 0 if not:"
            verdict = verdict_of((yield {verifier: judge}).get(verifier, ""))
            # No verdict (None) is never right.
            judged.append(verdict == solved)
            if verdict is not False:
                break
        return Outcome(
            terms={
                solver: {"correct": float(solved)},
                verifier: {"verdict": sum(judged) / max(1, len(judged))},
            },
            measured={solver: {"tries": tries}},
            episode={"correct": solved, "tries": tries, "judged": judged},
        )


def verdict_of(text: str) -> bool | None:
    """The last verdict in ``text``; None without one."""
    verdicts = _VERDICT.findall(text)
    return bool(verdicts[-1][0]) if verdicts else None


def measure(episode: Episode) -> dict[str, float | None]:
    """Numbers of one episode, whose means the table shows before and after training."""
    judged = episode.info.get("judged")
    return {
        "solver right": episode.info.get("correct"),
        "verdicts right": sum(judged) / len(judged) if judged else None,
        "tries": episode.info.get("tries"),
    }


EVALUATION = per_episode(measure, better={"solver right": "higher", "verdicts right": "higher"})
SPEC = EnvSpec(
    name="solver-verifier",
    version=0,
    factory="examples.solver_verifier:SolverVerifier",
    settings=SolverVerifierSettings,
    roles=SolverVerifier.default_roles,
    evaluation="examples.solver_verifier:EVALUATION",
    defaults={
        "agents": {"solver": {"model": "tiny:alice"}, "verifier": {"model": "tiny:bob"}},
    },
)
