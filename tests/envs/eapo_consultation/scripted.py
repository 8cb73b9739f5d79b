"""Conversations whose turns and replies are known beforehand."""

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from coterie.datatypes import Problem
from coterie.envs.eapo_consultation import EapoConsultationEnv, EapoConsultationSettings
from coterie.envs.presets import settings_of
from coterie.rewards.grading.scorer import AnswerScorer

PROBLEM = Problem(id="q", question="7 + 8 - 3 =", gold="2", kind="number")
# Nobody writes alone.
EAPO: EapoConsultationSettings = settings_of("eapo-consultation", preset="eapo-faded")
LONG = replace(
    EAPO,
    max_new_tokens=4000,
    expert_max_new_tokens=500,
    reply_tokens=500,
    schedule="inv",
    consult_penalty=0.0,
    penalty_start=0,
)
THOUGHT = "<think> hm </think>"
RIGHT = f"{THOUGHT}\nAnswer: 2"


def calls(*asked: tuple[int, str]) -> str:
    entries = [{"expert_id": e, "input_parameters": {"query": q}} for e, q in asked]
    return f"{THOUGHT}<agent_calls>{json.dumps(entries)}</agent_calls>"


class Played:
    """One conversation about 7 + 8 - 3 = between a list of policy turns and experts that answer by
    a function; ``settings`` beside those of :data:`LONG`."""

    def __init__(
        self,
        turns: list[str],
        expert: Callable[[str, str], str | None] = lambda agent, query: f"{agent} says 2",
        *,
        seed: int = 5,
        mode: str = "train",
        step: int = 1,
        replica: int = 0,
        **settings: Any,
    ) -> None:
        self.env = EapoConsultationEnv(replace(LONG, **settings), scorer=AnswerScorer())
        options = {"problem": PROBLEM, "mode": mode, "step": step, "replica": replica}
        observations, infos = self.env.reset(seed=seed, options=options)
        self.shown: list[str] = []
        self.queries: list[dict[str, str]] = []
        self.limits: list[dict[str, Any]] = []
        left = iter(turns)
        while self.env.agents:
            asked = {a: observations[a]["text"] for a in observations if observations[a]["active"]}
            assert asked
            if "policy_0" in asked:
                assert list(asked) == ["policy_0"]
                self.shown.append(asked["policy_0"])
                self.limits.append(infos["policy_0"])
                actions = {"policy_0": next(left)}
            else:
                self.queries.append(asked)
                assert all(infos[agent]["piece"] == "fresh" for agent in asked)
                replies = {agent: expert(agent, query) for agent, query in asked.items()}
                actions = {agent: reply for agent, reply in replies.items() if reply is not None}
            observations, self.rewards, self.terminated, self.truncated, infos = self.env.step(
                actions
            )
        assert next(left, None) is None, "the conversation ended early"
        self.infos = infos
        self.info = infos["policy_0"]

    def returned(self, turn: int) -> Any:
        text = self.shown[turn].strip()
        return json.loads(text.removeprefix("<agent_returns>").removesuffix("</agent_returns>"))
