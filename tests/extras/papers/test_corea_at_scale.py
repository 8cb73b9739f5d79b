"""What COREA's tables at the paper's size ask, against the paper's numbers (arXiv:2603.03752)."""

from functools import cache
from pathlib import Path
from typing import Any

import pytest

from coterie.cli.command_line import parse as parse_training
from coterie.envs.corea_deferral.presets import MEASURED
from coterie.envs.corea_deferral.tables import AT_SCALE, TABLES
from coterie.evaluation.compare.inherited_settings import inherited_settings, parse
from coterie.evaluation.compare.jobs import further_questions, open_questions
from coterie.evaluation.compare.settings import ComparisonSettings
from coterie.evaluation.compare.suite import SuiteComparison, _fitted
from coterie.evaluation.compare.suites import suite_called
from coterie.extras.papers.corea import CoreaComparison
from coterie.extras.papers.sweep_commands import comparing
from coterie.problems.canonical import problem_key
from coterie.problems.opening import open_source, trains_on
from coterie.problems.prepare import ProblemSettings, prepare
from coterie.problems.split import sample

# Section 4.1; GPQA's 448 are all of its main part.
SETS = ("deepmath", "math500", "gsm8k", "olympiadbench", "gpqa-main?split=train", "commonsenseqa")
# Section 4.4: whole sets, 500 questions of DeepMath, ten runs at temperature .6.
ASKED = {
    "questions": 0,
    "held_out": 500,
    "samples": 10,
    "temperature": 0.6,
    "top_p": 1.0,
}
# Section 4.3 and 5.1; appendices A.1 and A.2, with batches of 32 and of 8 times 4.
COMPARED = {
    "threshold": "large-pass@1",
    "threshold_on_test": True,
    "output_weight": 4.0,
    "fit_problems": "deepmath",
    "fit_questions": 16_000,
    "probe_lr": 5e-5,
    "probe_epochs": 20,
    "probe_batch": 32,
    "router_lr": 5e-5,
    "router_epochs": 2,
    "router_batch": 32,
    "router_tuning": "full",
    "max_new_tokens": 4096,
    "stop": (),
}
# Appendix C: a table for each set.
OF_TABLE = {
    **dict.fromkeys(("corea-1", "corea-2", "corea-3", "corea-4", "corea-11"), SETS),
    **{f"corea-{n}": (name,) for n, name in enumerate(SETS, 5)},
    **dict.fromkeys(("corea-12", "corea-14"), SETS[:3]),
    **dict.fromkeys(("corea-13", "corea-15"), SETS[3:]),
    "corea-figure-2": ("deepmath",),
    **dict.fromkeys(("corea-figure-4", "corea-figure-9"), SETS),
}
KINDS = {"corea": CoreaComparison, "suite": SuiteComparison}
# Tables 2 to 4, 12, 13: the rows.
REWARDS = ["L1", "Sample L1", "L2", "Brier", "KL", "Sample KL"]


training = cache(parse_training)
"""Tables share their variants."""


@pytest.fixture
def asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """The settings that the comparison of a table comes to; its runs need not exist."""
    monkeypatch.setattr(CoreaComparison, "_sources", lambda self: _preset_alone(self))
    monkeypatch.setattr(SuiteComparison, "sources", lambda self: _preset_alone(self))

    def settings(name: str) -> Any:
        (job,) = comparing(f"{name}-preset", AT_SCALE[name], [3], tmp_path, [])
        kind, *arguments = job.arguments
        return parse(KINDS[kind], arguments, "benchmark.py")

    return settings


def _preset_alone(settings: Any) -> Any:
    return inherited_settings((), settings.preset)


def test_every_table_and_figure_is_among_these() -> None:
    assert set(OF_TABLE) == set(TABLES) == set(AT_SCALE)
    assert dict(MEASURED) == dict(zip(SETS, (500, 500, 1319, 674, 448, 1221)))


@pytest.mark.parametrize("name", OF_TABLE)
def test_a_table_is_asked_as_in_the_paper(name: str, asked: Any) -> None:
    settings = asked(name)
    assert settings.problems == OF_TABLE[name]
    assert {key: getattr(settings, key) for key in ASKED} == ASKED
    assert settings.scoring.checker == "math-verify"
    if isinstance(settings, CoreaComparison):
        assert {key: getattr(settings, key) for key in COMPARED} == COMPARED
        small = "1.5B" if name == "corea-11" else "7B"
        assert settings.base == f"Qwen/Qwen2.5-{small}-Instruct"
        # Section 4.3: nominal sizes.
        assert settings.size_ratio == pytest.approx(32 / float(small[:-1]))
        # The large model of the cascades is the one that was trained (section 4.2).
        assert settings.large.endswith("corea-qwen-32b-3")
        return
    assert settings.seed == 3


@pytest.mark.parametrize("name", ["corea-1", "corea-11"])
def test_out_of_domain_columns_come_from_one_command(name: str, asked: Any) -> None:
    """Table 1: OOD Math includes Math500, GSM8K, and OlympiadBench; OOD Non-Math GPQA and
    CommonsenseQA."""
    assert asked(name).averages == (
        "OOD Math=math500 gsm8k olympiadbench",
        "OOD Non-Math=gpqa-main?split=train commonsenseqa",
    )
    columns = AT_SCALE[name].columns
    assert columns["Pass@1 DeepMath"] == ("sets", "deepmath", "{row}", "accuracy", "value")
    assert columns["cost OOD math"] == ("averages", "OOD Math", "{row}", "cost", "value")
    assert columns["LLM OOD other"] == ("averages", "OOD Non-Math", "{row}", "deferred", "value")
    assert len(columns) == 9


def test_a_suite_of_the_preset_has_the_papers_sets_and_lengths() -> None:
    flags = ["--policies", "gold=scripted:oracle", "--suite", "corea", "--preset", "corea-qwen-7b"]
    settings = parse(SuiteComparison, flags, "benchmark.py")
    suite, _ = _fitted(suite_called("corea"), settings)
    assert suite.problems == SETS
    assert (settings.questions, settings.held_out, settings.samples) == (0, 500, 10)
    assert suite.settings["max_new_tokens"] == 4096
    # A flag is about all sets.
    few = parse(SuiteComparison, [*flags, "--questions", "9", "--samples", "2"], "benchmark.py")
    assert (few.questions, few.held_out, few.samples) == (9, 0, 2)
    # EAPO samples 32 answers to whole sets (section 3.1), with the same mechanism.
    eapo = parse(SuiteComparison, [*flags[:4], "--preset", "eapo-r1-7b"], "benchmark.py")
    assert (eapo.questions, eapo.held_out, eapo.samples) == (0, 0, 32)
    # The tiny team's presets leave numbers alone.
    tiny = parse(SuiteComparison, [*flags[:4], "--preset", "corea-tiny"], "benchmark.py")
    assert (tiny.questions, tiny.samples) == (128, 8)


def test_which_sets_train_on_what_they_measure_with() -> None:
    names = (*SETS, "gsm8k?split=test", "deepmath?split=train", "math-8020", "dapo-17k", "recall")
    assert [name for name in names if trains_on(name)] == ["deepmath", "dapo-17k"]


@pytest.mark.parametrize(
    ("name", "labels"),
    [
        ("corea-3", REWARDS),
        ("corea-4", ["4 traces", "8 traces", "16 traces", "32 traces"]),
        *((f"corea-{n}", ["SLM", "RLVR", *REWARDS]) for n in (12, 13)),
        *(
            (f"corea-figure-{n}", [f"{k}, {s}" for s in SIZES for k in ("Base", "RLVR", "L1")])
            for SIZES in [("1.5B", "7B", "8B", "32B")]
            for n in (4, 9)
        ),
    ],
)
def test_rows_of_models_alone(name: str, labels: list[str]) -> None:
    table = AT_SCALE[name]
    assert list(table.rows.values()) == labels
    named = {word.partition("=")[0] for word in table.comparison if "=" in word}
    assert set(table.rows) <= named
    for variant in table.variants:
        run = training(variant.flags)
        rewards = {"none"} if "RLVR" in variant.label else {"l1", "l2", "kl"}
        assert run.env.confidence_reward in rewards
        assert f"{{{variant.name}}}" in " ".join(table.comparison)


def test_figures_4_and_9_train_four_models_with_and_without_the_reward() -> None:
    """Section 4.4: 150, 80, 120 and 50 steps."""
    runs = {v.name: training(v.flags) for v in AT_SCALE["corea-figure-4"].variants}
    steps = {"qwen-1.5b": 150, "qwen-7b": 80, "llama-8b": 120, "qwen-32b": 50}
    assert {name: run.run.steps for name, run in runs.items()} == {
        f"corea-{name}{end}": count for name, count in steps.items() for end in ("-rlvr", "")
    }
    assert runs["corea-qwen-32b"].env.learners == ("large",)
    assert AT_SCALE["corea-figure-4"].bars == ("Pass@1", "ECE")
    assert len(AT_SCALE["corea-figure-9"].bars) == 12


def test_probe_and_router_learn_from_the_problems_that_the_run_trained_on(tmp_path: Path) -> None:
    """DeepMath16K is what trains (appendix A): the same choice, by the run's seed."""
    path = tmp_path / "many.jsonl"
    path.write_text(
        "".join(f'{{"question": "{n} + 1 =", "answer": "{n + 1}"}}\n' for n in range(90))
    )
    settings = ComparisonSettings(problems=(str(path),), questions=20, seed=5)
    scored = open_questions(settings.problems, settings)
    prepared = prepare(ProblemSettings(train=str(path), held_out=20, limit=30), 5)
    assert {p.id for p in scored[0].problems} == {p.id for p in prepared.evaluation}
    fitted = further_questions(scored, str(path), 30, settings)
    assert fitted is not None
    source = open_source(str(path), purpose="train", seed=5)
    trained = sample(source, 30, 5, frozenset(problem_key(p) for p in prepared.evaluation))
    assert {p.id for p in fitted.problems} == {trained[i].id for i in range(trained.size or 0)}


def test_whole_sets_and_what_deepmath_holds_out() -> None:
    """Every stand-in has 620 rows: all of a test set, 500 of DeepMath, and GPQA's are not cut."""
    from miniatures.stand_ins import ROWS_OF_A_SET, data_sets

    with data_sets():
        whole = open_questions(SETS, ComparisonSettings(questions=0, held_out=500))
        few = open_questions(SETS, ComparisonSettings(questions=7))
        cut = open_questions(["gpqa-main"], ComparisonSettings(questions=0))
    counts = [500, *[ROWS_OF_A_SET] * 5]
    assert [len(questions.problems) for questions in whole] == counts
    assert [len(questions.problems) for questions in few] == [7] * 6
    # CoRe's fifth.
    assert len(cut[0].problems) == ROWS_OF_A_SET // 5


def test_a_generator_asks_as_many_as_a_run_holds_out() -> None:
    sets = open_questions(
        ["recall", "recall?max_length=3"], ComparisonSettings(questions=4, held_out=9)
    )
    assert [len(questions.problems) for questions in sets] == [9, 9]
    (default,) = open_questions(["recall"], ComparisonSettings(questions=0))
    assert len(default.problems) == 512
