"""EAPO's tables with the paper's models: parsed settings against arXiv:2509.23730."""

from collections.abc import Mapping
from functools import cache
from typing import Any

import pytest

from coterie import benchmark
from coterie.cli.command_line import parse
from coterie.cli.flags import parse_flags
from coterie.envs.paper_tables import Table
from coterie.evaluation.compare.inherited_settings import parse as parse_comparison
from coterie.evaluation.compare.suite import SuiteComparison
from coterie.experts.naming import pool_members
from coterie.extras.papers.distill import DistillSettings
from coterie.extras.papers.eapo import EapoComparison
from coterie.extras.papers.sweep import _at, tables
from coterie.training.config.train_settings import TrainSettings

TABLES: Mapping[str, Table] = {
    name: table for name, table in tables(at_scale=True).items() if name.startswith("eapo-")
}
R1_7B = "deepseek-ai/DeepSeek-R1-Distill-Qwen-7B"
R1_14B = "deepseek-ai/DeepSeek-R1-Distill-Qwen-14B"
QWQ, QWEN3 = "Qwen/QwQ-32B", "Qwen/Qwen3-8B"
# Section 3.1; appendix I adds stronger ones on other ports.
SERVED = "server:http://127.0.0.1:8000/v1?model=expert"
MATHS = ("aime24", "aime25", "aimo2")
# Table 4's order. EvalPlus names two sets; HumanEval+ is the one of HumanEval's problems.
OTHERS = (
    *("humaneval", "hle", "gpqa-main?split=train", "mmlu", "humanevalplus", "hotpotqa", "simpleqa"),
)
OTHER_HEADINGS = ["HumanEval", "HLE", "GPQA", "MMLU", "EvalPlus", "HotpotQA", "SimpleQA"]


@cache
def trainings(name: str) -> dict[str, TrainSettings]:
    return {
        variant.label: parse([*variant.flags, "--seed", "1", "--run-dir", "x"])
        for variant in TABLES[name].variants
        if variant.program == "train"
    }


def comparison(name: str) -> EapoComparison:
    command, *flags = TABLES[name].comparison
    assert command == "eapo"
    return parse_comparison(EapoComparison, flags, "benchmark.py eapo")


# Table, its row -> policy, expert, who may be asked, most experts at once, schedule, its rate.
TRAINED: list[tuple[str, str, tuple[str, str, str, int, str, float]]] = [
    ("eapo-1", "EAPO", (R1_7B, SERVED, "free", 0, "inv", 0.02)),
    ("eapo-1", "Self-exploratory RL", (R1_7B, SERVED, "never", 0, "inv", 0.02)),
    ("eapo-2", "Self-exploratory RL", (R1_7B, SERVED, "never", 0, "inv", 0.02)),
    ("eapo-2", "Sequential", (R1_7B, SERVED, "free", 1, "inv", 0.02)),
    ("eapo-2", "R1-14B as expert", (R1_7B, R1_14B, "free", 0, "inv", 0.02)),
    ("eapo-2", "EAPO", (R1_7B, SERVED, "free", 0, "inv", 0.02)),
    ("eapo-3", "Self-exploratory RL", (R1_7B, SERVED, "never", 0, "inv", 0.02)),
    ("eapo-3", "Homogeneous, R1-7B", (R1_7B, R1_7B, "free", 0, "inv", 0.02)),
    (
        *("eapo-3", "Heterogeneous, Llama-8B"),
        (R1_7B, "deepseek-ai/DeepSeek-R1-Distill-Llama-8B", "free", 0, "inv", 0.02),
    ),
    ("eapo-4", "EAPO", (R1_7B, SERVED, "free", 0, "inv", 0.02)),
    ("eapo-4", "Self-exploratory RL", (R1_7B, SERVED, "never", 0, "inv", 0.02)),
    # Appendix H: .02 and powers of the step.
    ("eapo-9", "constant, .02", (R1_7B, SERVED, "free", 0, "const", 0.02)),
    ("eapo-9", "s^-1/2", (R1_7B, SERVED, "free", 0, "inv-sqrt", 0.02)),
    ("eapo-9", "s^-2", (R1_7B, SERVED, "free", 0, "inv-sq", 0.02)),
    ("eapo-9", "s^-1", (R1_7B, SERVED, "free", 0, "inv", 0.02)),
    # Appendix J.
    ("eapo-11", "EAPO", (QWEN3, SERVED, "free", 0, "inv", 0.02)),
    ("eapo-11", "Self-exploratory RL", (QWEN3, SERVED, "never", 0, "inv", 0.02)),
    # Section 3.2, figure 3.
    ("eapo-figure-3", "EAPO, R1-7B", (R1_7B, SERVED, "free", 0, "inv", 0.02)),
    ("eapo-figure-3", "EAPO, R1-14B", (R1_14B, SERVED, "free", 0, "inv", 0.02)),
]


@pytest.mark.parametrize(("name", "label", "wanted"), TRAINED)
def test_what_a_row_trains(name: str, label: str, wanted: tuple[Any, ...]) -> None:
    run = trainings(name)[label]
    env, expert = run.env, run.agents["expert"].model
    told = (expert if not expert.startswith("server:") else expert.split("&")[0], env.consult)
    found = (run.agents["policy"].model, *told, env.at_once, env.schedule, env.accept_rate)
    assert found == wanted
    # Section 2.3 and 3.1: as they stand, over the same steps, on DAPO-Math-17K.
    assert (env.accept_scale, env.accept_total, env.experts) == (1, 0, 3)
    assert (run.problems.train, run.problems.eval) == ("dapo-17k", MATHS)
    assert (run.env.eval_samples, run.run.steps) == (32, 320)
    assert run.agents["policy"].tuning == "full"


def test_no_row_is_missing() -> None:
    rows = {(name, label) for name, label, _ in TRAINED}
    assert rows == {(name, label) for name in TABLES for label in trainings(name)}


@pytest.mark.parametrize(
    ("name", "tuning"), [("Distillation", "full"), ("Distillation, LoRA", "lora")]
)
def test_both_distillations(name: str, tuning: str) -> None:
    """Table 1: full weights and LoRA, with the prompt with which the policy is scored."""
    (flags,) = (v.flags for v in TABLES["eapo-1"].variants if v.label == name)
    distilled = parse_comparison(DistillSettings, [*flags, "--out", "x"], "distill")
    assert (distilled.policy, distilled.expert.split("&")[0]) == (R1_7B, SERVED)
    assert (distilled.tuning, distilled.problems) == (tuning, "dapo-17k")
    assert distilled.prompt_style == comparison("eapo-1").env.prompt_style == "panel"


# Table -> policy, expert of the workflow, pools, further policies, rows of trained policies.
COMPARED: dict[str, tuple[str, bool, list[list[str]], tuple[str, ...], tuple[str, ...]]] = {
    "eapo-1": (R1_7B, True, [], (), ()),
    "eapo-6": (
        *(R1_7B, False, [[R1_7B, R1_14B, SERVED]]),
        *((f"R1-14B={R1_14B}", f"QwQ={QWQ}"), ()),
    ),
    "eapo-7": (R1_7B, True, [[R1_14B]], (), (f"R1-14B={R1_14B}", f"QwQ-32B={QWQ}")),
    "eapo-8": (R1_7B, True, [], (), ()),
    "eapo-10": (
        *(R1_7B, False),
        [
            [f"server:http://127.0.0.1:{8001 + place}/v1?model={model}"]
            for place, model in enumerate(("Qwen3-235B-A22B", "GPT-5", "DeepSeek-V3.2"))
        ],
        *((), ()),
    ),
    "eapo-11": (QWEN3, True, [], (), ()),
}


@pytest.mark.parametrize("name", COMPARED)
def test_what_a_comparison_asks(name: str) -> None:
    asked = comparison(name)
    pools = [[member.split("&")[0] for member in pool_members(pool)] for pool in asked.pools]
    found = (asked.base, asked.workflow, pools, asked.policies, asked.others)
    assert found == COMPARED[name]
    assert asked.expert.split("&")[0] == SERVED
    # Section 3.1 and appendix G; three of 32 stored replies (appendix E).
    assert (asked.replies, asked.reply_temperature, asked.env.experts) == (32, None, 3)
    assert (asked.env.prompt_style, asked.env.max_new_tokens) == ("panel", 20480)
    if name == "eapo-7":
        assert (asked.problems, asked.samples) == (OTHERS, 1)
        assert asked.questions >= 14_042  # the questions of MMLU, the largest
        assert asked.scoring.programs
        assert asked.scoring.judge.split("&")[0] == SERVED
    else:
        assert (asked.problems, asked.samples) == (MATHS, 32)
        assert not asked.scoring.programs


def test_leap_has_its_papers_limits() -> None:
    """arXiv:2505.07787: four paths, a pause every 2,048 tokens, summaries of 256, two of them."""
    leap = comparison("eapo-1").leap
    assert (leap.paths, leap.block_tokens, leap.summary_tokens, leap.peers) == (4, 2048, 256, 2)
    assert (leap.max_new_tokens, leap.prompt_style) == (20480, "panel")
    flags = ("--preset", "eapo-r1-7b", "--leap.block-tokens", "100")
    assert parse_comparison(EapoComparison, flags, "eapo").leap.block_tokens == 100
    # The tiny team's answers end before a first pause of that length.
    tiny = parse_comparison(EapoComparison, ("--preset", "eapo-tiny"), "eapo")
    assert tiny.leap.block_tokens < tiny.leap.max_new_tokens


def test_table_4_has_seven_whole_sets() -> None:
    command, *flags = TABLES["eapo-4"].comparison
    asked = parse_flags(SuiteComparison, flags, prog=command)
    assert (asked.problems, asked.samples, asked.suite) == (OTHERS, 1, ("eapo",))
    assert asked.questions >= 14_042
    assert asked.scoring.programs
    assert asked.scoring.judge.split("&")[0] == SERVED
    assert list(TABLES["eapo-4"].columns) == [*OTHER_HEADINGS, "Avg"]


def test_a_set_of_any_name_has_its_place() -> None:
    """The third set is a file of the user's own."""
    systems = {"base": {"f1": 0.25}}
    results = {"sets": {name: {"systems": systems} for name in ("aime24", "aime25", "my.jsonl")}}
    assert _at(results, ("sets", "#3", "systems", "base", "f1")) == 0.25
    summary = {"f1/alone": 0.0, "f1/alone/sets": 0.5, "f1/alone/a": 0.1, "f1/alone/b": 0.9}
    assert [_at(summary, (f"f1/alone/#{n}",)) for n in (1, 2)] == [0.1, 0.9]
    assert _at(summary, ("f1/alone/#3",)) != _at(summary, ("f1/alone/#3",))  # NaN


def test_a_plan_of_table_3_reads_nothing_from_the_network(
    capsys: pytest.CaptureFixture[str], tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def offline(*_: Any, **__: Any) -> None:
        raise AssertionError("a configuration is fetched")

    monkeypatch.setattr("transformers.AutoConfig.from_pretrained", offline)
    flags = ("--preset", "--dry-run", "--seeds", "0", "--out", str(tmp_path))
    assert benchmark.main(["sweep", "eapo-3", *flags]) == 0
    assert capsys.readouterr().out.count("at most") == 4
