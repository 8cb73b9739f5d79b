"""Check that every expert of a server or a pool answers."""

import asyncio
import time
from collections.abc import Mapping

import numpy as np

from coterie.agents.team.settings import AgentSettings
from coterie.agents.team.team import Team
from coterie.datatypes import Policy, PolicyFailure, Problem, Prompt, Sampling
from coterie.experts import ExpertPool
from coterie.experts.naming import POOL, SERVER
from coterie.experts.pool import last_words
from coterie.extras.ops.doctor.finding import Finding, judge

_QUESTION = Problem("doctor", "7 + 8 - 3 =", "12", "number")
_PATIENCE_S = 30.0
"""Limit of a call where the run has none."""


def is_served(agent: AgentSettings) -> bool:
    """Whether a server or a pool plays the role."""
    return agent.model.startswith((SERVER, POOL))


async def check_expert(
    role: str, team: Team, sampling: Sampling, *, deadline_s: float | None
) -> list[Finding]:
    """Ask every expert of a role one short question. ``deadline_s`` limits the call, in seconds;
    None: 30."""
    limit_s = deadline_s or _PATIENCE_S
    policy = team.policies[role]
    seats: Mapping[str, Policy] = policy.experts if isinstance(policy, ExpertPool) else {"": policy}
    tokens = np.asarray(team.codecs[role].open(_QUESTION.question), np.int64)
    findings = []
    for seat, expert in seats.items():
        name = f"{role}|{seat}" if seat else role
        prompt = Prompt(tokens, _QUESTION.question, f"{role}_{seat or 0}", 0, _QUESTION)
        start = time.perf_counter()
        try:
            async with asyncio.timeout(limit_s):
                answer = await expert(prompt, sampling)
            said, failed = f"{len(answer.tokens)} tokens", False
        except PolicyFailure as failure:
            said, failed = f"no answer: {failure}", True
        except TimeoutError:
            said, failed = f"no answer within {limit_s:g} s", True
        if failed and (words := last_words(expert)):
            said += f" (it said {words})"
        findings.append(
            judge(
                "expert",
                name,
                f"{said}, {time.perf_counter() - start:.1f} s",
                wrong=failed,
                way_out="start the server, and compare its address, model and api with "
                f"--agents.{role}.model; docs/experts.md says what each failure means",
            )
        )
    return findings
