"""Columns that belong to a question are used, or refused by their name."""

import json

import pytest

from coterie.datatypes import UserError
from coterie.problems.columns import passage
from coterie.problems.gold import UnusableRowError
from coterie.problems.opening import open_source
from tests.problems.conftest import load

PAIR = {"question": "How many gulls?", "answer": "7"}
SAID = "Seven gulls sat on the pier."


@pytest.mark.parametrize(
    "column",
    ["context", "passage", "article", "paragraph", "story", "background", "support", "Context"],
)
def test_a_passage_stands_in_front_of_its_question(tmp_path, column):
    source = load(tmp_path, {column: SAID, **PAIR}, {**PAIR, column: ""})
    assert source[0].question == f"{SAID}\n\nHow many gulls?"
    assert source[1].question == "How many gulls?"
    assert source.notes == (f"the question includes {column}",)


def test_several_passages_keep_their_names_and_order(tmp_path):
    row = {"premise": "A gull sat.", "hypothesis": "A bird sat.", **PAIR}
    assert load(tmp_path, row)[0].question == (
        "Premise: A gull sat.\n\nHypothesis: A bird sat.\n\nHow many gulls?"
    )


def test_the_input_of_an_instruction_follows_it(tmp_path):
    source = load(tmp_path, {"instruction": "Count them.", "input": "gull, gull", "output": "2"})
    assert (source[0].question, source[0].gold) == ("Count them.\n\ngull, gull", "2")


@pytest.mark.parametrize(
    ("column", "value", "question"),
    [
        ("input", [3, 1, 2], "How many?\n\n3, 1, 2"),
        ("input", 7, "How many?\n\n7"),
        ("context", 7.5, "7.5\n\nHow many?"),
        ("table", [[1, 2], [3, 4]], "1 | 2\n3 | 4\n\nHow many?"),
    ],
)
def test_numbers_stand_beside_their_question(tmp_path, column, value, question):
    source = load(tmp_path, {"instruction": "How many?", "output": "7", column: value})
    assert source[0].question == question
    assert source.notes == (f"the question includes {column}",)


def test_a_passage_that_the_question_quotes_is_not_said_twice(tmp_path):
    row = {"context": SAID, "question": f"{SAID} How many gulls?", "answer": "7"}
    assert load(tmp_path, row)[0].question == row["question"]
    # A short one may stand there by chance.
    row = {"instruction": "Add 15 to it.", "input": "5", "output": "20"}
    assert load(tmp_path, row)[0].question == "Add 15 to it.\n\n5"


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (["One.", "Two."], "One.\nTwo."),
        ([{"title": "Pier", "paragraph_text": "One.", "is_supporting": True}], "Pier: One."),
        ({"title": ["Pier", "Bay"], "sentences": [["One. ", "Two."], ["Three."]]},
         "Pier: One. Two.\nBay: Three."),
        ([["Pier", ["One. ", "Two."]]], "Pier: One. Two."),
        ({"contexts": ["One.", "Two."], "labels": ["AIM", "END"]}, "One.\nTwo."),
        ([["bird", "number"], ["gull", 7]], "bird | number\ngull | 7"),
        ([{"role": "user", "content": "One?"}], "User: One?"),
    ],
)  # fmt: skip
def test_passages_as_data_sets_publish_them(value, text):
    assert passage("context", value) == text


@pytest.mark.parametrize("value", [{"graph": [1, 2]}, [{"x": 1}], [["One.", {"x": 2}]]])
def test_a_passage_that_is_no_text_is_refused_by_name(value):
    with pytest.raises(
        UnusableRowError, match=r"column 'context' is .*--problems.ignore-columns c"
    ):
        passage("context", value)


@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("hint", "Count in base 8."),
        ("func", "def f(): ..."),
        ("code", "print(1)"),
        ("facts", ["Gulls are birds."]),
        ("rules", ["No gull is blue."]),
        ("image", {"bytes": "iVBO", "path": None}),
        ("picture", "gulls.png"),
        ("image_url", "http://a/gulls.png"),
        ("figure_id", "f7"),
        ("additional_info", "n = 4."),
        ("extra", "n = 4."),
        ("other_conditions", ["n = 4."]),
        ("answer_format", "Give n modulo 1000."),
        ("nums", [3, 4]),
        ("grid", [[0, 1], [1, 1]]),
        ("data", {"a": 3}),
        ("context", True),
        ("n", 4),
        ("name", "Ada"),
        ("source", "Of all that was said of gulls that year, this alone was true.\nThey sat."),
        ("options", ["6", "7"]),
        (
            "messages",
            [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "?"}],
        ),
    ],
)
def test_what_may_belong_to_a_question_is_refused_by_name(tmp_path, column, value):
    for rows in ([{**PAIR, column: value}], [PAIR, {**PAIR, column: value}]):
        place = f"line {len(rows)}: .*" if column != "options" else ""
        if column == "options" and len(rows) == 1:
            continue  # options are used
        with pytest.raises(UserError, match=rf"{place}{column!r}.*--problems.ignore-columns") as e:
            load(tmp_path, *rows)
        assert "\n" not in str(e.value)
    if column != "options":
        assert load(tmp_path, {**PAIR, column: value}, ignore=(column,))[0].gold == "7"


@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("id", "x/17"), ("question_id", 5), ("source", "pier"), ("url", "http://a"),
        ("level", "Level 2"), ("domain", ["Birds -> Gulls"]), ("solve_rate", 0.25),
        ("explanation", "Seven, as " * 40), ("cot_content", "A: seven.\nSo"),
        ("metadata", {"a": "b"}), ("scores", [0.5, 1]), ("model_difficulty", {"x": 7, "y": None}),
        ("r1_solution_1", "long\nlong"), ("generations", ["<think>"]), ("checked", True),
        ("problem", "How many gulls ?"), ("prompt", "Q: How many gulls? Think."), ("image", None),
        ("extra_info", {"index": 3, "split": "train"}), ("entity_pages", {"title": [], "text": []}),
        ("messages", [{"role": "user", "content": "How many gulls?"},
                      {"role": "assistant", "content": "Seven, for I counted."}]),
    ],
)  # fmt: skip
def test_what_is_about_a_problem_is_left_out(tmp_path, column, value):
    problem = load(tmp_path, {**PAIR, column: value})[0]
    assert problem.question.replace(" ?", "?") == "How many gulls?"
    assert problem.gold == "7"


def test_a_note_names_text_that_is_left_out_by_a_word_of_its_name(tmp_path):
    usual = {"id": "x/17", "level": "hard", "solution": "Count.", "url": "http://a", "gold": ""}
    row = {**PAIR, **usual, "meta": "x > 0", "answer_instruction": "Answer in base 8."}
    notes = load(tmp_path, row, {**PAIR, "title": "Gulls"} | usual).notes
    assert notes == ("the question leaves out answer_instruction, meta, title",)


def test_a_question_of_several_columns(tmp_path):
    row = {"hint": "Count twice.", "task": "How many?", "notes": ["a", "b"], "n": 4, "result": 7}
    path = tmp_path / "own.jsonl"
    path.write_text(json.dumps(row), encoding="utf-8")
    source = open_source(f"{path}?question=hint+task+notes&answer=result&ignore=n")
    assert source[0].question == "Count twice.\n\nHow many?\n\na\nb"
    assert source[0].gold == "7"
    with pytest.raises(UserError, match="no column 'm' to leave out among hint, task"):
        open_source(f"{path}?question=task&answer=result&ignore=m")
    with pytest.raises(UserError, match=r"'hint' may belong to the question; .*hint.task, or"):
        open_source(f"{path}?question=task&answer=result&ignore=n+notes")


def test_a_named_question_keeps_its_passage_and_options(tmp_path):
    row = {"article": SAID, "task": "Where?", "options": ["pier", "bay"], "key": "x", "right": "A"}
    problem = load(tmp_path, row, question="task", answer="right")[0]
    assert problem.question == f"{SAID}\n\nWhere?\nA. pier\nB. bay"
    assert (problem.gold, problem.kind) == ("A", "choice")


PUBLISHED = {
    "boolq": ({"question": "are gulls birds", "answer": True, "passage": SAID}, "Yes"),
    "race": ({"example_id": "h1", "article": SAID, "question": "Where?",
              "options": ["bay", "pier"], "answer": "B"}, "B"),
    "squad": ({"id": "1", "title": "Gull", "context": SAID, "question": "Where?",
               "answers": {"text": ["pier", "the pier"], "answer_start": [23, 19]}}, "pier"),
    "drop": ({"section_id": "b1", "query_id": "q", "passage": SAID, "question": "How many?",
              "answers_spans": {"spans": ["7"], "types": ["number"]}}, "7"),
    "hotpotqa": ({"id": "1", "question": "Where?", "answer": "pier", "type": "bridge",
                  "level": "easy", "supporting_facts": {"title": ["Gull"], "sent_id": [0]},
                  "context": {"title": ["Gull"], "sentences": [[SAID]]}}, "pier"),
    "musique": ({"id": "2", "paragraphs": [{"idx": 0, "title": "Gull", "paragraph_text": SAID}],
                 "question": "Where?", "question_decomposition": [{"id": 1, "question": "?"}],
                 "answer": "the pier", "answer_aliases": ["pier"], "answerable": True}, "the pier"),
    "pubmedqa": ({"pubid": 1, "question": "Do they?", "context": {"contexts": [SAID]},
                  "long_answer": "They do.", "final_decision": "maybe"}, "maybe"),
    "sciq": ({"question": "Who sat?", "distractor3": "cats", "distractor1": "owls",
              "distractor2": "dogs", "correct_answer": "gulls", "support": SAID}, None),
    "logiqa": ({"context": SAID, "query": "Who?", "options": ["owls", "gulls"],
                "correct_option": 1}, "B"),
}  # fmt: skip


@pytest.mark.parametrize("name", PUBLISHED)
def test_published_sets_show_their_passage(tmp_path, name):
    row, gold = PUBLISHED[name]
    problem = load(tmp_path, row)[0]
    assert SAID in problem.question
    assert (problem.gold == gold) or gold is None
    if name == "sciq":
        assert problem.choices["ABCD".index(problem.gold)] == "gulls"


def test_strategyqa_keeps_its_facts_out(tmp_path):
    row = {
        "qid": "s",
        "term": "Gull",
        "description": "sea bird",
        "question": "Do gulls fly?",
        "answer": False,
        "facts": ["Gulls fly."],
        "decomposition": ["?"],
        "evidence": [[["G"]]],
    }
    problem = load(tmp_path, row)[0]  # fmt: skip
    assert (problem.question, problem.gold) == ("Do gulls fly?", "No")
