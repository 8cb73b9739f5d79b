from collections import Counter
from dataclasses import replace

import pytest

from coterie.datatypes import Problem, UserError
from coterie.problems import opening
from coterie.problems.column_formats import BY_NAME, read_row, recognise
from coterie.problems.columns import Columns
from coterie.problems.gold import UnusableRowError
from coterie.problems.hub import HUB_SETS
from coterie.problems.row_readers import bare_problem

# One synthetic row of each format as the hub publishes it, and the problem that it must become.

DAPO_BEFORE = (
    "Solve the following math problem step by step. The last line of your response should be of "
    "the form Answer: $Answer (without quotes) where $Answer is the answer to the problem.\n\n"
)
DAPO_AFTER = '\n\nRemember to put your answer on its own line after "Answer:".'

ROWS = {
    "gsm8k": (
        {"question": "Ann has 2 boxes of 540 pens. How many?", "answer": "2*540=1080\n#### 1,080"},
        Problem("", "Ann has 2 boxes of 540 pens. How many?", "1080", "number"),
    ),
    "svamp": (
        {"Body": "Bo ate 3 figs", "Question": "How many?", "Answer": 3.0, "ID": "c-1"},
        Problem("", "Bo ate 3 figs. How many?", "3", "number"),
    ),
    "asdiv": (
        {"body": "Cy has 4 hats.", "question": "How many hats?", "answer": "4 (hats)", "idx": 0},
        Problem("", "Cy has 4 hats. How many hats?", "4", "number"),
    ),
    "mmlu": (
        {"question": "Which is odd?", "choices": ["2", "3", "4", "6"], "answer": 1, "subject": "s"},
        Problem("", "Which is odd?\nA. 2\nB. 3\nC. 4\nD. 6", "B", "choice", ("2", "3", "4", "6")),
    ),
    "commonsenseqa": (
        {
            "question": "Where do fish live?",
            "choices": {"label": ["A", "B", "C"], "text": ["sky", "sand", "water"]},
            "answerKey": "C",
        },
        Problem(
            "", "Where do fish live?\nA. sky\nB. sand\nC. water", "C", "choice",
            ("sky", "sand", "water"),
        ),
    ),
    "medmcqa": (
        {"question": "Q?", "opa": "a1", "opb": "b1", "opc": "c1", "opd": "d1", "cop": 3, "exp": ""},
        Problem("", "Q?\nA. a1\nB. b1\nC. c1\nD. d1", "D", "choice", ("a1", "b1", "c1", "d1")),
    ),
    "dapo": (
        {
            "prompt": [{"role": "user", "content": f"{DAPO_BEFORE}What is 2 + 2?{DAPO_AFTER}"}],
            "reward_model": {"ground_truth": "4", "style": "rule"},
            "data_source": "math_dapo",
        },
        Problem("", "What is 2 + 2?", "4", "number"),
    ),
    "humaneval": (
        {"prompt": "def f():\n", "test": "t", "entry_point": "f", "canonical_solution": "  1"},
        Problem("", "def f():\n", "  1", "code"),
    ),
    "mbppplus": (
        {
            "task_id": 2, "prompt": "Write a function that adds one.",
            "test_list": ["assert add_h(1) == 2"], "test": "assert add_h(1) == 2",
            "code": "def h(x):\n  return x\ndef add_h(x):\n  return h(x) + 1",
        },
        Problem(
            "", "Write a function that adds one.\nassert add_h(1) == 2",
            "def h(x):\n  return x\ndef add_h(x):\n  return h(x) + 1", "code",
        ),
    ),
    "hle": (
        {"question": "Who?", "image": "", "answer": "Nobody", "answer_type": "exactMatch"},
        Problem("", "Who?", "Nobody", "judged"),
    ),
    "hotpotqa": (
        {"question": "Which river?", "answer": "Aare", "supporting_facts": {"title": ["t"]},
         "context": {"title": ["Bern"], "sentences": [["It lies on ", "the Aare."]]}},
        Problem("", "Bern: It lies on the Aare.\n\nWhich river?", "Aare", "qa"),
    ),
    "simpleqa": (
        {"metadata": "{}", "problem": "When?", "answer": "1904"},
        Problem("", "When?", "1904", "judged"),
    ),
    "final_answer": (
        {
            "question": "Find all n.", "context": "Be n odd.", "final_answer": ["$69$,$84$"],
            "is_multiple_answer": True, "answer_type": "Numerical", "unit": None, "error": None,
        },
        Problem("", "Be n odd.\nFind all n.", "69,84", "list"),
    ),
    "problem+answer": (
        {"problem": "Find x.", "solution": "...", "answer": "025", "url": ""},
        Problem("", "Find x.", "25", "number"),
    ),
    "Question+Answer": (
        {"ID": "1983-1", "Year": 1983, "Question": "Find y.", "Answer": "60"},
        Problem("", "Find y.", "60", "number"),
    ),
    "problem+solution": (
        {"problem": "Find z.", "level": "Level 5", "type": "Algebra",
         "solution": r"First \boxed{1}. No: \boxed{\frac{1}{2}}."},
        Problem("", "Find z.", r"\frac{1}{2}", "math"),
    ),
    "prompt+solution": (
        {"prompt": "Find w.", "solution": "34"},
        Problem("", "Find w.", "34", "number"),
    ),
}  # fmt: skip

GPQA_ROW = {
    "Question": "Which letter comes first? ",
    "Correct Answer": "alpha\n",
    "Incorrect Answer 1": "beta",
    "Incorrect Answer 2": " gamma",
    "Incorrect Answer 3": "delta",
    "Record ID": "rec0",
}


def read(row, **options):
    form = recognise(row, row)
    assert form is not None
    return read_row(form, row, id="x:0", columns=Columns(**options))


@pytest.mark.parametrize("name", ROWS)
def test_each_format_is_recognised_and_read(name):
    row, wanted = ROWS[name]
    form = recognise(row, row)
    assert form is not None
    assert form.name == name
    problem = read_row(form, row, id="")
    assert problem is not None
    assert replace(problem, meta={}) == wanted


@pytest.mark.parametrize("name", HUB_SETS)
def test_a_known_set_opens_by_its_own_name(name, publish, monkeypatch):
    known = HUB_SETS[name]
    row, wanted = ROWS.get(known.form, (GPQA_ROW, None))
    # Two rows, so that a set which is divided has something on either side.
    other = {**row, BY_NAME[known.form].columns[0]: "R?"} if known.train_percent else row
    splits = {split: [row, other] for split in (known.train, known.eval) if split}
    repo = publish({config or "default": splits for config in known.configs})
    monkeypatch.setattr(opening, "HUB_SETS", {**HUB_SETS, name: replace(known, repo=repo)})
    for purpose in ("train", "eval"):
        if getattr(known, purpose) is None:
            with pytest.raises(UserError, match="has no split"):
                opening.open_source(name, purpose=purpose)
            continue
        source = opening.open_source(name, purpose=purpose)
        assert (source.size == 1) == bool(known.train_percent or known.form == "dapo")
        assert known.form != "hotpotqa" or source[0].question.startswith("Bern: It lies on")
        if wanted is None:
            assert source[0].choices["ABCD".index(source[0].gold)] == "alpha"
        else:
            assert (source[0].gold, source[0].kind) == (wanted.gold, wanted.kind)


def test_scalar_columns_are_kept_as_meta():
    assert read(ROWS["problem+solution"][0]).meta == {"level": "Level 5", "type": "Algebra"}


def test_unknown_columns_are_not_recognised():
    assert recognise(["a", "b"], {"a": "1", "b": "2"}) is None


def test_gpqa_options_are_permuted_by_the_recorded_seed():
    problem = read(GPQA_ROW, choice_seed=3)
    assert problem.meta["choice_seed"] == 3
    assert sorted(problem.choices) == ["alpha", "beta", "delta", "gamma"]
    assert problem.choices["ABCD".index(problem.gold)] == "alpha"
    assert f"\n{problem.gold}. alpha" in problem.question
    # By the question alone.
    assert read({**GPQA_ROW, "Record ID": "other"}, choice_seed=3).choices == problem.choices
    orders = {read(GPQA_ROW, choice_seed=seed).choices for seed in range(40)}
    assert len(orders) > 15  # of 24


def test_gpqa_gold_letters_are_uniform():
    n = 4000
    counts = Counter(
        read({**GPQA_ROW, "Question": f"Question number {index}"}).gold for index in range(n)
    )
    # Chi-squared with three degrees of freedom: above 16.3 one time in a thousand.
    statistic = sum((counts[letter] - n / 4) ** 2 / (n / 4) for letter in "ABCD")
    assert statistic < 16.3


NO_OPTION = "names none of the options"


@pytest.mark.parametrize(
    ("form", "change", "sentence"),
    [
        *(("mmlu", {"answer": answer}, NO_OPTION) for answer in (7, "Z")),
        ("commonsenseqa", {"answerKey": ""}, NO_OPTION),
        ("medmcqa", {"cop": -1}, NO_OPTION),
        ("mmlu", {"choices": ["only"]}, "1 options"),
        ("mmlu", {"choices": ["a", None]}, "empty or not text"),
        ("mmlu", {"question": "  "}, "the question is empty"),
        ("mmlu", {"question": 5}, "'question' is int"),
        ("mmlu", {"question": "\ud800?"}, "half a surrogate"),
        ("commonsenseqa", {"choices": {"label": ["A"], "text": ["x", "y"]}}, "of one length"),
        ("dapo", {"reward_model": "4"}, "holds no 'ground_truth'"),
        ("humaneval", {"entry_point": "f()"}, "not the name of a function"),
        ("humaneval", {"entry_point": None}, "'entry_point' is missing"),
        ("mbppplus", {"test_list": []}, "calls no function"),
        ("mbppplus", {"test_list": ["assert k(1)"]}, "calls no function"),
        ("problem+solution", {"solution": "We see that it is large. " * 10}, "marks no answer"),
        ("problem+solution", {"solution": r"so \boxed{1"}, "no closed"),
        ("problem+answer", {"answer": None}, "the answer is missing"),
    ],
)
def test_unusable_rows(form, change, sentence):
    with pytest.raises(UnusableRowError, match=sentence):
        read_row(BY_NAME[form], {**ROWS[form][0], **change}, id="")


@pytest.mark.parametrize("answer", ["B", " b ", "3"])
def test_answers_of_choices_may_be_letters_or_options(answer):
    assert read({**ROWS["mmlu"][0], "answer": answer}).gold == "B"


def test_programs_carry_their_tests():
    meta = read(ROWS["humaneval"][0]).meta
    assert meta == {"entry_point": "f", "test": "t", "code_prompt": "def f():\n"}
    meta = read(ROWS["mbppplus"][0]).meta
    assert (meta["entry_point"], meta["code_prompt"]) == ("add_h", "")
    assert (meta["test"], meta["task_id"]) == ("assert add_h(1) == 2", 2)


def test_items_with_a_picture_are_left_out():
    assert read({**ROWS["hle"][0], "image": "data:image/png;base64,AAAA"}) is None


def test_the_kind_can_be_overridden_but_not_for_choices_and_programs():
    assert read({"question": "Q?", "answer": "7"}, kind="text").kind == "text"
    for form, sentence in (("mmlu", "multiple choice"), ("humaneval", "asks for a program")):
        with pytest.raises(UnusableRowError, match=sentence):
            read(ROWS[form][0], kind="text")


def test_dapo_instructions_are_stripped_only_when_they_are_there():
    assert bare_problem(f"{DAPO_BEFORE}Solve.{DAPO_AFTER}") == "Solve."
    assert bare_problem("Solve x = 1.") == "Solve x = 1."
    # A problem that itself speaks of the line keeps what it says.
    quoted = f"{DAPO_BEFORE}Say{DAPO_AFTER} Then go.{DAPO_AFTER}"
    assert bare_problem(quoted) == f"Say{DAPO_AFTER} Then go."


def test_svamp_bodies_keep_their_own_punctuation():
    row = {"Body": "If Bo ate 3 figs,", "Question": "how many?", "Answer": 3.0}
    assert read(row).question == "If Bo ate 3 figs, how many?"


def test_asdiv_answers_in_words_are_text():
    row = {"body": "Ann is taller.", "question": "Who is taller?", "answer": "Mrs. Ann"}
    assert (read(row).gold, read(row).kind) == ("Mrs. Ann", "text")


def test_a_row_with_a_tolerance_keeps_it():
    row, _ = ROWS["final_answer"]
    problem = read_row(BY_NAME["final_answer"], {**row, "error": "1e-1"}, id="p")
    assert problem is not None
    assert (problem.tolerance, problem.meta["error"]) == (0.1, "1e-1")
