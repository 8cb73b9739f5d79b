"""Evaluation of an environment that brings none: what each role was paid, and what was measured."""

import math
from collections.abc import Iterable
from typing import Any

import numpy as np

from coterie.datatypes import Episode, Trajectory
from coterie.evaluation.evaluation import Row
from coterie.evaluation.per_episode import per_episode


def measure(episode: Episode) -> dict[str, float | None]:
    """By the names of the training log: ``reward/ROLE``, its mean over roles ``reward/team``,
    ``reward/ROLE/TERM`` where there are several terms, ``measured/ROLE/NAME``, and
    ``failed/team``, the share of traces that were asked for and did not come."""
    by_role: dict[str, list[Trajectory]] = {}
    # Each agent once, however many rows its contexts made.
    for row in {row.agent: row for row in episode.trajectories}.values():
        by_role.setdefault(row.role, []).append(row)
    answered = {role: [row for row in rows if row.status == "ok"] for role, rows in by_role.items()}
    rewards = {role: _mean(row.reward for row in rows) for role, rows in answered.items()}
    found = {f"reward/{role}": value for role, value in rewards.items()}
    found["reward/team"] = _mean(value for value in rewards.values() if value is not None)
    for role, rows in answered.items():
        terms = dict.fromkeys(name for row in rows for name in row.reward_terms)
        # One term alone is the reward itself.
        for name in terms if len(terms) > 1 else ():
            values = (row.reward_terms[name] for row in rows if name in row.reward_terms)
            found[f"reward/{role}/{name}"] = _mean(values)
    for role, rows in answered.items():
        for name in dict.fromkeys(name for row in rows for name in row.info):
            values = [row.info[name] for row in rows if _is_number(row.info.get(name))]
            # Who failed is said once, below.
            if values and name != "failed":
                found[f"measured/{role}/{name}"] = _mean(values)
    found["failed/team"] = _mean(row.status != "ok" for row in episode.trajectories)
    return found


def line(metric: str) -> Row:
    """``reward/alice/final`` as ``Reward alice: final``."""
    kind, role, *name = metric.split("/", 2)
    better = {"reward": "higher", "failed": "lower"}.get(kind, "neither")
    if kind == "measured":
        return Row(f"{name[0]} {role}", metric, better)
    return Row(": ".join([f"{kind.capitalize()} {role}", *name]), metric, better)


def _is_number(value: Any) -> bool:
    return isinstance(value, bool | int | float | np.number | np.bool_) and math.isfinite(value)


def _mean(values: Iterable[float]) -> float | None:
    found = [float(value) for value in values]
    return sum(found) / len(found) if found else None


EVALUATION = per_episode(measure, row=line)
