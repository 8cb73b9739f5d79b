"""A list of answers: any one is right, or all are wanted."""

from dataclasses import replace

import pytest

from coterie.datatypes import AnswerKind, Problem, UserError
from coterie.problems.columns import Columns
from coterie.problems.opening import open_source
from coterie.problems.prepare import ProblemSettings, prepare
from coterie.rewards.grading.judged import judge_prompt
from coterie.rewards.grading.scorer import AnswerScorer
from tests.problems.conftest import load


@pytest.fixture(scope="module")
def scorer():
    scorer = AnswerScorer()
    yield scorer
    scorer.close()


def when(*answers):
    return {"question": "When did the pier open?", "answer": list(answers)}


def test_phrases_are_alternatives(tmp_path, scorer):
    source = load(tmp_path, when("3 May 1901", "May 1901"), when("1907", "1908"), when("June"))
    first, second, third = source
    assert (first.golds, first.kind) == (("3 May 1901", "May 1901"), "qa")
    for answer in ("3 May 1901", "May 1901", "the May 1901"):
        assert scorer.check(f"Answer: {answer}", first).correct
    assert not scorer.check("Answer: 1901", first).correct
    # Numbers in a set whose lists are alternatives.
    assert second.golds == ("1907", "1908")
    assert scorer.check("Answer: 1908", second).correct
    assert third.golds == ("June",)
    assert "any one is right" in source.notes[0]


def test_values_are_all_wanted_unless_the_user_says_otherwise(tmp_path, scorer):
    row = {"problem": "Solve.", "answer": ["1", "-3"]}
    (both,) = load(tmp_path, row)
    assert (both.gold, both.kind, both.alternatives) == ("1, -3", "list", ())
    (either,) = load(tmp_path, row, answers="any")
    assert (either.golds, either.kind) == (("1", "-3"), "number")
    assert scorer.check(r"\boxed{-3}", either).correct
    assert not scorer.check(r"\boxed{-3}", both).correct
    (phrase,) = load(tmp_path, when("3 May 1901", "May 1901"), answers="all")
    assert (phrase.kind, phrase.alternatives) == ("list", ())
    (lengths,) = load(tmp_path, {"problem": "Solve.", "answer": ["3 miles", "5 miles"]})
    assert lengths.kind == "list"


@pytest.mark.parametrize(
    ("row", "golds"),
    [
        ({"question": "Who?", "answers": {"text": ["Ada", "A. King", "Ada"], "answer_start": [1]}},
         ("Ada", "A. King")),
        ({"question": "Who?", "answer": {"value": "Ada", "aliases": ["A. King"], "type": "P"},
          "entity_pages": {"title": []}, "search_results": {"rank": []}}, ("Ada", "A. King")),
        ({"question": "Who?", "annotations": {"type": ["singleAnswer"], "qaPairs": [],
                                              "answer": [["Ada", "A. King"]]}}, ("Ada", "A. King")),
        ({"question": "Who?", "annotations": [{"type": "multipleQAs", "qaPairs": [
            {"question": "a", "answer": ["Ada"]}, {"question": "b", "answer": ["Eve"]}]}]},
         ("Ada", "Eve")),
        ({"question": "Who?", "golden_answers": ["Ada", "A. King"]}, ("Ada", "A. King")),
        ({"question": "Who?", "answer": "Ada", "answer_aliases": ["A. King"]}, ("Ada", "A. King")),
        ({"question": "Who?", "answer": "Ada", "answers": ["Ada", "A. King"]}, ("Ada", "A. King")),
        ({"question": "Who?", "possible_answers": '["Ada", "A. King"]'}, ("Ada", "A. King")),
        ({"question": "Who?", "possible_answers": "['Ada', 'A. King']"}, ("Ada", "A. King")),
        ({"prompt": [{"role": "user", "content": "Who?"}],
          "reward_model": {"ground_truth": {"target": ["Ada", "A. King"]}}}, ("Ada", "A. King")),
    ],
)  # fmt: skip
def test_published_sets_with_alternatives(tmp_path, row, golds):
    (problem,) = load(tmp_path, row)
    assert (problem.golds, problem.kind) == (golds, "qa")
    assert load(tmp_path, row, answers="all")[0].alternatives == ()


def test_a_question_without_an_answer_is_refused(tmp_path):
    row = {"question": "Who?", "context": "Ada.", "answers": {"text": [], "answer_start": []}}
    with pytest.raises(UserError, match="line 1: it has no answer"):
        load(tmp_path, row)


def test_an_answer_kind_of_phrases_makes_a_list_alternatives(tmp_path):
    for kind in ("qa", "judged", "text"):
        (problem,) = load(tmp_path, when("1901", "1902"), kind=kind)
        assert (problem.golds, problem.kind) == (("1901", "1902"), kind)


@pytest.mark.parametrize(("truth", "right"), [(True, "Yes"), (False, "No")])
def test_truth_values_answer_yes_and_no(tmp_path, scorer, truth, right):
    (problem,) = load(tmp_path, {"question": "do gulls swim", "answer": truth})
    assert problem.gold == right
    for answer in ("Yes", "yes.", "True", "No", "false"):
        expected = (answer[0].casefold() in "yt") is truth
        assert scorer.check(f"Answer: {answer}", problem).correct is expected


ALTERNATIVES: list[tuple[AnswerKind, tuple[str, ...], str]] = [
    ("math", (r"x+1", r"\frac{1}{2}"), "0.5"),
    ("math", ("a + b", "c(d + 1)"), "cd + c"),
    ("number", ("1", "2"), "2"),
    ("list", ("1, 2", "3, 4"), "4, 3"),
    ("text", ("north", "south"), "South"),
    ("qa", ("an owl", "a gull"), "gull"),
]


@pytest.mark.parametrize(("kind", "golds", "right"), ALTERNATIVES)
def test_every_kind_takes_the_best_alternative(scorer, kind, golds, right):
    problem = Problem("p", "?", golds[0], kind, alternatives=golds[1:])
    assert scorer.check(rf"\boxed{{{right}}}", problem).correct
    # The memory of verdicts tells the problems apart.
    assert not scorer.check(rf"\boxed{{{right}}}", replace(problem, alternatives=())).correct


def test_a_judge_reads_all_alternatives():
    problem = Problem("p", "Who?", "Ada", "judged", alternatives=("A. King",))
    assert 'Reference answers, of which any is right: "Ada" or "A. King"' in judge_prompt(
        "x", problem
    )
    assert 'Reference answer: "Ada"\n' in judge_prompt("x", replace(problem, alternatives=()))


def test_alternatives_are_part_of_the_fingerprint(tmp_path):
    prints = {load(tmp_path, when("in May", second)).fingerprint for second in ("May", "June")}
    assert len(prints) == 2


def test_the_settings_reach_the_files(tmp_path):
    rows = ({"problem": f"Solve {n}.", "answer": ["1", str(n)], "hint": "x"} for n in range(2, 6))
    load(tmp_path, *rows, ignore=("hint",))
    path = str(tmp_path / "own.jsonl")
    settings = ProblemSettings(path, answers="any", ignore_columns=("hint",), held_out=1)
    prepared = prepare(settings)
    assert all(problem.kind == "number" for problem in prepared.train.take(3))
    with pytest.raises(UserError, match="answers is 'some'"):
        ProblemSettings(answers="some")  # type: ignore[arg-type]
    noted = prepare(ProblemSettings(f"{path}?ignore=hint", held_out=1)).notes
    assert len(noted) == 1
    assert "all are wanted (--problems.answers)" in noted[0]
    with pytest.raises(UserError, match="leave out the options about columns"):
        open_source("chains", Columns(answers="any"))


def test_a_line_after_the_answer_is_no_answer(tmp_path):
    for rest in ("\nSo there are five.", "\n\n", "\nQ: And then?\nA: ..."):
        (problem,) = load(
            tmp_path, {"question": "2 + 3?", "answer": f"2 + 3 = 5\n#### 1,005{rest}"}
        )
        assert (problem.gold, problem.kind) == ("1005", "number")
