"""Papers' tables in miniature: what they run, that it can be run, and what becomes of it."""

import dataclasses
import importlib
import json
import math
import re
import shlex
import shutil
import subprocess
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import tyro
from rich.console import Console

from coterie import benchmark, train
from coterie.cli.command_line import parse
from coterie.envs.paper_tables import Variant
from coterie.envs.presets import published
from coterie.extras.papers.sweep import (
    Sweep,
    _compared,
    _show,
    _trained,
    comparing,
    run_of,
    tables,
)
from coterie.extras.papers.sweep_commands import SweepCommand, answers_of, training

TABLES, AT_SCALE = tables(), tables(at_scale=True)
VARIANTS = {v: None for table in TABLES.values() for v in table.variants}
SMALL = ("--steps", "1", "--train", "problems.held-out=4", "rollout.problems-per-step=2")


@pytest.fixture
def inside(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """Commands run inside this process, where torch is loaded already."""
    ran: list[list[str]] = []

    def run(command: list[str], check: bool) -> Any:
        program, arguments = command[2].removeprefix("coterie."), command[3:]
        ran.append([program, *arguments])
        main = {"train": train.main, "benchmark": benchmark.main}[program]
        return subprocess.CompletedProcess(command, main(arguments))

    monkeypatch.setattr("coterie.extras.papers.sweep_commands.subprocess", SimpleNamespace(run=run))
    return ran


def test_every_table_of_the_papers_is_known(capsys: pytest.CaptureFixture[str]) -> None:
    numbers = {"core": range(1, 7), "corea": range(1, 16), "eapo": range(1, 12)}
    figures = {*(f"corea-figure-{n}" for n in (2, 4, 9)), "eapo-figure-3"}
    assert set(TABLES) == {f"{paper}-{n}" for paper, ns in numbers.items() for n in ns} | figures
    assert benchmark.main(["sweep"]) == 0
    shown = capsys.readouterr().out
    for name, table in TABLES.items():
        assert name in shown
        assert bool(table.why_not) != bool(table.variants or table.comparison)
        assert table.why_not in shown
        assert table.why_not or table.columns


@pytest.mark.parametrize("variant", VARIANTS, ids=lambda variant: variant.name)
def test_every_variant_can_be_trained(variant: Variant) -> None:
    if variant.program == "distill":
        from coterie.extras.papers.distill import DistillSettings

        tyro.cli(DistillSettings, args=[*variant.flags, "--out", "x"])
    else:
        from coterie import envs

        settings = parse([*variant.flags, "--seed", "1", "--run-dir", "x"])
        envs.make(settings.choice.env, settings=settings.env, roles=settings.choice.roles).close()


def test_variants_of_one_name_are_the_same() -> None:
    """Tables share runs."""
    flags: dict[str, set[Any]] = {}
    for table in (*TABLES.values(), *AT_SCALE.values()):
        for variant in table.variants:
            flags.setdefault(variant.name, set()).add(variant.flags)
    assert all(len(flags_of_name) == 1 for flags_of_name in flags.values())


def test_the_pools_of_table_3_are_one_model_each() -> None:
    """EAPO, table 3: the policy's own model, another of like strength, and the expert."""
    players = [
        parse([*variant.flags, "--run-dir", "x"]).agents["expert"].model
        for variant in TABLES["eapo-3"].variants
        if "never" not in variant.flags
    ]
    assert players == ["tiny:policy", "tiny:pupil", "tiny:expert"]


@pytest.mark.parametrize("name", [name for name, table in TABLES.items() if table.comparison])
def test_every_comparison_can_be_asked_for(
    name: str, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    flags = ("--seeds", "7", "--dry-run", "--out", str(tmp_path))
    assert benchmark.main(["sweep", name, *flags]) == 0
    *_, last = capsys.readouterr().out.strip().splitlines()
    python, program, command, *arguments = shlex.split(last)
    assert (python, program) == ("python", "benchmark.py")
    module, settings, _ = benchmark.comparisons()[command]
    asked = tyro.cli(getattr(importlib.import_module(module), settings), args=arguments)
    assert asked.seed == 7
    # Every variant's run stands in it, and nothing is left to be filled in.
    for variant in TABLES[name].variants:
        assert f"runs/{variant.name}-7" in last
    assert "{" not in last.replace("{solution}", "")


def test_at_the_papers_size_nothing_of_the_tiny_team_is_left() -> None:
    assert set(AT_SCALE) == set(TABLES)
    names = {*published(), *(role for paper in published().values() for role in paper.models)}
    for name, table in AT_SCALE.items():
        words = [*table.comparison, *(word for v in table.variants for word in v.flags)]
        small = TABLES[name]
        assert bool(words) == bool(small.comparison or small.variants or "figure" in name), name
        assert not [w for w in words if "tiny:" in w or "chains" in w or "recall" in w], name
        assert words.count("--env") == words.count("--algo") == 0
        for variant in table.variants:
            if variant.program == "train":
                assert variant.flags[:1] == ("--preset",)
                assert variant.flags[1] in names
                # A run is named after its preset, so that no miniature is taken for it.
                assert variant.name.startswith(variant.flags[1])


def test_table_4_of_core_has_its_second_pair_and_three_larger_models() -> None:
    """arXiv:2601.21600, appendix D."""
    models = {
        "sd-e2-qwen-7b-gsm8k": ["Qwen/Qwen2.5-7B-Instruct"],
        "sd-e2-phi-7b-gsm8k": ["microsoft/Phi-3-small-8k-instruct"],
        "sd-e2-ministral-8b-gsm8k": ["mistralai/Ministral-3-8B-Reasoning-2512"],
    }
    pair = ["microsoft/Phi-4-mini-reasoning", "mistralai/Ministral-3-3B-Reasoning-2512"]
    models |= dict.fromkeys(("sd-e2-reasoning-gsm8k", "core-reasoning-gsm8k"), pair)
    table = AT_SCALE["core-4"]
    assert [v.name for v in table.variants[:5]] == [*models]
    assert (table.each, len(table.variants)) == (5, 4 * 5)
    for variant in table.variants[:5]:
        run = parse([*variant.flags, "--seed", "1", "--run-dir", "x"])
        assert [agent.model for agent in run.agents.values()] == models[variant.name]
    # The miniature is of the second pair, too.
    assert [v.name for v in TABLES["core-4"].variants[1:]] == [
        "core-alice-carol-sd-e2",
        "core-alice-carol",
    ]


@pytest.mark.parametrize(("table", "data"), [("core-5", 1), ("core-6", 3)])
def test_no_training_at_the_papers_size_repeats_another(table: str, data: int) -> None:
    """Equation 3 pays nothing to six traces under a cap of ten: without it CoRe is the same run."""
    runs = [parse([*v.flags, "--seed", "1", "--run-dir", "x"]) for v in AT_SCALE[table].variants]
    kept = {(*dataclasses.astuple(run.env), run.problems.train, run.choice.preset) for run in runs}
    assert len(kept) == len(runs)
    paying = [run for run in runs if run.env.explore_mode == "leave-one-out"]
    assert len(paying) == data
    assert all(run.env.w_explore == (0.2, 0.05) for run in paying)
    assert not [run for run in runs if not any(run.env.w_explore)]
    assert AT_SCALE[table].note


@pytest.mark.slow
def test_a_dry_run_at_the_papers_size_plans_every_run(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    flags = ("--preset", "--dry-run", "--card", "40", "--seeds", "0", "1", "--out", str(tmp_path))
    assert benchmark.main(["sweep", "corea-11", *flags, "--steps", "1"]) == 0
    lines = capsys.readouterr().out.strip().splitlines()
    commands = [line for line in lines if line.startswith("python ")]
    plans = [line for line in lines if line.startswith("  # cuda")]
    # Two trainings and two comparisons, each with two seeds.
    assert len(commands) == 6
    assert len(plans) == 4
    assert plans[0] == plans[1]
    # 32 billion weights in float32 with gradients and both moments: 16 bytes each are 488 GiB.
    taken = int(re.findall(r"cuda\S* (\d+) of 40 GiB \(does not fit", plans[0])[0])
    assert 488 <= taken <= 700
    # All six sets, ten times (section 4.4).
    assert lines.count("  # 46,620 answers of each model or system to 4,662 problems") == 2
    # Before and after: 500 problems, two roles, ten answers each.
    assert re.search(r"at most [\d,]+ hours, 20,000 answers of evaluation among them$", plans[0])
    assert re.fullmatch(r"trainings with .*: at most [\d,]+ hours in all", lines[-2])
    assert lines[-1] == "hours of comparisons are not planned"
    assert not (tmp_path / "sweep.json").exists()


@pytest.mark.parametrize(
    ("name", "more", "counted"),
    [
        # COREA, sections 4.1 and 4.4: 500 + 500 + 1,319 + 674 + 448 + 1,221, ten times; the router
        # learns from eight answers to each of 16,000.
        ("corea-1", (), "46,620 answers .* to 4,662 problems, 128,000 of one model to fit on"),
        ("corea-9", (), "4,480 answers .* to 448 problems, 128,000 of one model to fit on"),
        ("corea-12", (), "23,190 answers of each model or system to 2,319 problems"),
        ("corea-figure-2", ("--samples", "2"), "1,000 answers .* to 500 problems, .*"),
        ("corea-4", ("--questions", "100"), "6,000 answers .* to 600 problems"),
        # EAPO, sections 3.1 and 3.2: 32 answers; one to the seven other sets.
        ("eapo-8", ("--problems", "aime24", "aime25"), "1,920 answers .* to 60 problems"),
        ("eapo-7", (), "29,049 answers .* to 29,049 problems"),
        ("eapo-1", ("--problems", "x.jsonl"), "answers are not counted: only reading .*"),
    ],
)
def test_answers_of_a_comparison_are_counted(
    name: str, more: tuple[str, ...], counted: str, tmp_path: Path
) -> None:
    (job,) = comparing(f"{name}-preset", AT_SCALE[name], [0], tmp_path, more)
    assert re.fullmatch(counted, answers_of(job.arguments))


@pytest.mark.slow
def test_a_model_whose_configuration_is_missing_does_not_end_a_plan(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """CoRe's table 4: the code of Phi-3-small comes with its checkpoint."""

    def offline(name: str, *_: Any, **__: Any) -> None:
        raise OSError(f"{name} cannot be reached")

    monkeypatch.setattr("transformers.AutoConfig.from_pretrained", offline)
    flags = ("--preset", "--dry-run", "--seeds", "0", "--out", str(tmp_path))
    assert benchmark.main(["sweep", "core-4", *flags]) == 0
    lines = capsys.readouterr().out.strip().splitlines()
    # Five rows on each of four sets; one model a set has no plan.
    assert sum(line.startswith("python train.py") for line in lines) == 20
    unknown = [line for line in lines if line.startswith("  # not planned: there is no plan")]
    assert len(unknown) == 4
    assert "Phi-3-small" in unknown[0]
    assert re.fullmatch(
        r"trainings .*: at most [\d,]+ hours in all; 4 of them could not be planned", lines[-1]
    )


def test_distillations_count_as_not_planned(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("coterie.extras.papers.sweep._planned", lambda *_: ("# planned", 5.0))
    flags = ("--preset", "--dry-run", "--seeds", "0", "1", "--out", str(tmp_path))
    # The note of a table comes first.
    assert benchmark.main(["sweep", "core-5", *flags]) == 0
    assert capsys.readouterr().out.startswith("# Equation 3 pays nothing to six traces")
    compare = ("--compare", "problems=aime24 aime25")
    assert benchmark.main(["sweep", "eapo-1", *flags, *compare]) == 0
    lines = capsys.readouterr().out.strip().splitlines()
    # Two trainings and two distillations, each with two seeds.
    assert lines.count("  # not planned: a distillation has no plan") == 4
    total = "trainings with their evaluations: at most 20 hours in all"
    assert f"{total}; 4 of them could not be planned" in lines


def test_bases_stand_before_the_variants_of_their_data_set(tmp_path: Path) -> None:
    table = AT_SCALE["core-1"]
    for place, variant in enumerate(table.variants):
        folder = run_of(variant, 0, tmp_path)
        folder.mkdir(parents=True)
        summary = {"before": {"pass@1/alice": -place}, "after": {"pass@1/alice": place}}
        (folder / "summary.json").write_text(json.dumps(summary))
    rows = _trained(table, Sweep("core-1", preset=True, seeds=(0,), out=tmp_path))
    labels = ["Base", "CoRe", "SD-E2", "each for itself"]
    assert list(rows) == [f"{a}, {b}" for b in ("gsm8k", "math", "aime", "gpqa") for a in labels]
    assert rows["Base, math"]["alice @1"] == [-3]
    assert rows["SD-E2, math"]["alice @1"] == [4]


def test_distillations_take_the_problems_of_trainings(tmp_path: Path, capsys: Any) -> None:
    """And keep out of training what is scored, by the comparison and by the trainings."""
    more = ("problems.train=gsm8k", "problems.held_out=64", "problems.eval=aime24 aime25")
    flags = ("--seeds", "0", "--dry-run", "--out", str(tmp_path))
    more = ("--train", *more, "rollout.problems-per-step=2", "problems.decontaminate")
    compare = ("--compare", "problems=math500 aime24", "no-peers")
    assert benchmark.main(["sweep", "eapo-1", *flags, *more, *compare]) == 0
    notice, *lines = capsys.readouterr().out.splitlines()
    kept = "--problems gsm8k --questions 64 --scored math500 aime24 aime25 --seed 0"
    assert [kept in line for line in lines if " distill " in line] == [True, True]
    left_out = "--rollout.problems-per-step, --problems.decontaminate"
    assert notice == f"# distillations leave out {left_out}, which only train.py takes"
    assert "--problems.eval aime24 aime25" in lines[0]
    assert "--problems.decontaminate --seed 0" in lines[0]
    assert "--no-peers --seed 0" in lines[-1]


def test_a_distillation_that_was_killed_while_it_wrote_its_model_begins_again(
    tmp_path: Path,
) -> None:
    table = next(t for t in TABLES.values() if any(v.program == "distill" for v in t.variants))
    command = next(
        command
        for command in training(table, (0,), tmp_path, steps=1, more=())
        if command.arguments[0] == "distill"
    )
    (command.folder / "final" / "policy").mkdir(parents=True)
    assert not command.finished
    (command.folder / "distillation.json").touch()
    assert command.finished


def test_a_sweep_builds_its_table_and_continues_after_a_kill(
    inside: list[list[str]], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    flags = ["sweep", "core-1", *SMALL, "--out", str(tmp_path), "--seeds"]
    assert benchmark.main([*flags, "0", "1"]) == 0
    assert [command[-1] for command in inside] == [
        str(tmp_path / "runs" / f"{name}-{seed}")
        for name in ("core-alice-bob", "core-alice-bob-sd-e2", "core-alice-bob-alone")
        for seed in (0, 1)
    ]
    rows = json.loads((tmp_path / "core-1.json").read_text())["rows"]
    assert list(rows) == ["Base", "CoRe", "SD-E2", "each for itself"]
    summaries = [
        json.loads((tmp_path / "runs" / f"core-alice-bob-{seed}" / "summary.json").read_text())
        for seed in (0, 1)
    ]
    for row, when in (("Base", "before"), ("CoRe", "after")):
        values = [summary[when]["pass@1/alice"] for summary in summaries]
        assert rows[row]["alice @1"]["values"] == values
        assert rows[row]["alice @1"]["mean"] == pytest.approx(sum(values) / 2)
    assert "In place of the paper's" in capsys.readouterr().out
    # Nothing is left; another seed is added to what is there.
    inside.clear()
    assert benchmark.main([*flags, "0", "1"]) == 0
    assert inside == []
    assert benchmark.main([*flags, "0", "1", "2", "--dry-run"]) == 0
    assert capsys.readouterr().out.count("--seed 2") == 3
    # Two runs of one seed pair up.
    first, second = (tmp_path / "runs" / f"core-alice-bob{end}-0" for end in ("", "-alone"))
    assert benchmark.main(["compare", "--resamples", "20", str(first), str(second)]) == 0
    assert "core-teaching, 4 problems, after training" in capsys.readouterr().out
    # One run was cut off after its last step, the other before its first checkpoint.
    for run in (first, second):
        (run / "summary.json").unlink()
    shutil.rmtree(second / "checkpoints")
    assert benchmark.main([*flags, "0"]) == 0
    assert inside[0] == ["train", "--resume", str(first)]
    assert inside[1][-2:] == ["--run-dir", str(second)]
    assert (second / "summary.json").is_file()
    # Other settings are not put beside these.
    assert benchmark.main(["sweep", "core-1", "--steps", "2", "--out", str(tmp_path)]) == 2
    assert "with another --steps; name another folder with --out" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("left", "resumed"),
    [("warmup-000010", True), ("step-000010", True), (".step-000010.part", False)],
)
def test_a_sweep_resumes_from_whole_checkpoints_only(
    tmp_path: Path, left: str, resumed: bool
) -> None:
    """A whole checkpoint, of the warm-up too."""
    (tmp_path / "checkpoints" / left).mkdir(parents=True)
    command = SweepCommand("train", ("--steps", "2"), tmp_path, "summary.json").command()
    assert (command == ["train.py", "--resume", str(tmp_path)]) is resumed


def test_a_failed_command_stops_a_sweep(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def run(command: list[str], check: bool) -> Any:
        return subprocess.CompletedProcess(command, 137)

    monkeypatch.setattr("coterie.extras.papers.sweep_commands.subprocess", SimpleNamespace(run=run))
    assert benchmark.main(["sweep", "core-1", "--out", str(tmp_path)]) == 2
    message = capsys.readouterr().err
    assert "ended with exit code 137; the same sweep continues from there" in message


def test_a_table_from_comparisons(inside: list[list[str]], tmp_path: Path) -> None:
    flags = ["sweep", "eapo-8", "--out", str(tmp_path), "--seeds", "0", "1"]
    few = ("questions=4", "samples=1", "resamples=20", "replies=4")
    assert benchmark.main([*flags, "--compare", *few]) == 0
    assert [command[:2] for command in inside] == [["benchmark", "eapo"]] * 2
    rows = json.loads((tmp_path / "eapo-8.json").read_text())["rows"]
    assert list(rows) == ["Wrong experts", "Useless experts", "Experts"]
    for seed in (0, 1):
        results = json.loads((tmp_path / "eapo-8" / f"seed-{seed}" / "results.json").read_text())
        figures = results["systems"]["useless"]
        assert rows["Useless experts"]["avg@n"]["values"][seed] == figures["avg@n"]["value"]
        assert rows["Useless experts"]["tokens"]["values"][seed] == pytest.approx(figures["tokens"])


@pytest.mark.parametrize(
    ("table", "compare", "sentence"),
    [
        # The preset's third set is a competition's file.
        ("eapo-1", (), "aimo2 is a competition file"),
        ("eapo-8", ("problems=aime24 aime52",), "unknown problems 'aime52'"),
        ("eapo-8", ("replys=3",), "replys"),
    ],
)
@pytest.mark.parametrize("dry", [(), ("--dry-run",)], ids=["run", "dry"])
def test_comparisons_are_checked_before_the_first_training(
    table: str,
    compare: tuple[str, ...],
    sentence: str,
    dry: tuple[str, ...],
    inside: list[list[str]],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    flags = ["sweep", table, "--preset", "--seeds", "0", "--out", str(tmp_path), *dry]
    assert benchmark.main([*flags, *(["--compare", *compare] if compare else [])]) == 2
    assert inside == []
    assert sentence in " ".join(capsys.readouterr().err.split())
    assert not list(tmp_path.iterdir())


def test_an_ungradable_problem_is_found_before_the_first_training(
    graded_files: dict[str, str], inside: list[list[str]], tmp_path: Path, capsys: Any
) -> None:
    flags = ["sweep", "eapo-1", "--seeds", "0", "--out", str(tmp_path / "out"), "--compare"]
    assert benchmark.main([*flags, f"problems={graded_files['judged']}"]) == 2
    assert "--scoring.judge" in capsys.readouterr().err
    assert inside == []


def test_settings_of_comparisons_can_change_until_the_first_one(
    inside: list[list[str]], tmp_path: Path, capsys: Any
) -> None:
    flags = ["sweep", "eapo-8", "--seeds", "0", "--out", str(tmp_path)]
    # The trainings of other tables have settings that this one does not need.
    trained = {"steps": 9, "train": ["problems.held-out=4"]}
    (tmp_path / "sweep.json").write_text(json.dumps(trained | {"compare": []}))
    (tmp_path / "runs" / "eapo-0").mkdir(parents=True)
    few = ("questions=2", "samples=1", "resamples=5", "replies=3")
    assert benchmark.main([*flags, "--compare", *few]) == 0
    assert len(inside) == 1
    stored = json.loads((tmp_path / "sweep.json").read_text())
    assert stored == trained | {"compare": list(few)}
    assert benchmark.main([*flags, "--compare", "questions=3"]) == 2
    assert "holds runs with another --compare" in capsys.readouterr().err


@pytest.mark.usefixtures("drawn")
@pytest.mark.parametrize(
    ("name", "at_scale", "panels", "groups"),
    [
        ("corea-figure-4", True, ["Pass@1", "ECE"], ["1.5B", "7B", "8B", "32B"]),
        ("corea-figure-9", False, None, ["smaller", "small", "large"]),
    ],
)
def test_figures_4_and_9_of_corea_are_drawn(
    name: str,
    at_scale: bool,
    panels: list[str] | None,
    groups: list[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Base, RLVR and L1 of every model beside each other, from the results of two seeds: a row's
    bar is the mean of its two figures."""
    import coterie.evaluation.compare.pictures as pictures

    drawn: list[Any] = []
    original = pictures.draw_grouped_bars

    def watched(figures: Any, *more: Any) -> Path:
        drawn.append(figures)
        return original(figures, *more)

    monkeypatch.setattr(pictures, "draw_grouped_bars", watched)
    table = (AT_SCALE if at_scale else TABLES)[name]
    settings = Sweep(name, preset=at_scale, seeds=(0, 1), out=tmp_path)
    jobs = list(comparing(settings.shown, table, (0, 1), tmp_path, []))
    for seed, job in enumerate(jobs):
        content: dict[str, Any] = {}
        for place, row in enumerate(table.rows):
            for keys in table.columns.values():
                at = content
                for key in keys[:-1]:
                    at = at.setdefault(key.replace("{row}", row), {})
                at[keys[-1]] = place / 100 + 0.2 * seed
        job.folder.mkdir(parents=True)
        (job.folder / job.done).write_text(json.dumps(content))
    _show(table, _compared(table, jobs), settings, Console(quiet=True))
    assert (tmp_path / f"{settings.shown}.png").read_bytes().startswith(b"\x89PNG")
    (figures,) = drawn
    if panels is not None:
        assert list(figures) == panels
    rows = [f"{kind}, {group}" for group in groups for kind in ("Base", "RLVR", "L1")]
    for column in figures.values():
        assert [*column] == rows
        means = [estimate.value for estimate in column.values()]
        assert means == pytest.approx([place / 100 + 0.1 for place in range(len(rows))])


def test_a_mean_of_some_seeds_says_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    settings = Sweep("core-3", seeds=(0, 1, 2), out=tmp_path)
    values = {"CoRe": {"alice @1": [0.5, math.nan, 0.9], "alice @2": [0.5, 0.5, 0.5]}}
    _show(TABLES["core-3"], values, settings, Console(width=120))
    shown = capsys.readouterr().out
    # s = .283, t_1 = 12.71: half = 2.541.
    assert ".700 ± 2.541 (2 of 3)" in shown
    assert ".500 ± .000\n" in shown
