"""What a report shows of a program's calls."""

from collections.abc import Callable
from typing import Any

import pytest

from coterie.evaluation.report.decode import RoleTokenizers
from coterie.evaluation.report.episode import shown_episode
from coterie.extras.gateway.evaluation import EVALUATION, drawn

from .conftest import asks, chat, client, run, said, saying, user

Make = Callable[..., Any]


def test_a_conversation_is_a_line_and_a_branch_hangs_below_it() -> None:
    turns = [
        ["new", None, None, ""],
        ["bridged", 0, None, ""],
        ["branch", 0, None, "twin"],
        ["thinking_stripped", None, 1, "undelivered"],
        ["bridged", 2, None, ""],
        ["branch", 2, None, ""],
        ["repeated", None, None, ""],
    ]
    assert drawn(turns).splitlines() == [
        "new: 1 ─ 2",
        "  └ branch after 1: (3: twin) ─ 5",
        "    └ branch after 3: 6",
        "thinking stripped from 2: (4: undelivered)",
        "repeated: 7",
    ]
    assert drawn([]) == ""


def test_a_conversation_of_many_calls_is_drawn() -> None:
    """Deeper than Python's own stack."""
    turns = [["new", None, None, ""], *(["bridged", t, None, ""] for t in range(4999))]
    assert drawn(turns).count("─") == 4999
    branches = [["branch", t, None, ""] for t in range(4999)]
    assert drawn([turns[0], *branches]).count("─") == 4999


async def _forks(endpoints: Any, problem: Any) -> float:
    async with client(endpoints) as to:
        reply = said((await chat(to, [user("x")]))["content"])
        for text in ("y", "z"):
            await chat(to, [user("x"), reply, user(text)])
        await chat(to, [user("w"), reply, user("v")], model="bob")
    return 1.0


@pytest.mark.parametrize(
    ("settings", "alice"),
    [
        ({}, "new: 1 ─ 2\n  └ branch after 1: 3"),
        (
            {"train_turns": "last"},
            "new: (1: not chosen) ─ (2: not chosen)\n  └ branch after 1: 3",
        ),
    ],
)
def test_the_report_draws_the_calls_of_each_role(
    make: Make, settings: Any, alice: str, tmp_path: Any
) -> None:
    roles = ("alice", "bob")
    episode = run(make(_forks, *roles, **settings), dict.fromkeys(roles, saying("ok")))
    record = {"step": 1, "problem": "p", "mode": "train", "seed": 7, "info": episode.info}
    record |= {"trajectories": []}
    shown = shown_episode(record, RoleTokenizers(tmp_path, {}), EVALUATION.labels)
    (drawing,) = shown["drawings"]
    assert drawing["parts"] == [["alice", alice], ["bob", "new: 1"]]
    assert "forest" not in dict(shown["facts"])


def test_nothing_is_learned_of_an_episode_that_failed(make: Make) -> None:
    async def program(endpoints: Any, problem: Any) -> float:
        await asks(endpoints, problem)
        raise ValueError

    episode = run(make(program), {"alice": saying("ok")})
    assert drawn(episode.info["forest"]["alice"]) == "new: (1: failed)"


def test_a_table_leaves_out_counts_of_what_never_happened() -> None:
    """Of a role that is called like a count, too."""
    values = {"measured/alice/calls": 0.0, "measured/alice/branch": 0.0, "reward/branch": 0.0,
              "measured/branch/twins": 0.0, "measured/alice/new": 1.0, "episode/refused": 0.0,
              "failed/team": 0.0, "measured/alice/correct": 0.0}  # fmt: skip
    assert [row.metric for row in EVALUATION.table(["alice"], values, values)] == [
        "measured/alice/calls",
        "reward/branch",
        "measured/alice/new",
        "failed/team",
        "measured/alice/correct",
    ]
