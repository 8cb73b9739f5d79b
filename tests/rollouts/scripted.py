"""A small environment, and policies whose answers are known."""

import asyncio
from typing import Any

import numpy as np

from coterie.datatypes import (
    Completion,
    Episode,
    Policy,
    PolicyFailure,
    Problem,
    Prompt,
    Sampling,
    ScoreRequests,
)
from coterie.rollouts import play

SAMPLING = Sampling(max_new_tokens=8)
LIMITS = {"max_new_tokens": 3, "stop": ("!",), "text": "hi"}


class TwoTurns:
    """Agents a_0 and b_0; a_0 answers twice, b_0 in the second turn only.

    a_0 reads [1, 2]; after its answer the environment inserts [9]. b_0 reads [5]. ``first`` and
    ``last`` are in a_0's first and last info.
    """

    def __init__(self, *, rewrite: bool = False, first: Any = LIMITS, **last: Any) -> None:
        self.rewrite, self.first, self.last = rewrite, first, last
        self.agents: list[str] = []
        self.actions: list[dict[str, Any]] = []

    def reset(self, seed: int | None = None, options: dict[str, Any] | None = None) -> Any:
        self.agents = ["a_0", "b_0"]
        self.actions = []
        self.context = np.array([1, 2])
        return self.seen(a=1, b=0), {"a_0": self.first, "b_0": {}}

    def step(self, actions: dict[str, Any]) -> Any:
        self.actions.append(actions)
        if len(self.actions) == 1:
            answer = actions.get("a_0", np.zeros(0, dtype=np.int64))
            head = np.array([7, 7]) if self.rewrite else self.context
            self.context = np.concatenate([head, answer, [9]])
            return self.seen(a=1, b=1), {"a_0": 0.5, "b_0": 0.0}, {}, {}, {"a_0": {}, "b_0": {}}
        done, self.agents = dict.fromkeys(self.agents, True), []
        terms = {"reward_terms": {"x": 1.0, "y": 0.5}, "groups": {"problem": "p"}}
        infos = {"a_0": {**terms, "episode": {"solved": 1}, **self.last}, "b_0": {}}
        return self.seen(a=0, b=0), {"a_0": 1.0, "b_0": 2.0}, done, {}, infos

    def score_requests(self, actions: dict[str, Any]) -> ScoreRequests:
        return ScoreRequests(embeddings=tuple(sorted(actions)))

    def seen(self, a: int, b: int) -> dict[str, Any]:
        return {
            "a_0": {"tokens": self.context, "active": a},
            "b_0": {"tokens": np.array([5]), "active": b},
        }


class Threads:
    """One agent that is shown these contexts in turn, after which it writes 9."""

    def __init__(self, *contexts: list[int], branches: bool, **last: Any) -> None:
        self.contexts, self.branches, self.last = contexts, branches, last

    def reset(self, seed: int | None = None, options: dict[str, Any] | None = None) -> Any:
        self.agents, self.left = ["a_0"], list(self.contexts)
        return self.seen(), {"a_0": {}}

    def step(self, actions: dict[str, Any]) -> Any:
        if not self.left:
            self.agents = []
        return self.seen(), {"a_0": 0.5}, {"a_0": not self.agents}, {}, {"a_0": self.last}

    def seen(self) -> Any:
        tokens = self.left.pop(0) if self.left else []
        return {"a_0": {"tokens": np.array(tokens, dtype=np.int64), "active": 1}}


def answering(*ids: int, log: list[tuple[Prompt, Sampling]] | None = None) -> Policy:
    """Gives ``ids`` with log-probabilities from -1 to -2; ``log`` keeps what it was asked."""

    async def policy(prompt: Prompt, sampling: Sampling) -> Completion:
        if log is not None:
            log.append((prompt, sampling))
        logprobs = np.linspace(-1, -2, len(ids), dtype=np.float32)
        return Completion(np.array(ids), logprobs, "stop", weight_version=4)

    return policy


async def failing(prompt: Prompt, sampling: Sampling) -> Completion:
    raise PolicyFailure("no answer today")


async def sleeping(prompt: Prompt, sampling: Sampling) -> Completion:
    await asyncio.sleep(60)
    raise AssertionError("never reached")


POLICIES = {"a": answering(3, 4), "b": answering(6)}


def run(env: Any, policies: dict[str, Policy] = POLICIES, **more: Any) -> Episode:
    """One episode about 1 + 1."""
    problem = Problem("p1", "1+1", "2")
    usual = {"options": {"problem": problem, "step": 3, "mode": "train"}, "sampling": SAMPLING}
    return asyncio.run(play(env, policies, seed=11, **{**usual, **more}))
