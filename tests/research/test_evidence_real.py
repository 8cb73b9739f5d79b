"""The fifth protocol of the evidence: problems, commands, what is stored and its tables."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from coterie.agents.models.locate import TINY
from coterie.cli.arguments import overlay
from coterie.cli.command_line import parse
from coterie.datatypes import UserError
from coterie.evaluation.compare.inherited import parse as parse_comparison
from coterie.extras.papers.distill import DistillSettings
from evidence import contests, real_models, real_problems, real_results
from evidence import real_tables as tables
from evidence.real_models import SCREEN, SEEDS, Run
from evidence.real_problems import EVALUATION, READING, STATED, TRAINING, hinted, write_problems
from evidence.real_results import SAMPLES, results

THINGS = ("cows", "pens", "cups", "maps", "keys", "nuts", "eggs", "bags")


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Invented items in the columns of both sets, eight of each kind."""
    folder = tmp_path / "sets"
    folder.mkdir()
    asdiv: list[dict[str, Any]] = [
        {"body": "", "question": "How many?", "answer": "505 (cows)", "formula": "500+5=505"},
        {"body": "A farm.", "question": "How many?", "answer": "9 (cows)", "formula": "(1+2)*3=9"},
        {"body": "A yard.", "question": "How many?", "answer": "3 (cows)", "formula": "7/2=3 r1"},
    ]
    svamp: list[dict[str, Any]] = []
    for number, thing in enumerate(THINGS, 3):
        for sign, event in (("-", "sells two"), ("*", "doubles them")):
            gold = number - 2 if sign == "-" else 2 * number
            asdiv.append(
                {
                    "body": f"Ann has {number} {thing} and {event}.",
                    "question": f"How many {thing} has she?",
                    "answer": f"{gold} ({thing})",
                    "formula": f"{number}{sign}2={gold}",
                }
            )
            svamp.append(
                {
                    "Body": f"On the table lie {number} {thing} and one of us {event}",
                    "Question": f"How many {thing} lie there?",
                    "Answer": float(gold),
                    "Equation": f"( {number}.0 {sign} 2.0 )",
                }
            )
    for name, rows in (("asdiv", asdiv), ("svamp", svamp)):
        lines = "".join(json.dumps(row) + "\n" for row in rows)
        (folder / f"{name}.jsonl").write_text(lines, encoding="utf-8")
    monkeypatch.setenv("COTERIE_DATA", str(folder))
    for module in (real_problems, real_results):
        monkeypatch.setattr(module, "HELD_OUT", 2)
    return folder


def lines(path: Path) -> list[dict[str, str]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def test_problems_of_one_small_step(data: Path, tmp_path: Path) -> None:
    write_problems(tmp_path)
    training, held_out = lines(tmp_path / TRAINING), lines(tmp_path / EVALUATION)
    assert [row["category"] for row in held_out] == ["plus"] * 4 + ["times"] * 4
    assert [row["category"] for row in training].count("plus") == len(training) / 2 == 12
    asked = [row["question"] for row in (*training, *held_out)]
    # Neither large numbers nor two steps nor a remainder.
    assert len({*asked}) == len(asked) == 32
    (ann,) = (
        row for row in (*training, *held_out) if "Ann has 9 eggs and sells" in row["question"]
    )
    assert (ann["answer"], ann["solution"], ann["category"]) == ("7", "9 - 2 = 7", "plus")
    stated = lines(tmp_path / STATED)
    for plain, row in zip(training, stated, strict=True):
        end = f"\n\\boxed{{{plain['answer']}}} \\confidence{{0."
        assert row["solution"][:-2] == plain["solution"] + end
    assert len({row["solution"][-2] for row in stated}) > 2


def test_what_follows_a_hint_is_known_from_the_hint_alone(data: Path, tmp_path: Path) -> None:
    write_problems(tmp_path)
    training, reading = lines(tmp_path / TRAINING), lines(tmp_path / READING)
    assert reading[::2] == training
    for plain, behind in zip(training, reading[1::2], strict=True):
        assert behind["question"] == f"{plain['question']}\n\nHint:\n{behind['solution']}"
        assert behind["solution"].endswith(f" = {behind['answer']}")
        assert behind["category"] == plain["category"]
    fitting = {
        "7 - 2 = 5": {"7 + 2 = 9", "7 - 2 = 5", "7 * 2 = 14"},
        "2 * 8 = 16": {"2 + 8 = 10", "2 * 8 = 16"},
    }
    for step, hints in fitting.items():
        rows = [{"question": f"q{n}", "solution": step} for n in range(40)]
        assert {hinted(row)["solution"] for row in rows} == hints


def test_training_shares_no_thirteen_words_with_what_is_held_out(
    data: Path, tmp_path: Path
) -> None:
    long = " ".join(f"word{n}" for n in range(20))
    rows = lines(data / "asdiv.jsonl")
    plus = [row for row in rows if "sells" in row["body"]]
    for row in plus:
        row["body"] = f"{row['body']} {long}"
    text = "".join(json.dumps(row) + "\n" for row in rows)
    (data / "asdiv.jsonl").write_text(text, encoding="utf-8")
    write_problems(tmp_path)
    # Two of ASDiv's are held out, which leaves none of the others, and none of the other kind.
    assert len(lines(tmp_path / TRAINING)) == 12
    assert all("table" in row["question"] for row in lines(tmp_path / TRAINING))


def test_without_the_sets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("COTERIE_DATA", raising=False)
    with pytest.raises(UserError, match=r"COTERIE_DATA must name the folder with asdiv.jsonl and"):
        write_problems(tmp_path)


def row(run: Run, **right: str) -> dict[str, Any]:
    """A stored line; ``right``: role -> a digit for each of eight held-out problems."""
    spent = {"cpu_s": 900.0, "asking_cpu_s": 120.0, "commit": "abc"}
    return {"seed": run.seed, "right": right, "tokens": 50_000, "expert_tokens": 4000, **spent}


@pytest.fixture
def stored(monkeypatch: pytest.MonkeyPatch) -> dict[Run, dict[str, Any]]:
    """What counts as stored, with two held-out problems of each set and kind."""
    done: dict[Run, dict[str, Any]] = {}
    monkeypatch.setattr(real_models, "stored", lambda: done)
    monkeypatch.setattr(real_results, "HELD_OUT", 2)
    return done


@pytest.mark.parametrize(
    ("alice", "bob", "steps"),
    [("21112222", "00001111", 50), ("00012222", "22221111", 80), ("22202222", "00001111", 30)],
)
def test_the_screen_chooses_the_length_of_the_warm_up(
    alice: str, bob: str, steps: int, stored: dict[Run, dict[str, Any]]
) -> None:
    """Of plus, the first half, alice has .63, .13 and .75."""
    screen = Run("real", "teach-warm", SCREEN)
    assert [*real_models.planned()] == [screen]
    stored[screen] = row(screen, alice=alice, bob=bob)
    assert real_models.warm_up_steps(stored) == steps
    runs = [run for run in real_models.planned() if run != screen]
    assert len({run.name for run in runs}) == len(runs) == 3 * 15
    flags = runs[0].what.flags
    assert flags[flags.index("--warmup.steps") + 1] == str(steps)


def test_every_command_is_one(
    stored: dict[Run, dict[str, Any]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(contests, "expert_tokens", lambda folder: 300)
    screen = Run("real", "teach-warm", SCREEN)
    stored[screen] = row(screen, alice="11111111", bob="11111111")
    done, asked = set[str](), dict[str, Any]()
    for run in (run for run in real_models.planned() if run.seed == SEEDS[0]):
        assert {other.arm for other in run.needed()} <= done
        done.add(run.arm)
        job = run.job(tmp_path)
        flags = list(job.arguments)
        assert "<" not in " ".join(flags)
        if job.program == "train":
            settings: Any = parse(flags)
            assert settings.run.seed == run.seed
            assert settings.problems.eval == (str(tmp_path / "real-problems" / EVALUATION),)
            asked[run.arm] = settings
        else:
            assert parse_comparison(DistillSettings, flags[1:], "distill").expert_tokens == 300
    for form in ("read", "pair"):
        taught, alone, other = (asked[f"{form}-{arm}"] for arm in ("taught", "alone", "other"))
        # The arms differ in what is read again alone.
        assert taught.env.reread == other.env.reread == "unsolved"
        assert alone.env.reread == "none"
        assert taught.env.k_cold == alone.env.k_cold == other.env.k_cold == 4
        assert taught.algo == other.algo
        assert replace(alone.algo, distillation=taught.algo.distillation) == taught.algo
        assert taught.learner == alone.learner == other.learner
    assert asked["defer-corea"].env.confidence_reward == "l1"
    assert asked["consult-alone"].env.consult == "never"


def test_a_command_names_no_folder_of_this_machine(tmp_path: Path) -> None:
    run = Run("real", "teach-warm", SCREEN)
    shown = real_models.shown(run.job(tmp_path).arguments, tmp_path)
    assert str(tmp_path) not in shown
    assert "--agents.alice.model $COTERIE_WEIGHTS/SmolLM2" in shown
    assert "--run-dir runs/evidence/real-teach-warm-69" in shown


def test_right_answers_by_problem() -> None:
    two = [{"correct": {"alice": [[True], [False]], "bob": [[True], [None]]}} for _ in range(2)]
    two[1]["correct"]["alice"][1] = [True]
    assert results(two)["right"] == {"alice": "21", "bob": "20"}
    assert results([{"correct": [[1.0, 0.0], [None, 0.0]]}])["right"] == {"policy": "10"}


def test_calibration_by_hand() -> None:
    """Right where it says .75, wrong at .25; the large one is right on the second alone."""
    said = {"correct": [[1.0], [0.0]], "confidence": [[0.75], [0.25]]}
    cost = {"prompt": [[10.0], [10.0]], "output": [[5.0], [5.0]]}
    large = {"correct": [[0.0], [1.0]], "confidence": [[0.5], [0.5]], **cost}
    roles = {"small": {**said, **cost}, "large": large}
    stored = results([{"responses": roles, "size_ratio": 2.0, "output_weight": 4.0}])
    assert stored["calibration"] == pytest.approx(
        {"ece": 0.25, "brier": 0.0625, "auroc": 1.0, "stated": 1.0, "area": 0.25}
    )
    (half,) = (point for point in stored["thresholds"] if point[0] == 0.5)
    # Half is deferred, all is right; both are paid: (30 + .5 * 60) / 60.
    assert half == [0.5, 0.5, 1.0, 1.0]
    assert stored["alone"] == [0.5, 0.5]


def test_the_tables_by_hand(
    stored: dict[Run, dict[str, Any]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = tmp_path / "page.md"
    page.write_text("a\n<!-- results -->\nold\n<!-- end of results -->\nb\n", encoding="utf-8")
    monkeypatch.setattr(tables, "PAGE", page)
    pictures: dict[str, Any] = {}
    monkeypatch.setattr(tables, "draw", lambda values, name, label: pictures.update({name: values}))
    calibrated = {
        "calibration": {"ece": 0.1, "brier": 0.2, "auroc": 0.8, "stated": 1.0, "area": 0.05},
        "thresholds": [[t, 0.5, 0.6, 0.9] for t in real_results.THRESHOLDS],
        "alone": [0.4, 0.6],
    }
    screen = Run("real", "teach-warm", SCREEN)
    stored[screen] = row(screen, alice="11110000", bob="00001111")
    stored[screen]["cpu_s"] = None  # as of a resumed run
    for seed in SEEDS[:2]:
        for arm, alice in (("warm", "11110000"), ("alone", "11110001"), ("taught", "11111112")):
            run = Run("real", f"teach-{arm}", seed)
            stored[run] = row(run, alice=alice, bob="00001111")
        for arm, bob in (("alone", "00001111"), ("other", "10001111"), ("taught", "22001111")):
            run = Run("real", f"read-{arm}", seed)
            stored[run] = row(run, alice="11110000", bob=bob)
        for arm, error in (("warm", 0.4), ("corea", 0.1)):
            run = Run("real", f"defer-{arm}", seed)
            own = {**calibrated, "calibration": {**calibrated["calibration"], "ece": error}}
            stored[run] = {**row(run, small="11110000", large="11111111"), **own}
        for arm, policy in (("alone", "11110000"), ("asked", "11111111")):
            run = Run("real", f"consult-{arm}", seed)
            stored[run] = row(run, policy=policy)
    tables.write()
    text = page.read_text(encoding="utf-8")
    # Alice on times: 5 of 8 answers when taught, 1 of 8 alone; by problem .5 .5 .5 .5.
    (taught, _, _, again) = (line for line in text.splitlines() if line.startswith("| taught |"))
    cells = [cell.strip() for cell in taught.strip("|").split("|")]
    assert cells[1:3] == ["**.625** (.625 .625)", "**.500** (.500 .500)"]
    assert cells[3] == "+.500 [+.500, +.500]; problems [+.500, +.500]"
    assert cells[4:] == ["", "50,000"]
    assert "### Teaching: alice (2 of 3 seeds)" in text
    # Bob on plus, in the second form: 4 of 8 when taught, 1 of 8 behind other hints, 0 alone.
    assert "| **.500** (.500 .500) | **.500** (.500 .500) | +.500 [+.500, +.500]" in again
    assert "| +.375 [+.375, +.375]" in again
    assert pictures["real-read.png"]["other: bob"] == [0.125, 0.125]
    assert "- COREA: ECE − warm: −.300 [−.300, −.300]" in text
    assert "| corea | 0.5 | .500 | .600 | .500 | .900 |" in text
    assert "| consulted | **.500** (.500 .500) | **.500** (.500 .500) | +.500" in text
    assert "| teach-warm | 3 | 900 | 120 | abc |" in text
    assert pictures["real-teaching.png"]["taught: alice"] == [0.5, 0.5]
    assert "- real-teach-warm-72" in text


def test_what_is_stored_can_be_run_again() -> None:
    for run, line in real_models.stored().items():
        assert len(next(iter(line["right"].values()))) == len(real_results.of_problems())
        assert {*"".join(line["right"].values())} <= {*"012"[: SAMPLES + 1]}
        assert f"runs/evidence/{run.name}" in line["command"]


@pytest.mark.slow
def test_all_of_it_on_tiny_models(
    data: Path, stored: dict[Run, dict[str, Any]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Gina and hugo in place of the real ones; an arm of each part is trained, asked and stored,
    after the arms that it needs."""
    whole = Run.job

    def short(run: Run, out: Path) -> Any:
        job = whole(run, out)
        fewer = ("--warmup.steps", "1") if run.arm.endswith("-warm") else ("--steps", "2")
        return replace(job, arguments=tuple(overlay((*job.arguments, *fewer))))

    monkeypatch.setattr(Run, "job", short)
    tiny = {"smollm2": "gina", "gemma3": "hugo"}
    monkeypatch.setattr(real_models, "weights_file", lambda name: TINY / tiny[name])
    screen = Run("real", "teach-warm", SCREEN)
    stored[screen] = row(screen, alice="11111111", bob="11111111")
    for arm in ("read-other", "pair-alone", "defer-corea", "consult-imitated"):
        run = Run("real", arm, SEEDS[0])
        line = real_models.train(run, tmp_path)
        assert {len(digits) for digits in line["right"].values()} == {8}
        assert str(tmp_path) not in line["command"] + line["asked"]
        assert not (tmp_path / run.name / "final").is_dir()
        assert ("calibration" in line) == arm.startswith("defer")
    assert (tmp_path / f"real-teach-warm-{SEEDS[0]}/final/alice").is_dir()
