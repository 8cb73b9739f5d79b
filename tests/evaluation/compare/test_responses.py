"""What is stored survives a kill at any moment, and is never mixed."""

import random
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from coterie import envs
from coterie.datatypes import Problem, UserError
from coterie.envs.solo import SoloSettings
from coterie.evaluation.compare.jobs import Lineup, Questions, make_job
from coterie.evaluation.compare.responses import Completions
from coterie.evaluation.compare.sample_responses import expected_answers
from coterie.evaluation.compare.settings import ComparisonSettings
from coterie.extras.papers.replies import pick_replies

from ...training.power import ForgetfulDisk  # noqa: TID252 (a test knows no other way)

WHO = {"policies": ["a", "weights"], "seed": 0}


def record(problem: str, number: int, **more: Any) -> dict[str, Any]:
    return {"problem": problem, "sample": number, "correct": 1, "text": "x"} | more


def test_what_was_added_is_read_back(tmp_path: Path) -> None:
    stored = Completions(tmp_path / "deep" / "a.jsonl", WHO)
    assert stored.read() == {}
    stored.append([record("p", 0), record("p", 1, text="\ud800 <b>\n")])
    stored.append([record("q", 0)])
    records = stored.read()
    assert list(records) == [("p", 0), ("p", 1), ("q", 0)]
    assert records["p", 1]["text"] == "\ud800 <b>\n"
    # The first of two counts.
    stored.append([record("p", 0, correct=0)])
    assert stored.read()["p", 0]["correct"] == 1


@pytest.mark.parametrize("before", [[], [record("p", 0)]])
@pytest.mark.parametrize("left", [1, 10, 40])
def test_a_torn_line_is_cut_off(tmp_path: Path, before: list[Any], left: int) -> None:
    """Also the first, which says what was sampled."""
    stored = Completions(tmp_path / "a.jsonl", WHO)
    whole = b""
    if before:
        stored.append(before)
        whole = stored.path.read_bytes()
    stored.append([record("q", 0)])
    stored.path.write_bytes(stored.path.read_bytes()[: len(whole) + left])
    known = [(own["problem"], own["sample"]) for own in before]
    assert list(stored.read()) == known
    stored.append([record("r", 0)])
    assert list(stored.read()) == [*known, ("r", 0)]
    assert stored.path.read_bytes().startswith(whole)


def test_a_job_reads_its_problems_and_samples_alone(tmp_path: Path) -> None:
    """More of both may be stored, as an earlier call asked for more."""
    problems = tuple(Problem(name, "2 + 2 =", "4", "number") for name in "pq")
    settings = ComparisonSettings(samples=8, out=tmp_path)
    lineup = Lineup("replies", "solo", SoloSettings(), "eval", {}, "solver")
    job = make_job(lineup, Questions("set", problems, ""), settings, tmp_path, title="")
    broken_off = {"text": "long", "correct": 0, "cut": 1}
    more = [record("p", number, **broken_off) for number in range(2, 32)]
    more += [record("gone", number, **broken_off) for number in range(32)]
    job.stored.append([*more, record("p", 0), record("p", 1)])
    assert len(job.read()) == 8
    job = replace(job, samples=20)
    assert "18 of 20 answers broke off at 4096 tokens: --flag 8192" in job.cut_off("--flag")
    without = replace(job, lineup=replace(lineup, settings=None))
    sentence = "18 of 20 answers broke off at 256 tokens: a setting max_new_tokens of 512 gives"
    assert sentence in without.cut_off("--flag")
    job = replace(job, samples=2)
    assert list(job.read()) == [("p", 0), ("p", 1)]
    ((replies,), wrong) = pick_replies([job], "any", experts=3, seed=0)
    assert (replies, wrong) == ({"p": ["x", "x"]}, 0)
    assert job.cut_off("--flag") == ""


def test_others_are_refused(tmp_path: Path) -> None:
    Completions(tmp_path / "a.jsonl", WHO).append([record("p", 0)])
    other = Completions(tmp_path / "a.jsonl", WHO | {"seed": 1, "sampling": [1.0]})
    with pytest.raises(UserError, match="of other sampling, seed; name another folder with --out"):
        other.read()


def test_damage_is_told(tmp_path: Path) -> None:
    stored = Completions(tmp_path / "a.jsonl", WHO)
    stored.append([record("p", 0)])
    for damage in (b"<html>\n", b"[]\n", b'{"problem": "p"}\n'):
        whole = stored.path.read_bytes()
        stored.path.write_bytes(whole + damage)
        with pytest.raises(UserError, match="damaged; delete it"):
            stored.read()
        stored.path.write_bytes(whole)


def test_the_power_goes_at_any_moment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What was appended is there, whole, whatever the disk forgets."""
    luck, kept, cuts = random.Random(3), 0, 0
    (tmp_path / "out").mkdir()

    def cut() -> None:
        nonlocal cuts
        for _ in range(4):
            cuts += 1
            after = tmp_path / f"after-{cuts}"
            disk.after_a_cut(after, luck)
            records = Completions(after / "deep" / "a.jsonl", WHO).read()
            assert list(records)[:kept] == [("p", n) for n in range(kept)]

    disk = ForgetfulDisk(tmp_path / "out", cut)
    with disk.watching(monkeypatch):
        stored = Completions(tmp_path / "out" / "deep" / "a.jsonl", WHO)
        for step in range(3):
            stored.append(record("p", 4 * step + n, text="x" * 30) for n in range(4))
            kept = 4 * (step + 1)
            cut()
    assert cuts > 20


@pytest.mark.parametrize(
    ("env", "mode", "answers"),
    # Two small answers of eight possible ones, and at most two large ones in their place.
    [("corea-deferral", "eval", 4), ("solo", "eval", 1)],
)
def test_the_answers_of_a_team_are_estimated(env: str, mode: str, answers: int) -> None:
    roles: dict[str, Any] = dict.fromkeys(envs.spec(env).roles, ())
    problem = Problem("p", "2 + 2 =", "4", "number")
    lineup = Lineup("team", env, None, mode, roles, "", team=True)
    assert expected_answers(lambda: envs.make(env), lineup, problem) == answers
