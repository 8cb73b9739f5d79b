"""Episodes as JSON records and as transcripts."""

import re
from collections.abc import Iterable, Mapping
from html import escape
from typing import Any

import numpy as np

from envs.plaindata import as_unicode
from vocabulary import Episode, Trajectory


def episode_record(episode: Episode, advantages: Mapping[int, float]) -> dict[str, Any]:
    """One line of episodes.jsonl: everything that was seen, sampled and paid, and what was right;
    no timings.

    Args:
        episode: what was played.
        advantages: ``id(trajectory)`` -> advantage, for those that entered a loss.
    """
    return {
        "step": episode.step,
        "problem": episode.problem_id,
        "gold": episode.gold,
        "kind": episode.kind,
        "seed": episode.seed,
        "mode": episode.mode,
        "info": dict(episode.info),
        "trajectories": [row_record(row, advantages.get(id(row))) for row in episode.trajectories],
    }


def row_record(row: Trajectory, advantage: float | None) -> dict[str, Any]:
    """One trajectory of :func:`episode_record`."""
    return {
        "agent": row.agent,
        "status": row.status,
        "reward": row.reward,
        "reward_terms": dict(row.reward_terms),
        "advantage": advantage,
        "loss_weight": row.loss_weight,
        "groups": dict(row.groups),
        "weight_version": row.weight_version,
        "tokens": row.tokens,
        "learned_after": row.learned_after,
        "turns": [list(span) for span in row.turns],
        "finish": list(row.finish),
        # Six decimals say more than float32 holds for the logs' readers.
        "logprobs": [
            np.round(row.logprobs[start:end].astype(np.float64), 6).tolist()
            for start, end in row.turns
        ],
        "texts": list(row.texts),
        "info": dict(row.info),
    }


def transcript(episode: Episode) -> str:
    """An episode as Markdown for TensorBoard. Whatever was written by models, servers, problem
    files and environments is shown letter by letter, and is Unicode."""
    parts = [f"### {_literal(episode.problem_id)}"]
    parts += [_row(row) for row in episode.trajectories]
    return as_unicode("\n\n".join(parts))


def _row(row: Trajectory) -> str:
    terms = ", ".join(f"{_literal(name)} {value:+.2f}" for name, value in row.reward_terms.items())
    text = "\n".join(escape(piece) for piece in row.texts)
    heading = f"**{_literal(row.agent)}** ({_literal(row.status)}) reward {row.reward:+.2f} "
    return f"{heading}[{terms}]\n\n<pre>{text}</pre>"


def _literal(text: str) -> str:
    """One line in which nothing is Markdown: no link, no image, no heading."""
    return re.sub(r"[^\w ]|_", lambda found: f"&#{ord(found[0])};", " ".join(text.split()))


def reward_metrics(rows: Iterable[Trajectory]) -> dict[str, float]:
    """Mean reward and mean of each term, by role, over the rows that answered."""
    values: dict[str, list[float]] = {}
    for row in rows:
        if row.status != "ok":
            continue
        values.setdefault(f"reward/{row.role}", []).append(row.reward)
        for name, value in row.reward_terms.items():
            values.setdefault(f"reward/{row.role}/{name}", []).append(value)
        for name, value in row.info.items():
            if isinstance(value, bool | int | float | np.number):
                values.setdefault(f"measured/{row.role}/{name}", []).append(float(value))
    return {name: sum(items) / len(items) for name, items in values.items()}
