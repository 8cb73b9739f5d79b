"""Teams: all roles of an environment are played, scored together, and paired in every way."""

import gc
import json
import shutil
import weakref
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from rich.console import Console

from coterie.agents.models.locate import TINY
from coterie.agents.team.settings import AgentSettings
from coterie.datatypes import UserError
from coterie.evaluation.compare import sample_responses
from coterie.evaluation.compare.cross_play import seats_of
from coterie.evaluation.compare.cross_play_scores import Seats, points_of
from coterie.evaluation.compare.policies import (
    NamedPolicy,
    NamedTeam,
    find_policy,
    read_prices,
    read_teams,
)
from coterie.evaluation.compare.settings import ComparisonSettings
from coterie.evaluation.compare.suites import Suite

GOLD, HALF, WRONG = (f"scripted:oracle?p_right={p}" for p in ("1", "0.5", "0"))
CHAINS = ("--problems", "chains?min_length=3&max_length=3")
MODULE = '''
from dataclasses import dataclass
from coterie.envs import ConversationEnv, EnvSpec, Outcome

@dataclass(frozen=True)
class WireSettings:
    max_new_tokens: int = 40
    share: float = 1.0
    measured: bool = True

class Wire(ConversationEnv):
    """Both are paid if what the receiver says is right; the caller a share of it."""
    title = "wire"
    metadata = {**ConversationEnv.metadata, "name": "wire_v0"}
    settings_class = WireSettings
    default_roles = ("caller", "receiver")

    def conversation(self, problem, options, random):
        caller, receiver = self.possible_agents
        said = yield {caller: f"{problem.question} Say something: "}
        answers = yield {receiver: f"{said.get(caller, '')} What is it? "}
        verdict = self.scorer.check(answers.get(receiver, ""), problem)
        told = {"correct": verdict.correct, "answer": verdict.answer}
        right = float(verdict.correct)
        terms = {caller: {"right": self.settings.share * right}, receiver: {"right": right}}
        return Outcome(terms, {receiver: told} if self.settings.measured else {})

class Duel(ConversationEnv):
    """Who alone is right has won."""
    title = "duel"
    metadata = {**ConversationEnv.metadata, "name": "duel_v0"}
    settings_class = WireSettings
    default_roles = ("first", "second")

    def check_roles(self):
        pass

    def places(self):
        return {role: 3 - len(self.roles) for role in self.roles}

    def conversation(self, problem, options, random):
        one, two = self.possible_agents
        answers = yield dict.fromkeys((one, two), problem.question)
        right = {a: self.scorer.check(answers.get(a, ""), problem).correct for a in (one, two)}
        lead = {one: right[one] - right[two], two: right[two] - right[one]}
        named = {1: "win", 0: "draw", -1: "loss"}
        told = {a: {"outcome": named[n]} for a, n in lead.items()}
        terms = {a: {"lead": float(n)} for a, n in lead.items()}
        return Outcome(terms, told if self.settings.measured else {})

DUEL = EnvSpec("duel", 0, "wires:Duel", WireSettings, ("first", "second"))
WIRE = EnvSpec("wire", 0, "wires:Wire", WireSettings, ("caller", "receiver"))
'''


@pytest.fixture(autouse=True)
def wires(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "wires.py").write_text(MODULE)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.chdir(tmp_path)


def test_models_of_one_team_are_gone_before_those_of_the_next_are_loaded(
    run: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And progress counts the answers of all roles: six problems, two roles, three traces each."""
    alive: list[int] = []
    known: list[weakref.ref[Any]] = []
    totals: list[float] = []
    build, stage = sample_responses.build_team, sample_responses.stage

    def built(*args: Any, **options: Any) -> Any:
        alive.append(sum(model() is not None for model in known))
        team = build(*args, **options)
        known.extend(weakref.ref(role.handle.module) for role in team.loaded.values())
        return team

    def counted(console: Any, title: str, total: float, **options: Any) -> Any:
        totals.append(total)
        return stage(console, title, total, **options)

    monkeypatch.setattr(sample_responses, "build_team", built)
    monkeypatch.setattr(sample_responses, "stage", counted)
    teams = ("--teams", "a=tiny:alice", "b=tiny:bob", "--suite", "core-teaching")
    gc.disable()  # nothing is collected by chance
    try:
        run(*teams, *CHAINS, "--samples", "1")
    finally:
        gc.enable()
    assert alive == [0, 0]
    assert totals == [36, 36]


def test_a_team_is_what_its_roles_earn(run: Any) -> None:
    flags = ("--suite", "wires:WIRE", *CHAINS)
    results, shown = run("--team", f"caller={GOLD}", f"receiver={GOLD}", *flags)
    row = results["suites"]["wire"]["rows"]["team"]
    assert row["avg"]["value"] == 1.0
    # "Answer: 7" twice, nine bytes each, four to a token.
    assert row["tokens"] == pytest.approx(2 * 9 / 4)
    assert "mean reward" in shown
    # The caller has half of it: the mean over roles is .75.
    suite = {"env": "wires:WIRE", "problems": [CHAINS[1]], "settings": {"share": 0.5}}
    Path("half.json").write_text(json.dumps(suite))
    results, shown = run("--teams", f"all={GOLD}", "--suite", "half.json", out="half")
    assert results["suites"]["half"]["rows"]["all"]["avg"]["value"] == 0.75
    assert set(results["suites"]["half"]["rows"]) == {"all", "best/all"}
    assert "best of k, expected" in shown


def test_who_is_not_asked_or_cannot_learn_does_not_lower_a_teams_score(run: Any) -> None:
    """In evaluation no expert is paid, and traces without experts are not asked."""
    flags = ("--team", f"policy={GOLD}", f"expert={WRONG}", "--suite", "eapo-consultation")
    results, _ = run(*flags, *CHAINS)
    row = results["suites"]["eapo-consultation"]["rows"]["team"]
    assert row["avg"]["value"] == 1.0


def test_teams_side_by_side_have_all_rows(run: Any) -> None:
    flags = ("--teams", f"ours={GOLD}", f"theirs={HALF}", "--suite", "wires:WIRE", *CHAINS)
    prices = ("--prices", "ours=0,4", "theirs.caller=0,8", "theirs.receiver=0,16")
    results, shown = run(*flags, *prices)
    rows = results["suites"]["wire"]["rows"]
    assert set(rows) == {"ours", "theirs", "best/ours", "best/theirs", "any/ours+theirs"}
    assert rows["ours"]["money"] == pytest.approx(2 * 9 / 4 * 4 / 1000)
    assert rows["theirs"]["money"] > rows["ours"]["money"]
    assert [entry["value"] for entry in results["suites"]["wire"]["pass@k"]["team"]] == [1.0] * 4
    # Where somebody's answers count there is something to vote on.
    results, shown = run(*flags, "--role", "receiver", out="role")
    assert {"vote", "vote/theirs", "cascade"} <= set(results["suites"]["wire"]["rows"])
    assert "answers of receiver count" in shown
    # A policy alone in the suite of an environment: the others have to be played.
    assert "caller has no model there" in run(
        "--policies", f"a={GOLD}", "--role", "receiver", "--suite", "wires:WIRE", *CHAINS, code=2
    )


def test_where_several_agents_answer_none_of_their_answers_is_selected(run: Any) -> None:
    """Three traces of alice: their mean is the score, and no vote can be above the oracle."""
    flags = ("--teams", f"a={HALF}", f"b={HALF}", "--suite", "core-teaching", "--role", "alice")
    results, shown = run(*flags, *CHAINS, "--verifier", f"v={GOLD}")
    rows = results["suites"]["core-teaching"]["rows"]
    assert set(rows) == {"a", "b", "best/a", "best/b"}
    assert "--verifier adds no row, as episodes have no single answer" in shown


def test_the_untrained_team_of_a_run_plays_beside_it(run: Any, tmp_path: Path) -> None:
    """A run that taught its receiver to be right, from one that never was; its caller is frozen."""
    began = Path("runs/wires")
    shutil.copytree(TINY / "bob", began / "final" / "receiver")
    agents = {"caller": {"model": GOLD, "trained": False}}
    agents["receiver"] = {"model": WRONG, "trained": True}
    (began / "config.json").write_text(json.dumps({"agents": agents}))
    flags = ("--suite", "wires:WIRE", *CHAINS, "--role", "receiver")
    results, shown = run("--teams", "before=untrained:runs/wires", f"after={GOLD}", *flags)
    suite = results["suites"]["wire"]
    assert suite["rows"]["before"]["avg"]["value"] == 0.0
    assert suite["differences"]["after - before"]["value"] == 1.0
    assert "after - before" in shown
    assert "over best policy: less the best single policy, so a single one is at most 0" in shown
    for flag, sentence in (
        ("--teams", "not a run; name the directory of --run-dir"),
        ("--policies", "the run has no role x; its roles are caller, receiver"),
    ):
        where = "untrained:runs/none" if flag == "--teams" else "untrained:runs/two"
        agents["caller"]["trained"] = True
        Path("runs/two").mkdir(exist_ok=True)
        Path("runs/two/config.json").write_text(json.dumps({"agents": agents}))
        assert sentence in run(flag, f"x={where}", *flags, code=2)


def test_a_single_role_need_not_be_named(run: Any) -> None:
    results, _ = run("--policies", f"a={GOLD}", "--suite", "solo", *CHAINS)
    assert results["suites"]["solo"]["rows"]["a"]["avg"]["value"] == 1.0


@pytest.mark.parametrize(
    ("flags", "sentence"),
    [
        (["--team", f"caller={GOLD}"], "receiver has no model there; name one"),
        (["--team", f"caller={GOLD}", f"zoe={GOLD}"], "--team names zoe; the roles of wires:WIRE"),
        (["--team", "caller"], "write ROLE=WHAT"),
        (["--team", f"caller={GOLD}", f"caller={GOLD}"], "names caller twice"),
        (["--teams", f"a={GOLD}", f"a={WRONG}"], "a is there twice"),
        (["--teams", f"team={GOLD}", "--team", f"caller={GOLD}"], "team is there twice"),
        (["--teams", "a/b=tiny:bob"], "--teams a/b=tiny:bob: expected NAME=WHAT"),
        (["--teams", f"a={GOLD}", "--role", "zoe"], "has no role zoe"),
        (["--policies", f"a={GOLD}"], "say with --role whose answers count, one of caller"),
        (["--teams", f"a={GOLD}", "--verifier", f"v={GOLD}"], "say with --role whose answers"),
        (["--teams", f"a={GOLD}", "--cross-play", f"b={GOLD}"], "leave out --policies, --teams"),
        (["--cross-play", f"a={GOLD}", f"b={GOLD}", "--team", f"caller={GOLD}"], "needs two seats"),
        (["--cross-play", f"a={GOLD}"], "--cross-play names a alone: name two at least"),
        (["--cross-play", f"a={GOLD}", "--team", f"caller={GOLD}"], "name two at least, who then"),
        (["--cross-play", *(f"a{n}={GOLD}" for n in range(21))], "have 441 pairings"),
        (["--teams", f"a={GOLD}", "--game"], "--game is for --cross-play; leave it out"),
        (["--teams", f"a={GOLD}", "--role", "caller"], "nothing there says whether caller is"),
    ],
)  # fmt: skip
def test_refusals(run: Any, flags: list[str], sentence: str) -> None:
    message = run(*flags, "--suite", "wires:WIRE", *CHAINS, code=2)
    assert sentence in message
    assert message.count("\n") == 1


def test_a_game_is_no_team(run: Any) -> None:
    flags = ("--suite", "wires:DUEL", *CHAINS)
    assert "name its players with --cross-play" in run("--teams", f"a={GOLD}", *flags, code=2)


def test_an_answer_that_nobody_grades_is_refused(run: Any) -> None:
    suite = {"env": "wires:WIRE", "role": "receiver", "problems": [CHAINS[1]], "silent": ["caller"]}
    Path("mine.json").write_text(json.dumps(suite))
    results, _ = run("--policies", f"a={GOLD}", "--suite", "mine.json")
    assert results["suites"]["mine"]["rows"]["a"]["avg"]["value"] == 1.0
    Path("mine.json").write_text(json.dumps(suite | {"settings": {"measured": False}}))
    message = run("--policies", f"a={GOLD}", "--suite", "mine.json", out="other", code=2)
    assert "nothing there says whether receiver is right" in message


def paired(run: Any, *flags: str, out: str = "out") -> Any:
    """What was found of the one suite."""
    (matrix,) = run(*flags, out=out)[0]["cross-play"].values()
    return matrix


def test_cross_play_of_a_team(run: Any) -> None:
    players = ("--cross-play", f"gold={GOLD}", f"wrong={WRONG}")
    matrix = paired(run, *players, "--suite", "wires:WIRE", *CHAINS)
    cells = {name: cell["score"]["value"] for name, cell in matrix["pairings"].items()}
    # The receiver alone decides.
    assert cells == {
        "gold + gold": 1, "gold + wrong": 0, "wrong + gold": 1, "wrong + wrong": 0
    }  # fmt: skip
    gold = matrix["competitors"]["gold"]
    assert (gold["self"]["value"], gold["others"]["value"]) == (1.0, 0.5)
    assert gold["difference"]["value"] == -0.5
    assert not matrix["game"]
    # With one role held fast, the other alone changes hands: no pairings.
    three = ("--cross-play", *players[1:], f"half={HALF}")
    matrix = paired(run, *three, "--suite", "wires:WIRE", *CHAINS, out="three")
    assert len(matrix["pairings"]) == 9


@pytest.mark.parametrize("roles", [[], ["player"]])
def test_cross_play_of_a_game(run: Any, roles: list[str]) -> None:
    suite = {"env": "wires:DUEL", "problems": [CHAINS[1]], "roles": roles}
    Path("mine.json").write_text(json.dumps(suite))
    players = ("--cross-play", f"gold={GOLD}", f"wrong={WRONG}", f"twin={GOLD}")
    matrix = paired(run, *players, "--suite", "mine.json")
    cells = {name: cell["score"]["value"] for name, cell in matrix["pairings"].items()}
    assert cells["gold + wrong"] == 1
    assert cells["wrong + gold"] == 0
    assert cells["gold + twin"] == cells["gold + gold"] == 0.5
    by_name = matrix["competitors"]
    # Against wrong it wins, against its twin it draws, in both seats.
    rates = [by_name["gold"][name]["value"] for name in ("win", "draw", "loss")]
    assert rates == [0.5, 0.5, 0.0]
    # A lead of 1 against wrong, of 0 against its twin.
    assert by_name["gold"]["earned"]["value"] == 0.5
    assert matrix["pairings"]["gold + wrong"]["earned"] == dict(zip(matrix["seats"], (1.0, -1.0)))
    # 48 games each: 48.5 to .5 against wrong, and as strong as its twin.
    lead = by_name["gold"]["strength"]["value"] - by_name["wrong"]["strength"]["value"]
    assert lead == pytest.approx(np.log(48.5 / 0.5), abs=1e-5)
    assert by_name["gold"]["strength"] == by_name["twin"]["strength"]
    low, high = by_name["gold"]["strength"]["interval"]
    assert low == high  # nothing depends on the question


def test_seats_are_numbered(monkeypatch: pytest.MonkeyPatch) -> None:
    env = SimpleNamespace(possible_agents=["player_red", "player_blue"], close=lambda: None)
    monkeypatch.setattr("coterie.evaluation.compare.cross_play.envs.make", lambda *_, **__: env)
    with pytest.raises(UserError, match="of player are player_red, player_blue; to change seats"):
        seats_of(Suite("x", "wires:DUEL", ("chains",)), {})
    env.possible_agents = ["player_1", "player_2"]
    assert seats_of(Suite("x", "wires:DUEL", ("chains",)), {}).names == ("player_1", "player_2")


def test_whoever_earns_most_has_won(run: Any) -> None:
    suite = {"env": "wires:DUEL", "problems": [CHAINS[1]], "settings": {"measured": False}}
    Path("mine.json").write_text(json.dumps(suite))
    players = ("--cross-play", f"gold={GOLD}", f"wrong={WRONG}", "--suite", "mine.json")
    matrix = paired(run, *players, "--game")
    assert matrix["pairings"]["gold + wrong"]["score"]["value"] == 1
    # Of zero-sum pay a team has nothing.
    matrix = paired(run, *players, out="team")
    assert matrix["pairings"]["gold + wrong"]["score"]["value"] == 0


def test_points() -> None:
    two = Seats(("player_1", "player_2"), {}, "player")
    said = {"earned": {}, "outcome": {"player_1": "loss"}}
    # It was over before the other one had moved.
    assert points_of(said, two).tolist() == [0, 1]
    three = Seats(("a", "b", "c"), {})
    earned = {"earned": {"a_0": 2.0, "b_0": 2.0, "c_0": -4.0}, "outcome": {}}
    assert points_of(earned, three).tolist() == [0.5, 0.5, 0]
    # Whoever has the first seat plays the agent with the lower number, wherever numbers begin.
    x, y = (NamedTeam(name, {"": GOLD}) for name in ("x", "y"))
    seated = two.lineup([x, y], NamedTeam("team", {}))["player"]
    assert [seated[number % 2].name for number in (1, 2)] == ["x.player", "y.player"]


def test_a_run_is_a_team_with_its_frozen_roles(tmp_path: Path) -> None:
    run = tmp_path / "run"
    for role in ("alice", "bob"):
        shutil.copytree(TINY / role, run / "final" / role)
    agents = {"judge": {"model": "tiny:carol", "trained": False}, "alice": {"trained": True}}
    (run / "config.json").write_text(json.dumps({"agents": agents}))
    (team,) = read_teams("--teams", [f"ours={run}"])
    players = {role: team.lineup([role])[role][0] for role in ("alice", "bob", "judge")}
    assert [player.name for player in players.values()] == ["ours.alice", "ours.bob", "ours.judge"]
    assert players["bob"].model == str(run / "final" / "bob")
    assert players["judge"].model == "tiny:carol"
    # A partner, or an opponent, that a run was trained with is not that run.
    with pytest.raises(UserError, match="trained alice, bob: name one"):
        read_teams("--cross-play", [f"ours={run}"], frozen=False)[0].player("judge")
    assert read_teams("--teams", [f"{run}/", "tiny:bob"])[0].name == "run"
    assert read_teams("--teams", ["tiny:bob"])[0].name == "bob"
    assert read_prices(["ours=1,2"], ["ours.alice", "ours.bob"]) == {
        "ours.alice": (1, 2), "ours.bob": (1, 2)
    }  # fmt: skip
    with pytest.raises(UserError, match=r"lacks ours\.5\.alice"):
        read_prices(["ours=1,2"], ["ours.alice", "ours.5.alice"])


def test_roles_of_a_run_are_read_as_the_run_reads_them(
    tmp_path: Path, checkpoint: Callable[[str], Path]
) -> None:
    run, model = tmp_path / "run", str(checkpoint("qwen3"))
    shutil.copytree(model, run / "final" / "alice")
    how = {"system": "Be brief.", "chat": "template", "dtype": "bfloat16", "context": 64}
    where = {"device": "cpu", "trust_remote_code": True}
    agents = {
        "alice": {"model": model, "trained": True, **how, **where},
        "judge": {"model": model, "trained": False, **how, **where},
        "bob": {"model": model, "trained": False, "revision": "abc"},
        "carol": {"model": model, "trained": False, "chat": "auto", "device": "cpu"},
    }
    (run / "config.json").write_text(json.dumps({"agents": agents}))
    (team,) = read_teams("--teams", [f"ours={run}"])
    players = {role: team.lineup([role])[role][0] for role in agents}
    alone = {
        "before": find_policy("x", f"untrained:{run}", "alice"),
        "after": find_policy("x", str(run)),
    }
    for player in (players["alice"], players["judge"], *alone.values()):
        read = vars(player.settings)
        assert {name: read[name] for name in how | where} == how | where
        assert not read["trained"]
        # Stored answers of the model as it is read by default are others.
        assert player.identity[1:] == [how]
    assert players["bob"].settings.revision == "abc"
    assert players["bob"].identity[1:] == [{"revision": "abc"}]
    # Those of a run with the defaults stay valid, wherever it computed.
    assert players["carol"].settings.device == "cpu"
    assert players["carol"].identity == find_policy("x", model).identity
    assert len(players["carol"].identity) == 1
    own = "a chat of its own, a context of its own, a dtype of its own, a system message, which"
    with pytest.raises(UserError, match=f"was trained with {own} other members do not have"):
        find_policy("x", f"pool:{run}|tiny:bob")
    agents["alice"]["context"] = 1 << 20
    (run / "config.json").write_text(json.dumps({"agents": agents}))
    with pytest.raises(UserError, match=r"context 1048576 is more than the \d+ tokens"):
        find_policy("x", str(run))


def test_one_model_that_is_read_in_two_ways_is_two_models(monkeypatch: pytest.MonkeyPatch) -> None:
    """Comparisons of papers give all their rows the same names of policies."""
    groups: list[list[Any]] = []
    monkeypatch.setattr(
        sample_responses, "_sample_group", lambda jobs, *_, **__: groups.append(jobs)
    )
    usual = AgentSettings("tiny:bob", trained=False)
    read = (usual, replace(usual, context=64), usual)
    jobs = [
        SimpleNamespace(
            lineup=SimpleNamespace(needed={"policy": NamedPolicy("policy", how, "")}, team=False)
        )
        for how in read
    ]
    sample_responses.sample_jobs(jobs, ComparisonSettings(), Console())  # type: ignore[arg-type]
    assert groups == [[jobs[0], jobs[2]], [jobs[1]]]
