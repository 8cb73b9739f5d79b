"""Cross-play: all pairings of competitors over an environment's roles, with the score of each
pairing, and for games win rates and ratings.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import product
from typing import Any

from rich.console import Console

from coterie import envs
from coterie.datatypes import UserError, role_of
from coterie.evaluation.compare.cross_play_scores import Seats, meaning, pairing_of, score
from coterie.evaluation.compare.jobs import Job, Questions, make_job, sample_missing
from coterie.evaluation.compare.output import show_written, write_json
from coterie.evaluation.compare.policies import NamedTeam, Prices
from coterie.evaluation.compare.suites import Suite, lineup_of, settings_of
from coterie.evaluation.metrics.means import mean_present
from coterie.training.config.serialize import to_plain

_MOST_PAIRINGS = 400
_CONVENTIONS = {
    "score": "of a team its reward, or whether its answer is right; of a game the points of the "
    "first seat: win 1, draw 1/2, loss 0",
    "strength": "Bradley and Terry 1952, log-odds, mean 0; draws are half a win; half a win added "
    "each way to every pair; elo is 400 / ln 10 times as much",
    "intervals": "bootstrap over questions; every pairing plays the same ones",
}


def cross_play(
    opened: Sequence[tuple[Suite, Sequence[Questions]]],
    teams: Sequence[NamedTeam],
    prices: Prices,
    settings: Any,
    console: Console,
) -> None:
    """Sample missing responses, score all pairings, print the tables and write the results. The
    team named ``team`` plays the fixed roles; ``settings`` is a ``SuiteComparison``.

    Raises:
        UserError: only one player or only one seat, or too many pairings.
    """
    fixed = next((team for team in teams if team.name == "team"), NamedTeam("team", {}))
    players = [team for team in teams if team is not fixed]
    if len(players) < 2:
        raise UserError(
            f"--cross-play names {players[0].name} alone: name two at least, who then change seats"
        )
    rounds: list[tuple[str, Seats, dict[tuple[str, ...], list[Job]]]] = []
    for suite, sets in opened:
        seats = seats_of(suite, fixed.players)
        pairings = list(product(players, repeat=len(seats.names)))
        if len(pairings) > _MOST_PAIRINGS:
            raise UserError(
                f"suite {suite.name}: {len(players)} players have {len(pairings)} pairings over "
                f"{', '.join(seats.names)}; name fewer, or who plays some roles with --team"
            )
        folder = settings.out / "completions" / f"{suite.name}-cross-play"
        jobs: dict[tuple[str, ...], list[Job]] = {}
        for pairing in pairings:
            names = tuple(player.name for player in pairing)
            name = "+".join(names)
            # Every pairing shares the same random stream.
            policies, stream = seats.lineup(pairing, fixed), ("cross-play",)
            lineup = lineup_of(suite, name, policies, stream, team=True)
            jobs[names] = [
                make_job(lineup, part, settings, folder, title=f"{suite.name}, {part.name}: {name}")
                for part in sets
            ]
        rounds.append((suite.name, seats, jobs))
    every = [job for *_, jobs in rounds for own in jobs.values() for job in own]
    sample_missing(every, settings, console, "--max-new-tokens")
    content: dict[str, Any] = {}
    pictures = []
    for name, seats, jobs in rounds:
        stored = [r for own in jobs.values() for job in own for r in job.read().values()]
        seats = replace(seats, game=settings.game or any(record["outcome"] for record in stored))
        played = [pairing_of(names, own, seats) for names, own in jobs.items()]
        content[name], tables = score(name, seats, played, prices, settings)
        for table in tables:
            console.print(table, "")
        cells = {p.names: float(mean_present(p.responses.correct_QN)) for p in played}
        path = settings.out / f"{name}-cross-play.png"
        pictures.append((cells, seats.names, path, meaning(seats)))
    content = {"cross-play": content, "conventions": _CONVENTIONS, "config": to_plain(settings)}
    files = [write_json(settings.out / "results.json", content)]
    from coterie.evaluation.compare.pictures import draw_matrix

    files += [draw_matrix(*picture) for picture in pictures]
    show_written(console, *files)


def seats_of(suite: Suite, fixed: Mapping[str, str]) -> Seats:
    """The seats of a suite that competitors exchange.

    Raises:
        UserError: fewer than two seats, or agents that are not numbered.
    """
    env = envs.make(suite.env, settings=settings_of(suite), roles=suite.roles or None)
    agents = list(env.possible_agents)
    env.close()
    roles = [role for role in dict.fromkeys(map(role_of, agents)) if role not in fixed]
    seated = [agent for agent in agents if role_of(agent) in roles]
    if len(roles) == 1:
        # With one role there, competitors exchange its agents.
        seats = Seats(tuple(seated), fixed, role=roles[0])
        # Their numbers have to give each a place among the competitors.
        numbers = [name.rpartition("_")[2] for name in seated]
        places = {int(number) % len(seated) for number in numbers if number.isdecimal()}
        if len(places) < len(seated):
            raise UserError(
                f"suite {suite.name}: the agents of {roles[0]} are {', '.join(seated)}; to change "
                "seats they have to be numbered, such as player_0 and player_1"
            )
    else:
        seats = Seats(tuple(roles), fixed)
    if len(seats.names) < 2:
        raise UserError(
            f"suite {suite.name}: --cross-play needs two seats, and {', '.join(roles) or 'none'} "
            "alone changes hands there; compare with --teams"
        )
    return seats
