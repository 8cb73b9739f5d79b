"""Scripts, and the wrong answers they give."""

import asyncio
import math
import random
from collections import Counter
from fractions import Fraction

import pytest

from coterie.datatypes import PolicyFailure, Problem, Sampling, UserError
from coterie.experts import ScriptedPolicy, ScriptedSettings
from coterie.experts.scripted import StoredPolicy, random_move, scripted_reply, wrong_answer

LIMITS = Sampling(max_new_tokens=64)


def share_right(four, **settings):
    script = ScriptedSettings(**settings)
    replies = [scripted_reply(script, four, seed) for seed in range(2000)]
    return sum(reply == "Answer: 4" for reply in replies) / len(replies)


def test_oracle_is_right_with_probability_p(four):
    assert share_right(four, p_right=1.0) == 1.0
    assert share_right(four, p_right=0.0) == 0.0
    # Four standard errors: 4 * sqrt(.7 * .3 / 2000) = .041.
    assert share_right(four, p_right=0.7) == pytest.approx(0.7, abs=0.041)


def test_oracle_repeats_itself_for_a_seed(four):
    script = ScriptedSettings(p_right=0.5)
    first = [scripted_reply(script, four, seed) for seed in range(50)]
    assert first == [scripted_reply(script, four, seed) for seed in range(50)]
    assert len(set(first)) > 2


def test_wrong_answers_come_from_the_list_and_are_wrong(four):
    script = ScriptedSettings(p_right=0.0, wrong=("7", " 4 ", "9"), template="It is {answer}!")
    said = {scripted_reply(script, four, seed) for seed in range(100)}
    assert said == {"It is 7!", "It is 9!"}
    only_gold = ScriptedSettings(p_right=0.0, wrong=("4",))
    assert scripted_reply(only_gold, four, 1) != "Answer: 4"


async def test_policy_speaks_the_roles_vocabulary(ask, codec, four):
    expert = ScriptedPolicy(ScriptedSettings(), codec)
    completion = await expert(ask(problem=four), LIMITS)
    assert codec.decode(completion.tokens) == "Answer: 4"
    assert completion.finish_reason == "eos"
    assert all(math.isnan(x) for x in completion.logprobs)
    cut = await expert(ask(problem=four), Sampling(max_new_tokens=3))
    assert (codec.decode(cut.tokens), cut.finish_reason) == ("Ans", "length")
    assert (expert.counters.answered, expert.counters.reply_tokens) == (2, 12)
    assert expert.counters.shortened == 1


async def test_useless_and_gold_hint(ask, codec, four):
    useless = ScriptedPolicy(ScriptedSettings(kind="useless", useless_text="Hm."), codec)
    assert codec.decode((await useless(ask(), LIMITS)).tokens) == "Hm."
    braces = Problem(id="x", question="?", gold=r"\frac{1}{2}{answer}")
    hint = ScriptedPolicy(ScriptedSettings(kind="gold-hint", hint_template="{answer}?"), codec)
    said = codec.decode((await hint(ask(problem=braces), LIMITS)).tokens)
    assert said == r"\frac{1}{2}{answer}?"


def test_the_useless_say_what_the_papers_say(four):
    # EAPO, arXiv:2509.23730, appendix E
    said = scripted_reply(ScriptedSettings(kind="useless"), four, 0)
    assert said == "I cannot offer you any assistance; please resolve the issue yourself."


async def test_silent_and_slow(ask, codec):
    silent = ScriptedPolicy(ScriptedSettings(kind="silent"), codec)
    with pytest.raises(PolicyFailure, match="silent"):
        await silent(ask(), LIMITS)
    assert silent.counters.as_dict()["failed/silent"] == 1
    slow = ScriptedPolicy(ScriptedSettings(kind="useless", delay_s=0.05), codec)
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.01):
            await slow(ask(), LIMITS)
    assert slow.counters.answered == 0
    assert slow.counters.calls == slow.counters.failed == 1


@pytest.mark.parametrize("kind", ["oracle", "gold-hint"])
async def test_without_a_problem_there_is_nothing_to_read(ask, codec, kind):
    with pytest.raises(UserError, match="gold answer"):
        await ScriptedPolicy(ScriptedSettings(kind=kind), codec)(ask(), LIMITS)


@pytest.mark.parametrize("gold", ["0", "-3", "+5", "12.50", "3/4", "-7/2", "1,234", "9" * 40])
def test_wrong_numbers_differ_in_value(gold):
    problem = Problem(id="n", question="", gold=gold, kind="number")
    plain = Fraction(gold.replace(",", ""))
    wrong = {wrong_answer(problem, random.Random(seed)) for seed in range(100)}
    assert {Fraction(text) - plain for text in wrong} == {-10, -2, -1, 1, 2, 10}


@pytest.mark.parametrize(
    ("tolerance", "alternatives"), [(5.0, ()), (0.5, ()), (0.0, ("11", "8", "nine"))]
)
def test_wrong_numbers_are_no_other_wording_and_beyond_the_tolerance(tolerance, alternatives):
    more = {"tolerance": tolerance, "alternatives": alternatives}
    problem = Problem(id="n", question="", gold="10", kind="number", **more)
    wrong = {wrong_answer(problem, random.Random(seed)) for seed in range(60)}
    golds = [10, *(int(text) for text in alternatives if text.isdigit())]
    assert all(abs(Fraction(text) - gold) > tolerance for text in wrong for gold in golds)
    assert len(wrong) == 6 - len(golds[1:])


def test_wrong_answers_of_the_other_kinds():
    def wrong(gold, kind, **more):
        problem = Problem(id="w", question="", gold=gold, kind=kind, **more)
        return {wrong_answer(problem, random.Random(seed)) for seed in range(60)}

    assert wrong("B", "choice", choices=("w", "x", "y", "z")) == {"A", "C", "D"}
    assert wrong("(b)", "choice", choices=("w", "x")) == {"A"}
    assert wrong("A", "choice") == {"B"}
    assert wrong("Paris", "text") == {"not Paris"}
    # One entry becomes larger than all: no reordering of the gold list.
    assert wrong("1, 20,3", "list") == {"100, 20,3"}
    assert wrong("x, y", "list") == {"x, y, 0, 0"}
    assert wrong(r"\sqrt{2}", "math") == {r"\sqrt{2}+1"}
    assert wrong("", "math") == {"0"}


@pytest.mark.parametrize("gold", ["1e999999999", "9" * 10**6, "," * 10**5, "1/0"])
@pytest.mark.parametrize("kind", ["math", "number", "list", "choice", "text"])
def test_hostile_gold_is_survived(gold, kind):
    problem = Problem(id="h", question="", gold=gold, kind=kind)
    assert wrong_answer(problem, random.Random(0)) != gold


async def test_each_seat_says_its_own(ask, codec, four):
    expert = StoredPolicy({four.id: ["one", "two"]}, codec)
    limits = Sampling(max_new_tokens=64)
    said = [codec.decode((await expert(ask(problem=four, agent=f"expert_{k}"), limits)).tokens)
            for k in range(2)]  # fmt: skip
    assert said == ["one", "two"]
    with pytest.raises(PolicyFailure, match="no reply is stored"):
        await expert(ask(problem=four, agent="expert_2"), limits)
    with pytest.raises(PolicyFailure, match="no reply is stored"):
        await expert(ask(), limits)


def test_the_random_player_plays_the_moves_of_the_last_list():
    context = "Moves: 7 8 =\nand then\nMoves: 0 2 15 ="
    counts = Counter(random_move(context, seed) for seed in range(3000))
    # 3000 draws of three moves: 1000 each, within four standard deviations (26 each).
    assert set(counts) == {"0", "2", "15"}
    assert all(abs(count - 1000) < 104 for count in counts.values())
    assert random_move(context, 5) == random_move(context, 5)
    words = {random_move("Moves: [roll twice] [hold] =", seed) for seed in range(50)}
    assert words == {"[roll twice]", "[hold]"}
    with pytest.raises(UserError, match="lists after 'Moves:', and here none are listed"):
        random_move("7 + 8 =", 0)


def test_an_oracle_with_a_solution():
    problem = Problem("p", "1 + 1 =", "2", "number", meta={"solution": "1 + 1 = 2\nAnswer: 2"})
    settings = ScriptedSettings(template="{solution}")
    assert scripted_reply(settings, problem, 0) == "1 + 1 = 2\nAnswer: 2"
    wrong = ScriptedSettings(template="{solution}", p_right=0.0, wrong=("7",))
    assert scripted_reply(wrong, problem, 0) == "Answer: 7"
    plain = Problem("p", "1 + 1 =", "2", "number")
    assert scripted_reply(settings, plain, 0) == "Answer: 2"
