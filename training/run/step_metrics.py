"""The metrics of a training step, apart from those of the learners."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from coterie.algorithms.batching import by_agent
from coterie.datatypes import Trajectory
from coterie.training.batch import StepBatch
from coterie.training.run.summary import Tally


def rollout_metrics(batch: StepBatch, tokens: int, tally: Tally) -> dict[str, float]:
    """Metrics of a step's sampling; ``rollout/failed`` counts agents that failed, and episodes
    without any row.

    Args:
        batch: of the step.
        tokens: sampled in this step.
        tally: counts the tokens of the whole run.
    """
    played = batch.played
    # An agent has failed in all of its contexts or in none.
    failed_agents = sum(played[indices[0]].status != "ok" for indices in by_agent(played))
    empty = sum(not episode.trajectories for episode in batch.episodes)
    return {
        "rollout/tokens": float(tokens),
        "rollout/tokens_total": float(tally.tokens),
        "rollout/learner_tokens_total": float(tally.learner_tokens),
        "rollout/rounds": float(batch.rounds),
        "rollout/failed": float(failed_agents + empty),
    }


def reward_metrics(rows: Sequence[Trajectory]) -> dict[str, float]:
    """Means by role over the agents that answered: reward, reward terms, measured numbers, and the
    share of agents that a term paid (``paid/ROLE/TERM``), which reveals a term without effect.

    An agent counts once, however many rows its contexts made.
    """
    answered = [row for row in rows if row.status == "ok"]
    by_name: dict[str, list[float]] = defaultdict(list)
    for indices in by_agent(answered):
        # Rows of an agent have equal rewards, unless a penalty on length tells them apart.
        of_agent: dict[str, list[float]] = defaultdict(list)
        for index in indices:
            for name, value in _numbers(answered[index]):
                of_agent[name].append(value)
        for name, values in of_agent.items():
            by_name[name].append(sum(values) / len(values))
    return {name: sum(values) / len(values) for name, values in by_name.items()}


def _numbers(row: Trajectory) -> Iterator[tuple[str, float]]:
    """The numbers of a row by the names of their metrics."""
    yield f"reward/{row.role}", row.reward
    for name, value in row.reward_terms.items():
        yield f"reward/{row.role}/{name}", value
        yield f"paid/{row.role}/{name}", float(value != 0)
    for name, value in row.info.items():
        if isinstance(value, bool | int | float | np.number):
            yield f"measured/{row.role}/{name}", float(value)


def paid_shares(
    lines: Sequence[Mapping[str, Any]],
    roles: Iterable[str],
    weighted: Collection[str] | None = None,
) -> dict[str, dict[str, float]]:
    """Term -> role -> share of its agents that the term paid, averaged over the last tenth of the
    logged steps. Roles whose reward is a single term are left out.

    Args:
        lines: the metrics of each step.
        roles: those that learn.
        weighted: terms that have a weight; None: all terms.
    """
    last = lines[-max(1, len(lines) // 10) :]
    shares: dict[str, dict[str, float]] = {}
    for role in roles:
        prefix = f"paid/{role}/"
        names = {name for line in last for name in line}
        logged = {name.removeprefix(prefix) for name in names if name.startswith(prefix)}
        terms = logged if weighted is None else logged & {*weighted}
        for term in sorted(terms) if len(terms) > 1 else ():
            values = [line[prefix + term] for line in last if prefix + term in line]
            shares.setdefault(term, {})[role] = sum(values) / len(values)
    return shares
