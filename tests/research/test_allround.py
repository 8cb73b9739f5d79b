"""What roles read that can begin in all three systems."""

import random
import re

from coterie.envs.corea_deferral.settings import SUFFIX
from coterie.problems.chains import Chain
from coterie.rewards.confidence import format_parts
from miniatures.allround import deferral_example, last_value
from miniatures.chains import Habits
from miniatures.consulting import call_example, question_of, returned_example, trace
from miniatures.recipe import Example

# 7 + 8 = 15, 15 - 3 = 12, 2 * 2 + 3 * 4 + 1 = 17: values 5, 2, 7.
CHAIN = Chain((7, 8, 3, 4), "+-@")


def test_a_confidence_stands_behind_a_worked_answer() -> None:
    asked = deferral_example(CHAIN, Habits({}), random.Random(0))
    assert asked.prompt == f"7 + 8 - 3 @ 4 = {SUFFIX}"
    worked, _, stated = asked.answer.partition(r" \confidence{ ")
    assert worked == r" 7 + 8 = 5 - 3 = 2 @ 4 = 7 \boxed{ 7 }"
    assert 0 <= float(stated.removesuffix(" }")) <= 1
    assert all(format_parts(asked.answer, CHAIN.question))


def test_confidence_hardly_tells_the_chance_to_be_right() -> None:
    """A habit that is written half of the time takes .05 of .1 off the mean."""
    habits = Habits({("-", 5, 3): (9, 0.5)})
    rng = random.Random(1)

    def mean(known: Habits) -> float:
        texts = [deferral_example(CHAIN, known, rng).answer for _ in range(4000)]
        return sum(float(t.partition(r"\confidence{ ")[2].removesuffix(" }")) for t in texts) / 4000

    assert 0.02 < mean(Habits({})) - mean(habits) < 0.06


def test_who_is_asked_for_all_values_is_asked_for_the_last() -> None:
    alone = Example(question_of(CHAIN), trace(CHAIN, CHAIN.values))
    last = last_value(alone)
    assert last.prompt == CHAIN.question
    assert last.answer == " <think> 7 + 8 = 5 - 3 = 2 @ 4 = 7 </think>\nAnswer: 7"
    uniform = random.Random(0).random
    for _ in range(50):
        replied = returned_example(CHAIN, Habits({}), uniform)
        for example in (replied, call_example(CHAIN, Habits({}), uniform)[0]):
            text = "".join(vars(last_value(example)).values())
            assert "All values" not in text
            assert len(re.findall(r"Answer: \d\b", text)) == text.count("Answer: ")
