"""Options in every shape in which data sets publish them, and what names the right one."""

import pytest

from coterie.datatypes import UserError
from coterie.problems.files import load_file
from tests.problems.conftest import load

WORDS = ["owl", "gull", "crow"]


def ask(**columns):
    return {"question": "Which swims?", **columns}


LETTERS = dict(zip("ABC", WORDS))
SHAPES = {
    "a list": ask(options=WORDS, answer="B", answer_index=1),
    "an object": ask(options=LETTERS, answer="gull", answer_idx="B"),
    "objects": ask(options=[{"key": k, "value": v} for k, v in LETTERS.items()], answer="gull"),
    "lists": ask(choices={"text": WORDS, "label": ["A", "B", "C"]}, answerKey="B"),
    "numbered labels": ask(choices={"text": WORDS, "label": ["1", "2", "3"]}, answerKey="2"),
    "columns": ask(**LETTERS, answer="B", explanation="It swims."),
    "option columns": ask(option_a="owl", option_b="gull", option_c="crow", answer="b"),
    "numbered columns": ask(option1="owl", option2="gull", option3="crow", answer="2"),
    "columns by name": ask(option1="owl", option2="gull", option3="crow", target="option2"),
    "columns ans0": ask(ans0="owl", ans1="gull", ans2="crow", label=1),
    "columns from 0": ask(ending0="owl", ending1="gull", ending2="crow", label=1),
    "endings": {"ind": 3, "activity_label": "Swimming", "ctx_a": "Which", "ctx_b": "swims?",
                "ctx": "Which swims?", "endings": WORDS, "label": "1", "source_id": "v"},
    "a stem": {"id": "7", "question_stem": "Which swims?", "fact1": "gulls swim",
               "choices": {"text": WORDS, "label": ["A", "B", "C"]}, "answerKey": "B"},
    "a question with options": {"id": "7", "answerKey": "B", "question": {
        "stem": "Which swims?", "choices": [{"label": k, "text": v} for k, v in LETTERS.items()]}},
    "text": ask(options="a ) owl , b ) gull , c ) crow", correct="b"),
    "a list as text": ask(options="['owl', 'gull', 'crow']", answer="B"),
    "letters in the options": ask(options=["A) owl", "B) gull", "C) crow"], correct="B"),
    "letters with points": ask(choices=["A. owl", "B. gull", "C. crow"], answer="B. gull"),
    "letters in brackets": ask(options=["(A)owl", "(B)gull", "(C)crow"], label="B", answer=None),
    "lists of answers": ask(answers=WORDS, label=1, context=""),
    "a letter in brackets": ask(choices=WORDS, answer="(B)"),
    "a letter in lower case": ask(choices=WORDS, answer="b"),
    "the text of an option": ask(choices=WORDS, answer="Gull"),
    "an index": ask(choices=WORDS, answer=1),
    "an index as text": ask(choices=WORDS, answer="1"),
    "an answer in a list": ask(choices=WORDS, answer=["B"]),
}  # fmt: skip


@pytest.mark.parametrize("name", SHAPES)
def test_every_shape_of_options(tmp_path, name):
    problem = load(tmp_path, SHAPES[name])[0]
    assert problem.question == "Which swims?\nA. owl\nB. gull\nC. crow"
    assert (problem.gold, problem.kind, problem.choices) == ("B", "choice", tuple(WORDS))


def test_two_options_of_published_sets(tmp_path):
    piqa = [{"goal": "Dry a wing", "sol1": "wet it", "sol2": "fan it", "label": 1}]
    assert load(tmp_path, *piqa)[0].gold == "B"
    winogrande = [{"sentence": "A gull saw a crow; _ flew.", "option1": "gull", "option2": "crow",
                   "answer": "2"}]  # fmt: skip
    assert load(tmp_path, *winogrande)[0].gold == "B"


@pytest.mark.parametrize(
    "row",
    [
        ask(correct_answer="gull", distractor1="owl", distractor2="crow", support=""),
        ask(correct_answer="gull", incorrect_answers=["owl", "crow"]),
        ask(mc1_targets={"choices": ["gull", "owl", "crow"], "labels": [1, 0, 0]},
            mc2_targets={"choices": ["gull"], "labels": [1]}),
    ],
)  # fmt: skip
def test_a_right_option_that_comes_first_is_moved(tmp_path, row):
    golds = set()
    for number in range(12):
        problem = load(tmp_path, {**row, "question": f"Which of {number}?"})[0]
        assert problem.choices["ABC".index(problem.gold)] == "gull"
        golds.add(problem.gold)
    assert golds == {"A", "B", "C"}


@pytest.mark.parametrize(
    ("answers", "golds"),
    [
        ([0, 2, 1], "ACB"),
        ([1, 3, 2], "ACB"),  # from 1
        (["1", "3", "2"], "ACB"),
        (["0", "1"], "AB"),
        (["B", "crow"], "BC"),
        (["b", "C", "(a)"], "BCA"),
    ],
)
def test_all_rows_together_say_how_the_answer_is_read(tmp_path, answers, golds):
    source = load(tmp_path, *(ask(choices=WORDS, answer=answer) for answer in answers))
    assert "".join(problem.gold for problem in source) == golds


def test_options_that_are_numbers(tmp_path):
    source = load(tmp_path, ask(choices=[12, 2.5], answer=1), ask(choices=[7, 9], answer=0))
    assert [problem.choices for problem in source] == [("12", "2.5"), ("7", "9")]
    assert [problem.gold for problem in source] == ["B", "A"]
    assert load(tmp_path, ask(choices=[12, 25], answer=25))[0].gold == "B"
    # An index is no text, where options are text.
    assert load(tmp_path, ask(choices=["3", "2", "1"], answer=1))[0].gold == "B"


def test_another_row_decides_between_letter_and_text(tmp_path):
    odd = ask(choices=["B", "A", "C"], answer="B")
    source = load(tmp_path, odd, ask(choices=WORDS, answer="C"))
    assert [problem.gold for problem in source] == ["B", "C"]
    source = load(tmp_path, odd, ask(choices=WORDS, answer="crow"))
    assert [problem.gold for problem in source] == ["A", "C"]


@pytest.mark.parametrize(
    ("row", "sentence"),
    [
        (ask(choices=["B", "A", "C"], answer="B"), "may be B .*letter.* and A .*text"),
        (ask(choices=[1, 2, 3], answer=1), "may be A .*text.* and B .*index from 0"),
        (ask(choices=WORDS, answer="B", answer_index=0), "may be B .* and A .*answer_index"),
        (ask(choices=WORDS, answer="AC"), "answer 'AC' names several options"),
        (ask(choices=WORDS, answer="A, C"), "answer 'A, C' names several options"),
        (ask(choices=WORDS, answer=["A", "C"]), "names several options"),
        (ask(choices=WORDS, answer=["owl", "gull"]), "names several options"),
        (ask(choices=WORDS, answer="AD"), "answer 'AD' names none of the options"),
        (ask(choices=["owl", "owl", "gull"], answer="owl"), "names none of the options"),
        (ask(choices=WORDS, answer=9), "answer 9 names none of the options"),
        (ask(choices=WORDS, answer="A or B"), "names none of the options"),
        (ask(choices=WORDS, answer="B. crow"), "names none of the options"),
        (ask(options=dict.fromkeys(map(str, range(30)), "owl"), answer="3"), "30 options, not 2"),
        (ask(options={"temperature": 1, "k": 2}, answer="x"), "'options' is dict, not an object w"),
        (ask(options=["owl", ""], answer="A"), "an option is empty"),
        (ask(options="['owl' \"gull's\"\n 'crow']", answer="A"), "no commas between its options"),
        (ask(option1="owl", option2="gull", label=1), "may be A .*letter.* and B .*index from 0"),
        (ask(choices={"text": WORDS, "labels": [1, 1, 0]}, answer="A"), "marks 2 options as right"),
    ],
)
def test_what_names_no_option_or_two_is_refused(tmp_path, row, sentence):
    with pytest.raises(UserError, match=f"line 1: .*{sentence}"):
        load(tmp_path, row)


def test_options_that_look_like_labels_stay_whole(tmp_path):
    for options in (["1.5", "2.5"], ["A. Swift", "J. Swift"], ["B. owl", "A. gull"]):
        assert load(tmp_path, ask(choices=options, answer=0))[0].choices == tuple(options)


def test_a_note_says_what_is_not_obvious(tmp_path):
    source = load(tmp_path, ask(**LETTERS, answer="B"))
    assert source.notes == ("options from columns A to C",)
    source = load(tmp_path, ask(choices=WORDS, answer=3))
    assert source.notes == ("'answer' is read as an index from 1",)
    assert load(tmp_path, ask(choices=WORDS, answer="B")).notes == ()
    first = ask(choices=WORDS, answer=0)
    for rows, notes in (((), ("'answer' is read as an index from 0",)), ((first,), ())):
        assert load(tmp_path, ask(choices=WORDS, answer=2), *rows).notes == notes


def test_two_numbers_named_a_and_b_are_no_options(tmp_path):
    with pytest.raises(UserError, match=r"column 'a' .*may belong to the question"):
        load(tmp_path, {"question": "What is a + b?", "a": 3, "b": 4, "answer": 7})


def test_tables(tmp_path):
    mmlu = tmp_path / "mmlu_test.csv"
    mmlu.write_text('"Which, of these, swims?",owl,gull,crow,wren,B\n', encoding="utf-8")
    problem = load_file(mmlu)[0]
    assert problem.question == "Which, of these, swims?\nA. owl\nB. gull\nC. crow\nD. wren"
    assert problem.gold == "B"
    named = tmp_path / "named.tsv"
    named.write_text(
        "question\tA\tB\tC\tanswer\nWhich?\towl\tgull\t\t1\nWho?\ta\tb\tc\t0\n", "utf-8"
    )
    source = load_file(named)
    assert [(problem.gold, problem.choices) for problem in source] == [
        ("B", ("owl", "gull")), ("A", ("a", "b", "c")),
    ]  # fmt: skip
    quoted = 'question\tanswer\n"Which ""owl""\tand\nwho?"\t"1"\n"Who?"\t2\n'
    plain = 'question\tanswer\n"Hi said Ann. Who?\t1\nWho said "Ho"?\t2\n'
    for table, questions in (
        (quoted, ['Which "owl"\tand\nwho?', "Who?"]),
        (plain, ['"Hi said Ann. Who?', 'Who said "Ho"?']),
    ):
        named.write_text(table, encoding="utf-8")
        source = load_file(named)
        assert [problem.question for problem in source] == questions
        assert [problem.gold for problem in source] == ["1", "2"]
    gap = tmp_path / "gap.csv"  # pandas writes whole numbers beside a gap as 1.0
    gap.write_text("question,A,B,answer\nWhich?,owl,gull,1.0\nWho?,a,b,\n", encoding="utf-8")
    with pytest.raises(UserError, match=r"line 3: the answer names none of the options \(a split"):
        load_file(gap)
    indexed = tmp_path / "indexed.csv"
    indexed.write_text(",question,answer\n0,Which?,7\n1,Who?,8\n", encoding="utf-8")
    assert [problem.gold for problem in load_file(indexed)] == ["7", "8"]
    indexed.write_text(",question,answer\nCount.,Which?,7\n", encoding="utf-8")
    with pytest.raises(UserError, match=r"column '' .*ignore-columns ''$"):
        load_file(indexed)
    named.write_text("question\tanswer\nWhich?\t1\tx\n", encoding="utf-8")
    with pytest.raises(UserError, match="line 2: 3 cells, but 2 columns are named"):
        load_file(named)
