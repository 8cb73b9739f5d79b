"""Answers that are known beforehand, and an episode in which they are given."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from coterie.datatypes import Problem
from coterie.envs import settings_of
from coterie.envs.core_teaching import CoreTeachingEnv, CoreTeachingSettings

PROBLEM = Problem(id="q", question="7 + 8 - 3 =", gold="2", kind="number")
COLD = "Question: 7 + 8 - 3 =\nLet's solve this step by step:"
HINTED = "Question: 7 + 8 - 3 =\nHint:\n7 + 8 = 5 - 3 =\nLet's solve this step by step:"


def trace(answer: int | str, work: str = "7 + 8 = 5 - 3 =") -> str:
    return (
        f'<strategy id="1"> {work} <result> {answer} </result> </strategy>'
        f" <final_answer> {answer} </final_answer>"
    )


RIGHT, WRONG = trace(2), trace(3)

CORE: CoreTeachingSettings = settings_of("core-teaching", preset="core-gated")
"""CoRe's two rounds and rewards."""
# Exploration and trace accuracy off: what is left can be added up at a glance.
PLAIN = replace(CORE, hint_probability=1.0, w_explore=(0.0,), lambda_cm=(0.0,), lambda_ta=0.0)

RESCUE = {
    "alice_0": WRONG,
    "alice_1": WRONG,
    "alice_2": RIGHT,
    "bob_0": WRONG,
    "bob_1": RIGHT,
    "bob_2": WRONG,
}


class Played:
    """One finished episode, about 7 + 8 - 3 = unless ``options`` name another problem."""

    def __init__(
        self,
        env: CoreTeachingEnv,
        answers: Mapping[str, str],
        *,
        seed: int = 0,
        **options: Any,
    ) -> None:
        observations, infos = env.reset(seed=seed, options={"problem": PROBLEM, **options})
        self.prompts: dict[str, str] = {}
        self.steps = 0
        self.rounds: list[list[str]] = []
        while env.agents:
            asked = [agent for agent in env.agents if observations[agent]["active"]]
            self.rounds.append(asked)
            self.prompts |= {agent: observations[agent]["text"] for agent in asked}
            actions = {agent: answers[agent] for agent in asked if agent in answers}
            observations, self.rewards, self.terminated, _, infos = env.step(actions)
            self.steps += 1
        self.infos = infos
        self.episode = infos["alice_0"]["episode"]

    def terms(self, name: str) -> dict[str, float]:
        return {agent: info["reward_terms"][name] for agent, info in self.infos.items()}
