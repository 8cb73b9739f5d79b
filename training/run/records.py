"""Episodes as JSON records and transcripts, metrics of them, and messages about failed steps."""

import math
import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from html import escape
from types import MappingProxyType
from typing import Any

import numpy as np
import numpy.typing as npt

from coterie.algorithms.batching import by_agent
from coterie.algorithms.nonfinite import PATIENCE, NotFinite
from coterie.datatypes import Episode, Trajectory, UserError
from coterie.envs.contract import as_unicode
from coterie.training.batch import StepBatch
from coterie.training.run.directory import RunDirectory
from coterie.training.run.summary import Tally

NOT_FINITE = "not-finite.jsonl"


def episode_record(
    episode: Episode,
    advantages: Mapping[int, float],
    token_bonus: Mapping[int, npt.NDArray[np.float64]] = MappingProxyType({}),
) -> dict[str, Any]:
    """A line of episodes.jsonl: what was shown, sampled and paid, and the right answer; no timings.

    Args:
        episode: to record.
        advantages: ``id(trajectory)`` -> advantage, for those that entered a loss.
        token_bonus: ``id(trajectory)`` -> what was added to its advantage, token by token, where it
            was read again.
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
        bonus_T: what was added to it, token by token; None: nothing.
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
        "turns": [list(span) for span in row.turns],
        **({"untrained": [list(span) for span in row.untrained]} if row.untrained else {}),
        **({"turn_rewards": list(row.turn_rewards)} if row.turn_rewards else {}),
        "finish": list(row.finish),
        # Six decimals say more than float32 holds for the logs' readers.
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
    """An episode as Markdown for TensorBoard. Text of models, servers, problem files and
    environments is escaped, and is valid Unicode."""
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
    return re.sub(r"[^\w ]|_", lambda match: f"&#{ord(match[0])};", " ".join(text.split()))


def rollout_metrics(batch: StepBatch, tokens: int, tally: Tally) -> dict[str, float]:
    """Metrics of a step's sampling; ``tokens``: sampled in this step. ``rollout/failed``: agents
    that failed, and episodes without any row."""
    played = batch.played
    # An agent has failed in all of its contexts or in none.
    failed_agents = sum(played[places[0]].status != "ok" for places in by_agent(played))
    empty = sum(not episode.trajectories for episode in batch.episodes)
    return {
        "rollout/tokens": float(tokens),
        "rollout/tokens_total": float(tally.tokens),
        "rollout/learner_tokens_total": float(tally.learner_tokens),
        "rollout/rounds": float(batch.rounds),
        "rollout/stale": float(batch.stale),
        "rollout/failed": float(failed_agents + empty),
    }


def reward_metrics(rows: Sequence[Trajectory]) -> dict[str, float]:
    """Mean reward, mean of each term and of each number that was measured, by role, over the agents
    that answered, and the share of them that a term paid (``paid/ROLE/TERM``), which shows a term
    that never has an effect. An agent counts once, however many rows its contexts made."""
    answered = [row for row in rows if row.status == "ok"]
    by_name: dict[str, list[float]] = defaultdict(list)
    for places in by_agent(answered):
        # Rows of an agent have equal rewards, unless a penalty on length tells them apart.
        own: dict[str, list[float]] = defaultdict(list)
        for place in places:
            for name, value in _numbers(answered[place]):
                own[name].append(value)
        for name, values in own.items():
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
    """Term -> role -> share of its agents that the term paid, the mean over the last tenth of the
    logged steps; nothing where all of a role's reward is one term.

    Args:
        lines: the metrics of each step.
        roles: those that learn.
        weighted: the terms that have a weight; None: all of them may.
    """
    last = lines[-max(1, len(lines) // 10) :]
    shares: dict[str, dict[str, float]] = {}
    for role in roles:
        prefix = f"paid/{role}/"
        logged = {name.removeprefix(prefix) for line in last for name in line if prefix in name}
        terms = logged if weighted is None else logged & {*weighted}
        for term in sorted(terms) if len(terms) > 1 else ():
            values = [line[prefix + term] for line in last if prefix + term in line]
            shares.setdefault(term, {})[role] = sum(values) / len(values)
    return shares


def troubles(
    rows: Sequence[Trajectory],
    metrics: Mapping[str, float],
    *,
    trained: Collection[str],
    frozen: Collection[str],
) -> dict[str, str]:
    """Role -> a sentence on what keeps it from answering or learning.

    Args:
        rows: all rows of the step.
        metrics: of the learners, by ``learner/ROLE/NAME``.
        trained: roles that learn.
        frozen: all others.
    """
    sentences = {role: f"never answers: {reason}" for role, reason in _mute(rows, frozen).items()}
    for role in trained:
        if not math.isfinite(metrics.get(f"learner/{role}/grad_norm", 0.0)):
            sentences[role] = "did not learn: its gradient is not finite"
    for role, reason in _idle(rows, trained).items():
        sentences[role] = f"has nothing to learn from: {reason}"
    return sentences


def why_no_signal(rows: Sequence[Trajectory], roles: Iterable[str]) -> dict[str, str]:
    """Role -> a sentence on its answers, where the rewards in its groups never differed.

    Args:
        rows: all rows of a step.
        roles: those whose groups had equal rewards since the run began.
    """
    sentences: dict[str, str] = {}
    for role in roles:
        own = [row for row in rows if row.role == role and row.mask.any() and row.texts]
        if own:
            # Of pieces that are given and sampled in turn, the last is its own.
            said = Counter(row.texts[-1] for row in own).most_common(1)[0][0]
            sentences[role] = (
                "has learned nothing so far: no group had different rewards; its most frequent "
                f"answer ends in {said[-60:]!r}. Can it read the prompts? "
                "docs/models.md#the-tiny-team says what the tiny models read"
            )
    return sentences


def not_finite(run: RunDirectory, role: str, step: int, error: NotFinite) -> UserError:
    """The error that ends a run in which a role cannot learn; its cause, where it is a row, is
    stored in ``not-finite.jsonl``."""
    way_out = "start a new run with a lower --learner.lr"
    if error.row is None:
        return UserError(f"{role} cannot learn in step {step}: {error}; {way_out}")
    record = row_record(error.row, error.advantage)
    run.append(NOT_FINITE, [{"step": step, "role": role, "why": str(error), "row": record}])
    return UserError(
        f"{role} has learned nothing in {PATIENCE} consecutive steps, the last one step {step}: "
        f"{error}; that row is in {run.path / NOT_FINITE}; fix its cause, or {way_out}"
    )


def _idle(rows: Sequence[Trajectory], roles: Iterable[str]) -> dict[str, str]:
    """Role without a row to learn from -> the most common reason."""
    reasons: dict[str, str] = {}
    for role in roles:
        own = [row for row in rows if row.role == role]
        if not any(row.trainable for row in own):
            state = _most_common(own) if own else "it was not asked"
            reasons[role] = "its answers are empty" if state == "ok" else state
    return reasons


def _mute(rows: Sequence[Trajectory], roles: Iterable[str]) -> dict[str, str]:
    """Role whose answers all failed -> the most common reason."""
    own = {role: [row for row in rows if row.role == role] for role in roles}
    return {
        role: _most_common(answers)
        for role, answers in own.items()
        if answers and all(row.status != "ok" for row in answers)
    }


def _most_common(rows: Sequence[Trajectory]) -> str:
    return Counter(row.status for row in rows).most_common(1)[0][0]
