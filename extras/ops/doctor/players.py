"""Check that all roles played by a server or a pool answer."""

import asyncio
import time
from collections.abc import Mapping

import numpy as np

from coterie.agents.team.players import player_counters
from coterie.agents.team.settings import AgentSettings
from coterie.agents.team.team import Team
from coterie.datatypes import Policy, PolicyFailure, Problem, Prompt, Sampling
from coterie.experts import ExpertPool
from coterie.experts.naming import POOL, SERVER
from coterie.extras.ops.doctor.finding import Finding, judge

QUESTION = Problem("doctor", "7 + 8 - 3 =", "12", "number")
_CHECK = "expert"
# The doctor waits less long than a run may.
_PATIENCE_S = 30.0


def asked_experts(agents: Mapping[str, AgentSettings]) -> list[str]:
    """Roles played by a server or a pool."""
    return [role for role, agent in agents.items() if agent.model.startswith((SERVER, POOL))]


async def check_expert(
    role: str, team: Team, sampling: Sampling, *, deadline_s: float | None
) -> list[Finding]:
    """Ask every expert of a role one short question.

    Args:
        role: a role of :func:`asked_experts`.
        team: the team with the role's policy.
        sampling: the run's sampling settings.
        deadline_s: time limit of a call in seconds; None: the doctor's default.
    """
    policy = team.policies[role]
    seats: Mapping[str, Policy] = policy.experts if isinstance(policy, ExpertPool) else {"": policy}
    tokens = np.asarray(team.codecs[role].open(QUESTION.question), np.int64)
    findings = []
    for seat, expert in seats.items():
        name = f"{role}|{seat}" if seat else role
        prompt = Prompt(tokens, QUESTION.question, f"{role}_{seat or 0}", 0, QUESTION)
        start = time.perf_counter()
        try:
            async with asyncio.timeout(deadline_s or _PATIENCE_S):
                answer = await expert(prompt, sampling)
            said, failed = f"{len(answer.tokens)} tokens", False
        except PolicyFailure as failure:
            said, failed = f"no answer: {failure}", True
        except TimeoutError:
            said, failed = f"no answer within {deadline_s or _PATIENCE_S:g} s", True
        findings.append(
            judge(
                _CHECK,
                name,
                f"{said}, {time.perf_counter() - start:.1f} s",
                wrong=failed,
                way_out="start the server, and compare its address, model and api with "
                f"--agents.{role}.model; docs/experts.md says what each failure means",
            )
        )
    return findings


def check_calls(role: str, team: Team) -> Finding:
    """Count the failed calls during the episodes, by kind."""
    counted = player_counters({role: team.policies[role]})
    failed = {
        name.removeprefix(f"player/{role}/"): int(n)
        for name, n in counted.items()
        if "failed/" in name and n
    }
    calls = int(sum(n for name, n in counted.items() if name.endswith("/calls")))
    measured = f"{calls} calls, none failed"
    if failed:
        measured = f"{calls} calls; " + ", ".join(f"{name}: {n}" for name, n in failed.items())
    return judge(
        "expert's calls",
        role,
        measured,
        wrong=bool(failed),
        way_out="docs/experts.md lists the kinds of failure; a run counts them and goes on",
    )
