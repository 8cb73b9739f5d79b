import time

import pytest

from coterie.datatypes import Problem
from coterie.envs.bytes_codec import BytesCodec
from coterie.envs.core_teaching.hints import build_hint, hint_checks, hint_source
from coterie.envs.reasoning import leaks, strategies, strip_answers, tagged_answer

BYTES = BytesCodec()
EIGHT = Problem("p", "3 + 5 =", "8", "number")


class Words:
    """Meters whitespace-separated words."""

    def count(self, text: str) -> int:
        return len(text.split())

    def truncate(self, text: str, limit: int, *, keep: str = "head") -> str:
        words = text.split()
        kept = words[:limit] if keep == "head" else words[max(0, len(words) - limit) :]
        return " ".join(kept)


def is_eight(text: str) -> bool:
    return tagged_answer(text) == "8"


TWO_WAYS = (
    '<strategy id="1">3 + 4<result>7</result></strategy>'
    '<strategy id="2">2 * 4<result>8</result></strategy><final_answer>8</final_answer>'
)


def hint_of(text: str) -> str | None:
    source = hint_source(text, "8", is_eight)
    return None if source is None else build_hint(source, EIGHT, "", BYTES, 100, "head")


@pytest.mark.parametrize(
    ("trace", "hint"),
    [
        (TWO_WAYS, "2 * 4"),
        ("<strategy>x<result>7</result></strategy><final_answer>8</final_answer>", None),
        # Of the tiny team.
        (
            '<strategy id="1"> 7 + 8 = 5 - 3 = <result> 8 </result> </strategy>'
            " <final_answer> 8 </final_answer>",
            "7 + 8 = 5 - 3 =",
        ),
        # Without strategies it is used whole, after its thoughts.
        ("<think>maybe 8</think>Add 3 and 5.\nAnswer: 8", "Add 3 and 5."),
        # An answer alone is none.
        *((text, None) for text in ("8", " 8. ", "$8$", "(8)", "", "...", "<b></b>")),
    ],
)
def test_the_first_strategy_with_the_gold_outcome_becomes_the_hint(
    trace: str, hint: str | None
) -> None:
    assert hint_of(trace) == hint


def test_a_strategy_is_checked_only_where_its_outcome_is_worded_otherwise() -> None:
    asked: list[str] = []

    def states_gold(text: str) -> bool:
        asked.append(text)
        return "16/2" in text

    other_wording = (
        '<strategy id="1">a<result>7</result></strategy>'
        "<strategy>b<result>16/2</result></strategy><final_answer>8</final_answer>"
    )
    assert hint_source(other_wording, "8", states_gold) == "b<result>16/2</result>"
    assert asked == hint_checks(other_wording) == ["a<result>7</result>", "b<result>16/2</result>"]
    assert hint_checks("<strategy>a<result>8</result></strategy><answer>8</answer>") == []


@pytest.mark.parametrize(
    ("trace", "hint"),
    [
        # What the trace states last is right, and no tag of it agrees.
        (r"<strategy>3 + 4<result>7</result></strategy> No, \boxed{8}", None),
        ("<strategy>3 + 4<result>7</result></strategy>\nAnswer: 8", None),
        (
            "<strategy>3 + 4<result>7</result></strategy>"
            "<strategy>2 * 4<result>8</result></strategy>"
            "<strategy>5 + 2<result>7</result></strategy>\n#### 8",
            "2 * 4",
        ),
    ],
)
def test_a_wrong_strategy_is_no_hint_wherever_the_trace_states_its_answer(
    trace: str, hint: str | None
) -> None:
    assert hint_of(trace) == hint
    # Every block that is not known to agree is foretold.
    assert hint_checks(trace)[0] == "3 + 4<result>7</result>"


@pytest.mark.parametrize(
    ("question", "gold", "said"),
    [
        ("How many socks has Ann missed?", "27", "So Ann has missed 50 - 23 = 27 socks."),
        ("How many socks are there?", "27", "Therefore, the number of socks is 27."),
        ("Solve 2x = 18.", "9", "So, the solution is x = 9."),
        ("Who wrote the novel?", "Ann Lee", "The novel was written by Ann Lee."),
    ],
)
def test_a_hint_has_no_last_sentence_that_a_grader_reads(
    question: str, gold: str, said: str
) -> None:
    problem = Problem("p", question, gold, "number" if gold.isdigit() else "text")
    for between in ("\n", " ", "\n2. "):
        source = f"First, look.{between}{said}"
        for text in (source, f"{source}\n\n\\boxed{{{gold}}}"):
            assert build_hint(text, problem, gold, BYTES, 100, "head") == "First, look."
    assert build_hint(said, problem, gold, BYTES, 100, "head") is None


def test_other_wordings_of_the_answer_alone_are_no_hint_either() -> None:
    assert build_hint("16/2", EIGHT, "16/2", BYTES, 100, "head") is None


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("Work.\n<final_answer>8", "Work."),
        ("Work. <final_answer>8</final_answer> more", "Work. more"),
        ("a <result>1<answer>8</answer>2</result> b", "a b"),
        ("a <answer>1<answer>2</answer>3</answer> b", "a b"),
        ('a <Result id="1">8</RESULT> b', "a b"),
        ("a <strategy_1_outcome>8</strategy_1_outcome> b", "a b"),
        (r"so \boxed{\frac{1}{2}} done", "so done"),
        (r"so \boxed{\{8\}} done", "so done"),
        (r"so \boxed {8} done", "so done"),
        (r"so \boxed8 done", "so done"),
        (r"so \fbox{8 and never closed", "so"),
        ("Work.\n#### 8", "Work."),
        ("Work #### 8", "Work"),
        ("Work.\n**Final answer:** 8", "Work."),
        ("Work.\nFinal answer:\n\n8\nThen", "Work.\nThen"),
        ("Work.\nThe answer is 8.", "Work."),
        ("Work, so the final answer is 8.", "Work, so"),
        ("Work, so our answer = 8", "Work, so"),
        ("Work.\nTherefore, the answer to the problem is 8.", "Work.\nTherefore,"),
        ("Work. The answer for this part: 8", "Work."),
        ("Work.\nSo 8 is the answer.", "Work."),
        ("Work. So 3.5 is the final answer. Done.", "Work."),
        ("3 + 5 = 8, so 8 is our answer", "3 + 5 = 8,"),
        ("Work.\nThis gives (1, 2) as the answer.", "Work."),
        ("Work.\nAns: 8", "Work."),
        ("Work.\n**Ans.** 8", "Work."),
        ("Work, ans = 8", "Work,"),
        ("Work.\n**Final Answer**\n8", "Work."),
        ("Work.\n### Final Answer\n\n\\[\n8\n\\]\n", "Work.\n\\]"),
        ("Let us find the answer. We add.", "Let us find the answer. We add."),
        ("The transitive answers", "The transitive answers"),
        ("result: 8\nWork", "Work"),
        ("a\n\n\nb  c \n", "a\nb c"),
        ("<reasoning>3 + 5</reasoning>", "3 + 5"),
        ("if x <y and z> w", "if x <y and z> w"),
        ("a < b > c", "a < b > c"),
        ("Resulting sums", "Resulting sums"),
        ("Work.\n### Answer\n8", "Work."),
        ("Work.\n**Answer**\n\n8\nThen", "Work.\nThen"),
        ('Work.\n{"answer": 8}', "Work."),
        ('Work.\n{"answer":\n"8"}', "Work."),
        ("Work.\n答案：8", "Work."),
        ("Work.\nRespuesta: 8", "Work."),
        ("Work.\nRéponse : 8", "Work."),
        ("Work.\nAnswer: 7\nCorrection: 8", "Work."),
        ("<think>Work.\nAntwort: 8</think>", "Work."),
        ("2 + **2 = 4**.\nSo **x = 8**", "2 + **2 = 4**."),
        ("2 + **2 = 4**.\nAnswer: 8", "2 + **2 = 4**."),
        ("Work.\nA: 8", "Work."),
        ("Question: a\nRespuesta: 8\n" * 20, "Question: a\n" * 8 + "Question: a"),
    ],
)
def test_answers_are_stripped_with_what_they_hold(text: str, left: str) -> None:
    assert strip_answers(text) == left


def test_the_cap_counts_the_students_own_tokens() -> None:
    source = "one two three four"
    assert build_hint(source, EIGHT, "", Words(), 2, "head") == "one two"
    assert build_hint(source, EIGHT, "", Words(), 2, "tail") == "three four"
    assert build_hint(source, EIGHT, "", BYTES, 8, "head") == "one two"
    assert build_hint(source, EIGHT, "", BYTES, 3, "tail") == "our"


@pytest.mark.parametrize(
    ("hint", "gold", "leak"),
    [
        ("3 + 5 = 8", "8", True),
        ("3 + 5 = 18", "8", False),
        ("8.5", "8", False),
        ("it is 8.", "8", True),
        ("0.8", "8", False),
        ("the capital is PARIS", "Paris", True),
        (r"\frac{1}{2} + 1", r"\frac{1}{2}", True),
        ("anything", " ", False),
    ],
)
def test_a_leak_is_the_gold_answer_as_a_word(hint: str, gold: str, leak: bool) -> None:
    assert leaks(hint, gold) is leak


def test_blocks_that_never_close_are_dropped() -> None:
    text = "<strategy>lost <strategy id='2'>kept</strategy> </strategy> <strategy>open"
    assert [block.text for block in strategies(text)] == ["kept"]
    assert strategies("<strategy_outcome>1</strategy_outcome>") == []


@pytest.mark.parametrize(
    "garbage",
    [
        "\\" * 200_000,
        "<strategy>" * 20_000,
        "<final_answer>" * 20_000,
        "<strategy><result>" * 10_000 + "</result></strategy>" * 10_000,
        "".join(f"<strategy_{n}_outcome>" for n in range(10_000))
        + "".join(f"</strategy_{n}_outcome>" for n in range(10_000)),
        r"\boxed{" * 20_000,
        "{" * 200_000,
        "<a " * 20_000,
        "<a" + " " * 200_000,
        " " * 200_000 + "x",
        "x" + " \t" * 100_000 + "y",
        "the " * 50_000,
        "final " * 40_000,
        "answer\n" * 20_000,
        "*" * 200_000,
        "_" * 200_000,
        ("- " * 60 + "\n") * 1_500,
        "is the answer " * 20_000,
        "answer to " * 10_000,
        "so, so " * 30_000 + "is the answer",
        "final answer " * 20_000,
        "Question: a\nRespuesta: 8\n" * 8_000,
        '{"answer": 8}' * 10_000,
        "**8**\n" * 20_000,
    ],
    ids=lambda text: text[:12],
)
def test_garbage_costs_linear_time(garbage: str) -> None:
    began = time.process_time()
    source = hint_source(garbage, "8", lambda text: False)
    hint_checks(garbage)
    strip_answers(garbage)
    if source:
        build_hint(source, EIGHT, "", BYTES, 64, "head")
    # Linear time is a tenth of this; quadratic time would be minutes.
    assert time.process_time() - began < 4
