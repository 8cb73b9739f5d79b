"""Runs of the evidence: what is started, and what is stored of it."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from filelock import FileLock

from coterie.agents.models.locate import TINY
from evidence import runner
from evidence.commands import start
from evidence.measures import answered, peer_only, scores, tokens_of
from evidence.studies import Run, Study, studies


def named(name: str) -> Run:
    (run,) = (r for study in studies().values() for r in study.planned() if r.name == name)
    return run


def test_a_command_that_ended_is_not_run_again(tmp_path: Path) -> None:
    (tmp_path / "summary.json").touch()
    start("no such script", (), tmp_path, "summary.json")
    with pytest.raises(SystemExit, match=r"python nothing.py --flag did not end; start it again"):
        start("nothing.py", ("--flag",), tmp_path / "run", "summary.json")


def test_a_fresh_seed_of_an_arm(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    started: list[Run] = []

    def result(run: Run, out: Path) -> dict[str, Any]:
        started.append(run)
        return {"seed": run.seed, "after": {}}

    monkeypatch.setattr(runner, "result", result)
    shown = runner.again(
        [*studies().values()], "control-recall-other-same-330", 7, tmp_path
    ).splitlines()
    assert [run.name for run in started] == ["control-recall-other-same-330-7"]
    assert [line.partition(":")[0] for line in shown] == [
        *(f"seed {seed}" for seed in range(60, 72)),
        "seed 7",
    ]
    # The screen had a shorter warm-up than the runs that it chose.
    runner.again([studies()["real"]], "real-teach-warm", 7, tmp_path)
    assert started[-1].values["warmup"] == 80
    # An arm that was cut has no planned run.
    runner.again([studies()["real"]], "real-teach-other", 7, tmp_path)
    assert started[-1].name == "real-teach-other-7"
    with pytest.raises(SystemExit, match="is called nothing; the arms are: between-exp"):
        runner.again([*studies().values()], "nothing", 7, tmp_path)


def test_a_missing_run_is_stored_once(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("evidence.studies.RESULTS", tmp_path)
    monkeypatch.setattr(runner, "RESULTS", tmp_path)

    def result(run: Run, out: Path) -> dict[str, Any]:
        return {**run.fields, "after": {}, "cpu_s": 1.0}

    monkeypatch.setattr(runner, "result", result)
    study = studies()["eapo-published"]
    missing = study.missing()
    assert len(missing) == 20
    # What another process runs is left to it.
    with FileLock(tmp_path / f"{missing[0].name}.lock"):
        runner.run_missing(study, missing[:2], tmp_path, "24:00")
    assert [*study.stored()] == [missing[1].name]
    for until, stored in (("00:00", 1), ("24:00", 2), ("24:00", 2)):
        runner.run_missing(study, missing[:2], tmp_path, until)
        assert len(study.stored()) == stored
    assert [run.name for run in study.missing()] == [run.name for run in missing[2:]]


def test_what_only_the_peer_solves() -> None:
    correct = {"alice": [[0, 0], [1, 0], [0, 0], [0, 0]], "bob": [[0, 1], [1, 1], [0, 0], [1, 1]]}
    assert peer_only(correct, "alice") == 0.5
    assert peer_only(correct, "bob") == 0


def test_scores_are_those_of_the_policies() -> None:
    rows = {"alone": 0.1, "reread": 0.5, "vote": 0.6}
    results = {"suites": {"eapo": {"sets": {"chains": {"rows": rows}}}}}
    assert scores(("alone", "reread"), results) == {"after": {"alone": 0.1, "reread": 0.5}}


def test_right_answers_by_problem() -> None:
    two = [{"correct": {"alice": [[True], [False]], "bob": [[True], [None]]}} for _ in range(2)]
    two[1]["correct"]["alice"][1] = [True]
    assert answered(two)["right"] == {"alice": "21", "bob": "20"}
    assert answered([{"correct": [[1.0, 0.0], [None, 0.0]]}])["right"] == {"policy": "10"}


def test_calibration_by_hand() -> None:
    """Right where it says .75, wrong at .25; the large one is right on the second alone."""
    said = {"correct": [[1.0], [0.0]], "confidence": [[0.75], [0.25]]}
    cost = {"prompt": [[10.0], [10.0]], "output": [[5.0], [5.0]]}
    large = {"correct": [[0.0], [1.0]], "confidence": [[0.5], [0.5]], **cost}
    roles = {"small": {**said, **cost}, "large": large}
    stored = answered([{"responses": roles, "size_ratio": 2.0, "output_weight": 4.0}])
    assert stored["calibration"] == pytest.approx(
        {"ece": 0.25, "brier": 0.0625, "auroc": 1.0, "stated": 1.0, "area": 0.25}
    )
    (half,) = (point for point in stored["thresholds"] if point[0] == 0.5)
    # Half is deferred, all is right; both are paid: (30 + .5 * 60) / 60.
    assert half == [0.5, 0.5, 1.0, 1.0]
    assert stored["alone"] == [0.5, 0.5]


def shortened(study: Study, **own: str) -> Study:
    """The study with little to do; ``own``: arm -> flags in place of those of a short training."""
    few = "" if study.key == "real" else "--problems.held-out 4 --rollout.problems-per-step 2"

    def short(arm: str) -> str:
        return f"{few} --warmup.steps 1" if arm.endswith("-warm") else f"{few} --steps 2"

    arms = {
        name: replace(arm, flags=f"{arm.flags} {own.get(name.replace('-', '_'), short(name))}")
        for name, arm in study.arms.items()
    }
    return replace(study, arms=arms)


@pytest.mark.slow
@pytest.mark.usefixtures("in_this_process")
def test_a_run_of_real_models_on_tiny_ones(
    word_problems: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Gina and hugo in place of the real ones; an arm of each part is trained, asked and stored,
    after the arms that it needs."""
    monkeypatch.setattr(runner, "weights_folder", lambda: TINY)
    for name, tiny in (("smollm2", "gina"), ("gemma3", "hugo")):
        monkeypatch.setitem(runner.WEIGHTS, name, replace(runner.WEIGHTS[name], file=tiny))
    study = shortened(studies()["real"], consult_imitated="--steps 1")
    for arm in ("pair-alone", "defer-corea", "consult-imitated"):
        run = replace(named(f"real-{arm}-70"), study=study)
        line = runner.result(run, tmp_path)
        assert {len(digits) for digits in line["right"].values()} == {8}
        assert str(tmp_path) not in line["command"] + line["asked"]
        assert not (tmp_path / run.name / "final").is_dir()
        assert ("calibration" in line) == arm.startswith("defer")
    assert (tmp_path / "real-teach-warm-70/final/alice").is_dir()


@pytest.mark.slow
@pytest.mark.usefixtures("in_this_process")
@pytest.mark.parametrize(
    ("arm", "models"),
    [("solo-taught", ("alice", "alice")), ("consult-imitated", ("policy", "expert"))],
)
def test_a_run_of_models_that_reason_on_tiny_ones(
    arm: str,
    models: tuple[str, str],
    word_problems: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Tiny models in place of the real ones, after the arms that they need."""
    monkeypatch.setattr(runner, "weights_folder", lambda: TINY)
    for size, tiny in zip(("0.5b", "1.5b"), models, strict=True):
        name = f"qwen2.5-coder-{size}"
        monkeypatch.setitem(runner.WEIGHTS, name, replace(runner.WEIGHTS[name], file=tiny))
    short = "--problems.held-out 2 --rollout.problems-per-step 2 --steps 2 --env.max-new-tokens 16"
    asks = f"{short} --env.expert-max-new-tokens 16 --env.reply-tokens 8"
    of_part = {"solo": short, "consult": asks}
    study = studies()["reason"]
    arms = {
        name: replace(known, flags=f"{known.flags} {of_part.get(name.partition('-')[0], '')}")
        for name, known in study.arms.items()
    }
    imitated = arms["consult-imitated"]
    few = "--questions 2 --max-new-tokens 16 --steps 2"
    flags = f"{imitated.flags.removesuffix(asks)} {few}"
    arms["consult-imitated"] = replace(imitated, flags=flags)
    run = replace(named(f"reason-{arm}-90"), study=replace(study, arms=arms))
    line = runner.result(run, tmp_path)
    if arm == "solo-taught":
        assert {"pass@1", "stated"} <= line["before"].keys() & line["after"].keys()
        assert {len(blocks) for blocks in line["curve"].values()} == {1}
        assert line["expert-tokens"] == 0 < line["tokens"]
    else:
        # As many of the expert's tokens as the arm before it took, which the processor decides.
        budget = tokens_of(tmp_path / "reason-consult-reread-90")["expert-tokens"]
        assert line["steps"] == 2 or line["expert_tokens"] >= budget > 0
        assert "avg@n/alone" in line["after"]


@pytest.mark.slow
@pytest.mark.usefixtures("in_this_process")
@pytest.mark.parametrize(
    ("name", "own"),
    [
        ("control-recall-other-same-330-60", {}),
        ("published-disjoint-published-330-80", {}),
        ("eapo-published-alone-120", {}),
        ("corea-errs-30", {"errs": "--questions 16 --fit-questions 16"}),
    ],
)
def test_a_line_has_what_the_study_measures(name: str, own: dict[str, str], tmp_path: Path) -> None:
    run = named(name)
    line = runner.result(replace(run, study=shortened(run.study, **own)), tmp_path)
    stored = run.study.stored()[name]
    assert line.keys() == stored.keys()
    assert line["after"].keys() == stored["after"].keys()
