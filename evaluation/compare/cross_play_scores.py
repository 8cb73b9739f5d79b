"""Scores of pairings and of competitors, from stored responses; nothing is sampled."""

# S seats, Q questions, N samples of each, K competitors, R resamples

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from rich.table import Table

from coterie.datatypes import UserError, role_of
from coterie.evaluation.compare.jobs import Job
from coterie.evaluation.compare.policies import NamedTeam, Prices, team_of
from coterie.evaluation.compare.responses import Responses, pool, score_team
from coterie.evaluation.evaluation import Resampled, difference
from coterie.evaluation.metrics.intervals import mean_intervals, resampled_means
from coterie.evaluation.metrics.means import Floats, as_floats, mean_at_n, mean_present
from coterie.evaluation.metrics.strength import bradley_terry
from coterie.evaluation.table import (
    figure_cell,
    figure_with_interval,
    make_table,
    make_tables,
    short_label,
)

_POINTS = {"win": 1.0, "draw": 0.5, "loss": 0.0}


@dataclass(frozen=True)
class Seats:
    """The seats that competitors exchange: roles, or the agents of a single role."""

    names: tuple[str, ...]
    fixed: Mapping[str, str]
    """Role -> the policy that plays it in every pairing."""
    role: str = ""
    """The role whose agents are the seats; empty if the seats are roles."""
    game: bool = False
    """Whether each seat gets points, rather than the team its reward."""

    def of(self, agent: str) -> int | None:
        """The index of an agent's seat; None if it has no seat."""
        name = agent if self.role else role_of(agent)
        return self.names.index(name) if name in self.names else None

    def means(self, values: Mapping[str, float]) -> Floats:
        """(S,) mean value of the agents in each seat; NaN for a seat without values."""
        values_by_seat: list[list[float]] = [[] for _ in self.names]
        for agent, value in values.items():
            if (seat := self.of(agent)) is not None:
                values_by_seat[seat].append(float(value))
        return np.array([np.mean(values) if values else np.nan for values in values_by_seat])

    def lineup(self, players: Sequence[NamedTeam], team: NamedTeam) -> dict[str, Any]:
        """Role -> its policies, with ``players`` in the order of the seats."""
        lineup: dict[str, Any] = team.lineup(tuple(self.fixed))
        if self.role:
            # Numbers may start anywhere: agent number i takes policy i modulo the number of agents.
            order = [int(name.rpartition("_")[2]) % len(players) for name in self.names]
            seated = [players[order.index(i)].player(self.role) for i in range(len(order))]
            return {**lineup, self.role: tuple(seated)}
        return {**lineup, **{r: (player.player(r),) for r, player in zip(self.names, players)}}


@dataclass(frozen=True)
class Pairing:
    """One pairing."""

    names: tuple[str, ...]
    """Competitors in the order of the seats."""
    responses: Responses
    """Responses with the score of the pairing."""
    points_SQN: Floats
    """Points of each seat; NaN outside games."""
    earned_SQN: Floats
    """Rewards of each seat; in a general-sum game they carry more information than points."""


def points_of(record: Mapping[str, Any], seats: Seats) -> Floats:
    """(S,) points of each seat, from the game's outcome or, without one, from the rewards.

    Raises:
        UserError: an outcome other than win, draw or loss.
    """
    outcome, earned = record["outcome"], record["earned"]
    if wrong := set(outcome.values()) - set(_POINTS):
        raise UserError(f"an outcome is {wrong.pop()!r}; it must be win, draw or loss")
    points = seats.means({agent: _POINTS[name] for agent, name in outcome.items()} or earned)
    if not outcome:
        best = points.max()
        won = points == best
        points = np.where(won, 0.5 if won.sum() > 1 else 1.0, 0.0)
    elif len(points) == 2 and np.isnan(points).any():
        # The game ended before the other player moved.
        points = np.where(np.isnan(points), 1 - np.nansum(points), points)
    return points


def pairing_of(names: tuple[str, ...], jobs: Sequence[Job], seats: Seats) -> Pairing:
    """The results of one pairing, whose competitors are in the order of the seats, from a job for
    each set of questions."""

    def score_of(record: Mapping[str, Any]) -> float:
        if seats.game:
            return float(points_of(record, seats)[0])
        return score_team(record, jobs[0].lineup.role, jobs[0].title)

    responses = pool([job.responses(score=score_of) for job in jobs])
    points = np.full((len(seats.names), *responses.correct_QN.shape), np.nan)
    earned = points.copy()
    for q, row in enumerate(responses.records):
        for n, record in enumerate(row):
            if seats.game and record is not None:
                points[:, q, n] = points_of(record, seats)
                earned[:, q, n] = seats.means(record["earned"])
    return Pairing(names, responses, points, earned)


def score(
    suite: str,
    seats: Seats,
    played: Sequence[Pairing],
    prices: Prices,
    settings: Any,
) -> tuple[dict[str, Any], list[Table]]:
    """(JSON data, tables) of all pairings of one suite; ``settings`` is a ``SuiteComparison``."""
    drawn = {"resamples": settings.resamples, "seed": settings.seed}
    cells = mean_intervals(
        np.stack([mean_at_n(pairing.responses.correct_QN) for pairing in played], axis=1), **drawn
    )
    names = list(dict.fromkeys(name for pairing in played for name in pairing.names))
    columns = {
        (name, what): column_Q
        for name in names
        for what, column_Q in (_game(name, played) if seats.game else _team(name, played)).items()
    }
    intervals = dict(
        zip(columns, mean_intervals(np.stack(list(columns.values()), axis=1), **drawn))
    )
    strength = dict(zip(names, strengths(names, played, **drawn))) if seats.game else {}
    by_name: dict[str, dict[str, Any]] = {}
    for name in names:
        metrics = {what: intervals[name, what] for owner, what in columns if owner == name}
        metrics |= _costs_of_competitor(name, played, prices)
        if seats.game:
            estimate = strength[name]
            metrics |= {"strength": estimate, "elo": estimate.value * 400 / np.log(10)}
        else:
            metrics["difference"] = difference(metrics["self"], metrics["others"])
        by_name[name] = metrics
    content = {
        "seats": list(seats.names),
        "game": seats.game,
        "pairings": {
            " + ".join(pairing.names): {
                "score": cell,
                **(
                    {
                        "points": dict(zip(seats.names, map(mean_present, pairing.points_SQN))),
                        "earned": dict(zip(seats.names, map(mean_present, pairing.earned_SQN))),
                    }
                    if seats.game
                    else {}
                ),
                **_costs(pairing.responses.used_QN2.items(), 1, prices),
                "seconds": float(mean_present(pairing.responses.seconds_QN)),
            }
            for pairing, cell in zip(played, cells)
        },
        "competitors": by_name,
    }
    questions = len(played[0].responses.correct_QN)
    title = f"{suite}: {questions} questions, {settings.samples} samples of each pairing"
    by_pairing = {pairing.names: cell for pairing, cell in zip(played, cells)}
    matrix = make_tables(
        f"{title}; {meaning(seats)}",
        f"{seats.names[0]} by",
        list(dict.fromkeys(pairing.names[1:] for pairing in played)),
        names,
        lambda name, others: figure_with_interval(by_pairing[name, *others]),
        wide=3,
    )
    return content, [*matrix, _summary(by_name, seats.game, bool(prices))]


def _summary(by_name: Mapping[str, Mapping[str, Any]], game: bool, priced: bool) -> Table:
    """A table with one line per competitor."""
    # Sign of each figure; None: no interval, as 80 columns fit two. results.json has all of them.
    shown: dict[str, str | None] = {"self": "", "others": "", "difference": "+"}
    if game:
        shown = {"win": "", "draw": None, "loss": None, "earned": None, "strength": "+"}

    def cells(metrics: Mapping[str, Any]) -> list[str]:
        return [
            *(
                figure_cell(metrics[what].value)
                if sign is None
                else figure_with_interval(metrics[what], sign)
                for what, sign in shown.items()
            ),
            f"{metrics['tokens']:.0f}",
            *([f"{metrics['money']:.3g}"] if priced else []),
        ]

    title = "against others, every seat alike" if game else "in all roles, and with others"
    lines = [(short_label(name), cells(metrics)) for name, metrics in by_name.items()]
    return make_table(title, "", [*shown, "tokens", *["/1k"] * priced], lines)


def meaning(seats: Seats) -> str:
    """Say what a cell of the matrix counts."""
    points = f"points of {seats.names[0]}: win 1, draw .5, loss 0"
    return points if seats.game else "what the team scores"


def _team(name: str, played: Sequence[Pairing]) -> dict[str, Floats]:
    """(Q,) scores of a competitor in all seats, and with others."""
    score_Q = {
        pairing.names: mean_at_n(pairing.responses.correct_QN)
        for pairing in played
        if name in pairing.names
    }
    all_seats_Q = score_Q.pop((name,) * len(played[0].names))
    nobody = [np.full(len(all_seats_Q), np.nan)]
    return {"self": all_seats_Q, "others": mean_present([*score_Q.values()] or nobody, axis=0)}


def _game(name: str, played: Sequence[Pairing]) -> dict[str, Floats]:
    """(Q,) a competitor's rates of win, draw and loss against others over all seats, and its mean
    reward."""
    nothing = np.full_like(played[0].responses.correct_QN, np.nan)
    seats = [
        both
        for pairing in played
        if len(set(pairing.names)) > 1
        for player, *both in zip(pairing.names, pairing.points_SQN, pairing.earned_SQN)
        if player == name
    ] or [[nothing, nothing]]
    points, earned = (np.concatenate(parts, axis=1) for parts in zip(*seats))
    known = np.where(np.isnan(points), np.nan, 1.0)
    rates = {result: mean_at_n(known * (points == value)) for result, value in _POINTS.items()}
    return {**rates, "earned": mean_at_n(earned)}


def strengths(
    names: Sequence[str], played: Sequence[Pairing], *, resamples: int, seed: int
) -> list[Resampled]:
    """Each competitor's Bradley-Terry strength, with questions resampled. Every two seats of a game
    are one comparison. Every pairing is played in every order, so the first move gives no bias."""
    questions = len(played[0].responses.correct_QN)
    wins_QKK = np.zeros((questions, len(names), len(names)))
    for pairing in played:
        for s, first in enumerate(pairing.names):
            for t, second in enumerate(pairing.names):
                if first != second:
                    # A draw counts as half a win; a missing game counts as nothing.
                    lead_QN = pairing.points_SQN[s] - pairing.points_SQN[t]
                    won_QN = np.nan_to_num(np.sign(lead_QN) / 2 + 0.5)
                    wins_QKK[:, names.index(first), names.index(second)] += won_QN.sum(axis=1)
    drawn_RM = resampled_means(wins_QKK.reshape(questions, -1), resamples=resamples, seed=seed)
    strength_K = bradley_terry(wins_QKK.sum(axis=0))
    strength_RK = bradley_terry(questions * drawn_RM.reshape(-1, len(names), len(names)))
    return [Resampled(float(b), own_R, questions) for b, own_R in zip(strength_K, strength_RK.T)]


def _costs_of_competitor(name: str, played: Sequence[Pairing], prices: Prices) -> dict[str, Any]:
    """Cost per seat of a competitor over all its pairings."""
    used = [
        (policy, used_QN2)
        for pairing in played
        for policy, used_QN2 in pairing.responses.used_QN2.items()
        if team_of(policy) == name
    ]
    return _costs(used, sum(pairing.names.count(name) for pairing in played), prices)


def _costs(used: Iterable[tuple[str, Floats]], seats: int, prices: Prices) -> dict[str, Any]:
    """Cost per seat: sampled tokens of one episode, and money for a thousand."""
    means = [(policy, mean_present(used_QN2.reshape(-1, 2), axis=0)) for policy, used_QN2 in used]
    money = sum(float(both @ as_floats(prices[policy])) for policy, both in means if prices)
    return {
        "tokens": sum(float(both[1]) for _, both in means) / seats,
        "money": money / 1000 / seats if prices else None,
    }
