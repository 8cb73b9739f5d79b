"""Every known data set against the table of the papers' sets, written down here a second time.

Each is opened by its own name from a local folder in the hub's layout that holds one synthetic row.
"""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow
import pyarrow.parquet
import pytest

from coterie.datatypes import UserError
from coterie.problems import opening
from coterie.problems.hub import HUB_SETS

BOXED = r"Because of \boxed{1} we have \boxed{\frac{1}{2}}."
CHOICES = ["w", "x", "y", "z"]

# Row as published, what the question ends with, gold, kind.
ROWS: dict[str, tuple[dict[str, Any], str, str, str]] = {
    "gsm8k": ({"question": "Q?", "answer": "1+1\n#### 1,080"}, "Q?", "1080", "number"),
    "math": (
        {"problem": "Q?", "solution": BOXED, "level": "Level 5", "type": "Algebra"},
        "Q?", r"\frac{1}{2}", "math",
    ),
    "math500": (
        {"problem": "Q?", "answer": r"\frac{1}{2}", "solution": BOXED,
         "unique_id": "test/a/1.json"},
        "Q?", r"\frac{1}{2}", "math",
    ),
    "aime": ({"problem": "Q?", "answer": "042"}, "Q?", "42", "number"),
    "aime-old": (
        {"ID": "1983-1", "Year": 1983, "Question": "Q?", "Answer": "060", "Part": None},
        "Q?", "60", "number",
    ),
    "aime24": ({"problem": "Q?", "solution": r"\boxed{204}"}, "Q?", "204", "number"),
    "gpqa": (
        {"Question": "Q?", "Correct Answer": "right ", "Incorrect Answer 1": "a",
         "Incorrect Answer 2": "b", "Incorrect Answer 3": "c", "Record ID": "rec123456"},
        "", "", "choice",
    ),
    "deepmath": (
        {"question": "Q?", "final_answer": "Yes", "difficulty": 5.0, "topic": "t",
         "r1_solution_1": "..."},
        "Q?", "Yes", "text",
    ),
    "olympiadbench": (
        {"question": "Q?", "final_answer": ["$2$", "$3$"], "answer_type": "Numerical", "unit": None,
         "is_multiple_answer": True, "error": None, "context": "C."},
        "C.\nQ?", "2, 3", "list",
    ),
    "commonsenseqa": (
        {"question": "Q?", "choices": {"label": list("ABCD"), "text": CHOICES}, "answerKey": "B"},
        "Q?\nA. w\nB. x\nC. y\nD. z", "B", "choice",
    ),
    "medmcqa": (
        {"question": "Q?", "opa": "w", "opb": "x", "opc": "y", "opd": "z", "cop": 2, "exp": "..."},
        "D. z", "C", "choice",
    ),
    "dapo": (
        {"prompt": [{"role": "user", "content": "Q?"}], "data_source": "math_dapo",
         "reward_model": {"ground_truth": "34", "style": "rule"}},
        "Q?", "34", "number",
    ),
    "dapo-processed": ({"prompt": "Q?", "solution": "34"}, "Q?", "34", "number"),
    "mmlu": ({"question": "Q?", "choices": CHOICES, "answer": 3, "subject": "s"}, "D. z", "D",
             "choice"),
    "hotpotqa": (
        {"question": "Q?", "answer": "yes", "supporting_facts": {"title": ["t"]},
         "context": {"title": ["t"]}},
        "Q?", "yes", "qa",
    ),
    "simpleqa": ({"metadata": "{}", "problem": "Q?", "answer": "1904"}, "Q?", "1904", "judged"),
    "humaneval": (
        {"task_id": "HumanEval/0", "prompt": "def f():\n", "canonical_solution": "    return 1\n",
         "entry_point": "f", "test": "def check(c): pass"},
        "def f():\n", "    return 1\n", "code",
    ),
    "mbppplus": (
        {"task_id": 2, "code": "def f(): return 1", "prompt": "Write f.", "test": "assert f()",
         "test_list": ["assert f() == 1"]},
        "assert f() == 1", "def f(): return 1", "code",
    ),
    "hle": (
        {"question": "Q?", "image": "", "answer": "A", "answer_type": "exactMatch",
         "category": "Math", "canary": "c"},
        "Q?", "A", "judged",
    ),
}  # fmt: skip

MATH = {"algebra", "counting_and_probability", "geometry", "intermediate_algebra", "number_theory",
        "prealgebra", "precalculus"}  # fmt: skip

# Name: repository, configurations, split to train on, split to measure with, share, gated, row.
TABLE: dict[str, tuple[str, set[str | None], str | None, str | None, int | None, bool, str]] = {
    "gsm8k": ("openai/gsm8k", {"main"}, "train", "test", None, False, "gsm8k"),
    "math": ("EleutherAI/hendrycks_math", set(MATH), "train", "test", None, False, "math"),
    "math-8020": ("qwedsacf/competition_math", {None}, "train", "train", 80, False, "math"),
    "math500": ("HuggingFaceH4/MATH-500", {None}, None, "test", None, False, "math500"),
    "aime-1983-2025": ("TianHongZXY/aime-1983-2025", {None}, "test", "test", 80, False, "aime"),
    "aime-1983-2024": ("gneubig/aime-1983-2024", {None}, "train", "train", 80, False, "aime-old"),
    "aime24": ("math-ai/aime24", {None}, None, "test", None, False, "aime24"),
    "aime25": ("math-ai/aime25", {None}, None, "test", None, False, "aime"),
    "gpqa-main": ("Idavidrein/gpqa", {"gpqa_main"}, "train", "train", 80, True, "gpqa"),
    "gpqa-diamond": ("Idavidrein/gpqa", {"gpqa_diamond"}, None, "train", None, True, "gpqa"),
    "gpqa-extended": ("Idavidrein/gpqa", {"gpqa_extended"}, "train", "train", 80, True, "gpqa"),
    "deepmath": ("zwhe99/DeepMath-103K", {None}, "train", "train", None, False, "deepmath"),
    "olympiadbench": (
        "Hothan/OlympiadBench", {"OE_TO_maths_en_COMP"}, None, "train", None, False,
        "olympiadbench",
    ),
    "commonsenseqa": (
        "tau/commonsense_qa", {None}, "train", "validation", None, False, "commonsenseqa",
    ),
    "medmcqa": (
        "openlifescienceai/medmcqa", {None}, "train", "validation", None, False, "medmcqa",
    ),
    "dapo-17k": ("BytedTsinghua-SIA/DAPO-Math-17k", {None}, "train", "train", None, False, "dapo"),
    "dapo-17k-processed": (
        "open-r1/DAPO-Math-17k-Processed", {"en"}, "train", "train", None, False, "dapo-processed",
    ),
    "mmlu": ("cais/mmlu", {"all"}, None, "test", None, False, "mmlu"),
    "hotpotqa": (
        "hotpotqa/hotpot_qa", {"distractor"}, "train", "validation", None, False, "hotpotqa",
    ),
    "simpleqa": ("basicv8vc/SimpleQA", {None}, None, "test", None, False, "simpleqa"),
    "humaneval": ("openai/openai_humaneval", {None}, None, "test", None, False, "humaneval"),
    "humanevalplus": ("evalplus/humanevalplus", {None}, None, "test", None, False, "humaneval"),
    "mbppplus": ("evalplus/mbppplus", {None}, None, "test", None, False, "mbppplus"),
    "hle": ("cais/hle", {None}, None, "test", None, True, "hle"),
}  # fmt: skip


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    import datasets

    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path / "cache")
    datasets.disable_progress_bars()
    yield
    datasets.enable_progress_bars()


def test_the_table_is_whole() -> None:
    assert set(TABLE) == set(HUB_SETS)


@pytest.mark.parametrize("name", TABLE)
def test_a_known_set_is_the_one_of_the_table(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    repo, configs, train, evaluation, share, gated, kind_of_row = TABLE[name]
    known = HUB_SETS[name]
    assert (known.repo, set(known.configs)) == (repo, configs)
    assert (known.train, known.eval, known.train_percent) == (train, evaluation, share)
    assert known.gated == gated

    row, ends, gold, kind = ROWS[kind_of_row]
    # Two rows, so that a set which is divided has something on either side.
    column = next(c for c in ("question", "problem", "Question", "prompt") if c in row)
    other = {**row, column: "R?"} if share else row
    head = ["---", "configs:"]
    for config in known.configs:
        path = tmp_path / "repo" / (config or "default") / "rows.parquet"
        path.parent.mkdir(parents=True, exist_ok=True)
        pyarrow.parquet.write_table(pyarrow.Table.from_pylist([row, other]), path)
        head += [f"- config_name: {config or 'default'}", "  data_files:"]
        for split in {train, evaluation} - {None}:
            head += [f"  - split: {split}", f"    path: {config or 'default'}/rows.parquet"]
    (tmp_path / "repo" / "README.md").write_text("\n".join([*head, "---", ""]))
    local = replace(known, repo=str(tmp_path / "repo"))
    monkeypatch.setattr(opening, "HUB_SETS", {**HUB_SETS, name: local})

    for purpose, split in (("train", train), ("eval", evaluation)):
        if split is None:
            with pytest.raises(UserError, match="has no split"):
                opening.open_source(name, purpose=purpose)  # type: ignore[arg-type]
            continue
        source = opening.open_source(name, purpose=purpose)  # type: ignore[arg-type]
        problem = source[0]
        assert problem.kind == kind
        if kind_of_row == "gpqa":
            assert problem.choices["ABCD".index(problem.gold)] == "right"
            assert problem.meta["choice_seed"] == 0
        else:
            assert problem.gold == gold
            assert problem.question.endswith(ends) or share
    with pytest.raises(UserError, match="competition file"):
        opening.open_source("aimo2")
