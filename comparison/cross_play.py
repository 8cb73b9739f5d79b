"""All pairings of competitors over the roles of an environment: who plays well with whom, and in
games who wins and how strong everybody is.
"""

# P pairings, S seats, Q questions, N samples of each, K competitors, R resamples

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

from coterie import envs
from coterie.comparison.output import figure_with_interval, make_table, short_label, write_json
from coterie.comparison.plan import Job, Lineup, Questions, ask_missing, make_job
from coterie.comparison.policies import NamedTeam, Prices
from coterie.comparison.responses import Responses, pool, score_team
from coterie.comparison.settings import Asking
from coterie.comparison.suites import Suite, check_played, settings_of
from coterie.datatypes import UserError
from coterie.envs.contract import role_of
from coterie.evaluation.evaluation import Resampled, difference
from coterie.evaluation.metrics.intervals import mean_intervals, resampled_means
from coterie.evaluation.metrics.means import Floats, as_floats, mean_at_n, mean_present
from coterie.evaluation.metrics.strength import bradley_terry
from coterie.training.plain import to_plain

_POINTS = {"win": 1.0, "draw": 0.5, "loss": 0.0}
_MOST = 400
_WIDE = 4
_CONVENTIONS = {
    "score": "of a team what it earned, or whether its answer is right; of a game the points of "
    "whoever has the first seat: win 1, draw 1/2, loss 0",
    "strength": "Bradley and Terry 1952, log-odds, mean 0; draws are half a win; half a win added "
    "each way to every pair; elo is 400 / ln 10 times as much",
    "intervals": "bootstrap over questions; every pairing plays the same ones",
}


@dataclass(frozen=True)
class Seats:
    """Places that change hands: roles, or where one role alone does, its agents."""

    names: tuple[str, ...]
    fixed: Mapping[str, str]
    """Role -> who plays it throughout."""
    role: str = ""
    """The one role whose agents they are."""

    def of(self, agent: str) -> int | None:
        """The seat of an agent; None if it has none of these."""
        name = agent if self.role else role_of(agent)
        return self.names.index(name) if name in self.names else None

    def lineup(self, players: Sequence[NamedTeam], team: NamedTeam) -> dict[str, Any]:
        """Role -> who plays it where these sit in order."""
        found: dict[str, Any] = team.lineup(tuple(self.fixed))
        if self.role:
            # Agents are numbered from anywhere: whoever plays number i is i modulo their count.
            order = [int(name.rpartition("_")[2]) % len(players) for name in self.names]
            seated = [players[order.index(place)].player(self.role) for place in range(len(order))]
            return {**found, self.role: tuple(seated)}
        return {**found, **{r: (one.player(r),) for r, one in zip(self.names, players)}}


@dataclass(frozen=True)
class Played:
    """One pairing."""

    names: tuple[str, ...]
    """Who has which seat."""
    responses: Responses
    """Scored as the pairing is."""
    points_SQN: Floats
    """In games, seat by seat."""


def cross_play(
    opened: Sequence[tuple[Suite, Sequence[Questions]]],
    teams: Sequence[NamedTeam],
    prices: Prices,
    settings: Any,
    console: Console,
) -> None:
    """Sample what is missing, score it, show and write it.

    Args:
        opened: suites with their questions.
        teams: who changes seats; one called ``team`` plays the roles that do not change hands.
        prices: of everybody, or of nobody.
        settings: a ``SuiteComparison``.

    Raises:
        UserError: one seat alone, or too many pairings.
    """
    fixed = next((one for one in teams if one.name == "team"), NamedTeam("team", {}))
    players = [one for one in teams if one is not fixed]
    todo: dict[str, tuple[Seats, dict[tuple[str, ...], list[Job]]]] = {}
    for suite, sets in opened:
        seats = seats_of(suite, fixed.players)
        pairings = list(product(players, repeat=len(seats.names)))
        if len(pairings) > _MOST:
            raise UserError(
                f"suite {suite.name}: {len(players)} players have {len(pairings)} pairings over "
                f"{', '.join(seats.names)}; name fewer, or who plays some roles with --team"
            )
        todo[suite.name] = (
            seats,
            {
                tuple(one.name for one in some): [
                    _job(suite, questions, seats, some, fixed, settings) for questions in sets
                ]
                for some in pairings
            },
        )
    ask_missing(
        [job for _, some in todo.values() for jobs in some.values() for job in jobs],
        settings,
        console,
    )
    content: dict[str, Any] = {}
    files = []
    for name, (seats, jobs) in todo.items():
        every = [job for some in jobs.values() for job in some]
        games = settings.game or any(r["outcome"] for job in every for r in job.read().values())
        played = [_played(names, some, seats, games, settings) for names, some in jobs.items()]
        content[name], tables = _score(name, seats, played, games, prices, settings)
        for table in tables:
            console.print(table, "")
        from coterie.comparison.pictures import draw_matrix

        cells = {one.names: float(mean_present(one.responses.correct_QN)) for one in played}
        path = settings.out / f"{name}-cross-play.png"
        files.append(draw_matrix(cells, seats.names, path, _meaning(games, seats)))
    content = {"cross-play": content, "conventions": _CONVENTIONS, "config": to_plain(settings)}
    files.insert(0, write_json(settings.out / "results.json", content))
    console.print(f"written: {', '.join(map(str, files))}", soft_wrap=True, markup=False)


def seats_of(suite: Suite, fixed: Mapping[str, str]) -> Seats:
    """What changes hands in a suite.

    Raises:
        UserError: one seat alone.
    """
    env = envs.make(suite.env, settings=settings_of(suite), roles=suite.roles or None)
    agents = list(env.possible_agents)
    env.close()
    roles = [role for role in dict.fromkeys(map(role_of, agents)) if role not in fixed]
    own = [agent for agent in agents if role_of(agent) in roles]
    seats = Seats(tuple(roles), fixed) if len(roles) != 1 else Seats(tuple(own), fixed, roles[0])
    if len(seats.names) < 2:
        raise UserError(
            f"suite {suite.name}: --cross-play needs two seats, and {', '.join(roles) or 'none'} "
            "alone changes hands there; compare with --teams"
        )
    return seats


def _job(
    suite: Suite,
    questions: Questions,
    seats: Seats,
    players: Sequence[NamedTeam],
    fixed: NamedTeam,
    settings: Asking,
) -> Job:
    who = seats.lineup(players, fixed)
    check_played(suite, who, questions.problems[0])
    name = "+".join(one.name for one in players)
    lineup = Lineup(
        name,
        suite.env,
        settings_of(suite),
        suite.mode,
        who,
        suite.role,
        # The same deal and luck in every pairing.
        stream=("cross-play",),
        silent=suite.silent,
        roles=suite.roles,
        team=True,
    )
    folder = settings.out / "completions" / f"{suite.name}-cross-play"
    return make_job(
        lineup, questions, settings, folder, title=f"{suite.name}, {questions.name}: {name}"
    )


def points_of(record: Mapping[str, Any], seats: Seats) -> Floats:
    """(S,) what a game is worth to each seat, by its outcome or else by what was earned.

    Raises:
        UserError: an outcome that is none.
    """
    said, earned = record["outcome"], record["earned"]
    if wrong := set(said.values()) - set(_POINTS):
        raise UserError(f"an outcome is {wrong.pop()!r}; it must be win, draw or loss")
    values: list[list[float]] = [[] for _ in seats.names]
    for agent, value in (said or earned).items():
        if (place := seats.of(agent)) is not None:
            values[place].append(_POINTS[value] if said else float(value))
    found = np.array([float(np.mean(some)) if some else np.nan for some in values])
    if not said:
        best = found.max()
        won = found == best
        found = np.where(won, 0.5 if won.sum() > 1 else 1.0, 0.0)
    elif len(found) == 2 and np.isnan(found).any():
        # It was over before the other one had to move.
        found = np.where(np.isnan(found), 1 - np.nansum(found), found)
    return found


def _played(
    names: tuple[str, ...], jobs: Sequence[Job], seats: Seats, games: bool, settings: Asking
) -> Played:
    def score(record: Mapping[str, Any]) -> float:
        if games:
            return float(points_of(record, seats)[0])
        return score_team(record, jobs[0].lineup.role, jobs[0].title)

    own = pool([job.responses(score=score) for job in jobs])
    points = np.full((len(seats.names), *own.correct_QN.shape), np.nan)
    for q, row in enumerate(own.records):
        for n, record in enumerate(row):
            if games and record is not None:
                points[:, q, n] = points_of(record, seats)
    return Played(names, own, points)


def _score(
    suite: str,
    seats: Seats,
    played: Sequence[Played],
    games: bool,
    prices: Prices,
    settings: Any,
) -> tuple[dict[str, Any], list[Table]]:
    """(JSON data, tables)."""
    drawn = {"resamples": settings.resamples, "seed": settings.seed}
    cells = mean_intervals(
        np.stack([mean_at_n(one.responses.correct_QN) for one in played], axis=1), **drawn
    )
    names = list(dict.fromkeys(name for one in played for name in one.names))
    columns = {
        (name, what): column_Q
        for name in names
        for what, column_Q in (_game(name, played) if games else _team(name, played)).items()
    }
    found = dict(zip(columns, mean_intervals(np.stack(list(columns.values()), axis=1), **drawn)))
    by_name: dict[str, dict[str, Any]] = {
        name: {what: found[name, what] for one, what in columns if one == name} for name in names
    }
    strength = strengths(names, played, **drawn) if games else []
    for name, own in by_name.items():
        own |= _costs(name, played, prices)
        if not games:
            own["difference"] = difference(own["self"], own["others"])
    for name, one in zip(names, strength):
        by_name[name] |= {"strength": one, "elo": one.value * 400 / np.log(10)}
    questions = len(played[0].responses.correct_QN)
    title = f"{suite}: {questions} questions, {settings.samples} samples of each pairing"
    rest = list(dict.fromkeys(one.names[1:] for one in played))
    by_pairing = {one.names: cell for one, cell in zip(played, cells)}
    tables = [
        make_table(
            f"{title}; {_meaning(games, seats)}" if start == 0 else "",
            f"{seats.names[0]} by",
            [" + ".join(some) for some in rest[start : start + _WIDE]],
            [
                (
                    short_label(name),
                    [
                        figure_with_interval(by_pairing[name, *some])
                        for some in rest[start : start + _WIDE]
                    ],
                )
                for name in names
            ],
        )
        for start in range(0, len(rest), _WIDE)
    ]
    shown = ("win", "draw", "loss", "strength") if games else ("self", "others", "difference")
    signed = {"strength", "difference"}
    headings = [*shown, "tokens", *(["/1k"] if prices else [])]
    lines = [
        (
            short_label(name),
            [
                *(figure_with_interval(own[what], "+" if what in signed else "") for what in shown),
                f"{own['tokens']:.0f}",
                *([f"{own['money']:.3g}"] if prices else []),
            ],
        )
        for name, own in by_name.items()
    ]
    summary = "against others, all seats alike" if games else "as both, and with others"
    content = {
        "seats": list(seats.names),
        "game": games,
        "pairings": {
            " + ".join(one.names): {
                "score": cell,
                **(
                    {"points": dict(zip(seats.names, map(mean_present, one.points_SQN)))}
                    if games
                    else {}
                ),
                **_costs("", [one], prices),
                "seconds": float(mean_present(one.responses.seconds_QN)),
            }
            for one, cell in zip(played, cells)
        },
        "competitors": by_name,
    }
    return content, [*tables, make_table(summary, "", headings, lines)]


def _meaning(games: bool, seats: Seats) -> str:
    points = f"points of {seats.names[0]}: win 1, draw .5, loss 0"
    return points if games else "what the team scores"


def _team(name: str, played: Sequence[Played]) -> dict[str, Floats]:
    """(Q,) what a competitor scores in all seats, and together with others."""
    alone, others = (
        [mean_at_n(one.responses.correct_QN) for one in played if name in one.names and among(one)]
        for among in (lambda one: len(set(one.names)) == 1, lambda one: len(set(one.names)) > 1)
    )
    nobody = [np.full(len(alone[0]), np.nan)]
    return {"self": alone[0], "others": mean_present(others or nobody, axis=0)}


def _game(name: str, played: Sequence[Played]) -> dict[str, Floats]:
    """(Q,) how often a competitor wins, draws and loses against others, whatever its seat."""
    own = [
        points_QN
        for one in played
        if len(set(one.names)) > 1
        for who, points_QN in zip(one.names, one.points_SQN)
        if who == name
    ] or [np.full_like(played[0].responses.correct_QN, np.nan)]
    points = np.concatenate(own, axis=1)
    known = np.where(np.isnan(points), np.nan, 1.0)
    return {what: mean_at_n(known * (points == worth)) for what, worth in _POINTS.items()}


def strengths(
    names: Sequence[str], played: Sequence[Played], *, resamples: int, seed: int
) -> list[Resampled]:
    """Everybody's strength, with the questions resampled; two seats of a game are one comparison,
    and as every pairing is played in every order, moving first favours nobody."""
    questions = len(played[0].responses.correct_QN)
    wins_QKK = np.zeros((questions, len(names), len(names)))
    for one in played:
        for s, first in enumerate(one.names):
            for t, second in enumerate(one.names):
                if first != second:
                    # A draw is half a win; what was not played is nothing.
                    lead_QN = one.points_SQN[s] - one.points_SQN[t]
                    won_QN = np.nan_to_num(np.sign(lead_QN) / 2 + 0.5)
                    wins_QKK[:, names.index(first), names.index(second)] += won_QN.sum(axis=1)
    drawn_RM = resampled_means(wins_QKK.reshape(questions, -1), resamples=resamples, seed=seed)
    found_K = bradley_terry(wins_QKK.sum(axis=0))
    found_RK = bradley_terry(questions * drawn_RM.reshape(-1, len(names), len(names)))
    return [Resampled(float(b), own_R, questions) for b, own_R in zip(found_K, found_RK.T)]


def _costs(name: str, played: Sequence[Played], prices: Prices) -> dict[str, Any]:
    """Of an episode, by competitor for each of its seats: tokens that were sampled, and money for a
    thousand."""
    own = f"{name}." if name else ""
    seats = sum(one.names.count(name) if name else 1 for one in played)
    used = [
        (policy, mean_present(used_QN2.reshape(-1, 2), axis=0))
        for one in played
        for policy, used_QN2 in one.responses.used_QN2.items()
        if policy.startswith(own)
    ]
    money = sum(float(both @ as_floats(prices[policy])) for policy, both in used if prices)
    return {
        "tokens": sum(float(both[1]) for _, both in used) / seats,
        "money": money / 1000 / seats if prices else None,
    }
