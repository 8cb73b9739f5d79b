"""Training episodes as records of ``episodes.jsonl``, and as transcripts for TensorBoard."""

import re
from collections.abc import Mapping
from html import escape
from types import MappingProxyType
from typing import Any

import numpy as np
import numpy.typing as npt

from coterie.algorithms.batching import by_agent
from coterie.datatypes import Episode, Trajectory
from coterie.envs.contract import as_unicode


def episode_record(
    episode: Episode,
    advantages: Mapping[int, float],
    token_bonus: Mapping[int, npt.NDArray[np.float64]] = MappingProxyType({}),
) -> dict[str, Any]:
    """The record of an episode in ``episodes.jsonl``; it holds no timings, so equal runs have equal
    files.

    Args:
        episode: to record.
        advantages: ``id(trajectory)`` -> advantage, of trajectories that entered a loss.
        token_bonus: ``id(trajectory)`` -> (T,) additions to its advantage, of trajectories that
            were read again.
    """
    return {
        "step": episode.step,
        "problem": episode.problem_id,
        "gold": episode.gold,
        "kind": episode.kind,
        **({} if episode.problem_shown else {"problem_shown": False}),
        "seed": episode.seed,
        "mode": episode.mode,
        "info": dict(episode.info),
        "trajectories": [
            row_record(row, advantages.get(id(row)), token_bonus.get(id(row)))
            for row in episode.trajectories
        ],
    }


def row_record(
    row: Trajectory,
    advantage: float | None,
    bonus_T: npt.NDArray[np.float64] | None = None,
) -> dict[str, Any]:
    """The record of a trajectory in :func:`episode_record`.

    Args:
        row: to record.
        advantage: None: it entered no loss.
        bonus_T: additions to the advantage of each token; None: none.
    """
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
        **({} if row.reread_after is None else {"reread_after": row.reread_after}),
        **({} if row.contrast_after is None else {"contrast_after": row.contrast_after}),
        "turns": [list(span) for span in row.turns],
        **({"untrained": [list(span) for span in row.untrained]} if row.untrained else {}),
        **({"turn_rewards": list(row.turn_rewards)} if row.turn_rewards else {}),
        "finish": list(row.finish),
        # Six decimals are about what float32 holds.
        "logprobs": _by_turn(row, row.logprobs, 6),
        **({} if bonus_T is None else {"token_bonus": _by_turn(row, bonus_T, 4)}),
        "texts": list(row.texts),
        "info": dict(row.info),
    }


def _by_turn(row: Trajectory, value_T: npt.NDArray[Any], decimals: int) -> list[list[float]]:
    """The values of each sampled turn's tokens."""
    turns = (value_T[start:end].astype(np.float64) for start, end in row.turns)
    return [np.round(turn, decimals).tolist() for turn in turns]


def transcript(episode: Episode) -> str:
    """An episode as Markdown for TensorBoard.

    Text of models, servers, problem files and environments is escaped, and is valid Unicode.
    """
    parts = [f"### {_literal(episode.problem_id)}"]
    # Every row of an agent has all of its texts.
    parts += [_agent(episode.trajectories[rows[0]]) for rows in by_agent(episode.trajectories)]
    return as_unicode("\n\n".join(parts))


def _agent(row: Trajectory) -> str:
    terms = ", ".join(f"{_literal(name)} {value:+.2f}" for name, value in row.reward_terms.items())
    text = "\n".join(escape(piece) for piece in row.texts)
    heading = f"**{_literal(row.agent)}** ({_literal(row.status)}) reward {row.reward:+.2f} "
    return f"{heading}[{terms}]\n\n<pre>{text}</pre>"


def _literal(text: str) -> str:
    """``text`` on one line, escaped so that nothing in it is Markdown."""
    return re.sub(r"[^\w ]|_", lambda match: f"&#{ord(match[0])};", " ".join(text.split()))
