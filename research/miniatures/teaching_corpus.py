"""Training texts of a tiny role before it meets a peer: its own imperfect work, cold and hinted."""

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from coterie.problems.chains import OPERATIONS, Chain, ChainSettings, draw_chain
from miniatures.recipe import Example

TAGS = (
    '<strategy id="1">',
    "</strategy>",
    "<result>",
    "</result>",
    "<final_answer>",
    "</final_answer>",
)
QUESTION = "Question:"
SOLVE = "\nLet's solve this step by step:"
HINT = "\nHint:\n"
Entry = tuple[str, int, int]
"""Sign, left and right operand."""
Uniform = Callable[[], float]


def prompt(question: str, hint: str = "") -> str:
    """Return a model's prompt; cold without ``hint``."""
    shown = f"{HINT}{hint}" if hint else ""
    return f"{QUESTION} {question}{shown}{SOLVE}"


def working(first: int, operators: str, operands: tuple[int, ...], values: tuple[int, ...]) -> str:
    """``7 + 8 = 5 - 3 =``: each operation with the value it is applied to; the last result is
    left out, so this is also what is left of a trace as a hint. One value less than operators."""
    steps = [f"{first}"]
    for index, (sign, operand) in enumerate(zip(operators, operands)):
        steps.append(f"{sign} {operand} =")
        if index + 1 < len(operators):
            steps.append(f"{values[index]}")
    return " ".join(steps)


def trace(shown_working: str, answer: int) -> str:
    """Return a model's answer; it begins with the space that separates it from the prompt."""
    return (
        f' <strategy id="1"> {shown_working} <result> {answer} </result> </strategy>'
        f" <final_answer> {answer} </final_answer>"
    )


@dataclass(frozen=True)
class Habits:
    """A fixed wrong value, and its probability, for each weak table entry."""

    wrong: Mapping[Entry, tuple[int, float]]

    def write(self, sign: str, left: int, right: int, uniform: Callable[[], float]) -> int:
        """Return the value that the role writes for one operation."""
        value, probability = self.wrong.get((sign, left, right), (0, 0.0))
        if probability and uniform() < probability:
            return value
        return OPERATIONS[sign](left, right)


def draw_habits(weak: str, bounds: tuple[float, float], uniform: Callable[[], float]) -> Habits:
    """Every entry of the ``weak`` operations gets a wrong value and a probability in ``bounds``."""
    wrong: dict[Entry, tuple[int, float]] = {}
    for sign in weak:
        for left in range(10):
            for right in range(10):
                shift = 1 + int(uniform() * 9)
                value = (OPERATIONS[sign](left, right) + shift) % 10
                wrong[sign, left, right] = (value, bounds[0] + uniform() * (bounds[1] - bounds[0]))
    return Habits(wrong)


def habits_of(role: str, weak: str, bounds: tuple[float, float]) -> Habits:
    """Return one role's habits; they are the same at every rebuild, whatever the seed."""
    return draw_habits(weak, bounds, random.Random(f"habits of {role}").random)


def draw_length(uniform: Uniform) -> int:
    """Draw a number of operations from the team's distribution."""
    usual = ChainSettings()
    return usual.min_length + int(uniform() * (usual.max_length - usual.min_length + 1))


def draw_strong(operators: str, length: int, uniform: Uniform) -> Chain:
    """Draw a chain with these ``operators`` only."""
    signs = "".join(operators[int(uniform() * len(operators))] for _ in range(length))
    return Chain(tuple(int(uniform() * 10) for _ in range(length + 1)), signs)


def draw_any(length: int, uniform: Uniform) -> Chain:
    """A chain of the mix of families on which the team is trained and measured."""
    return draw_chain(ChainSettings(min_length=length, max_length=length), uniform)[1]


def own_values(chain: Chain, habits: Habits, uniform: Uniform) -> list[int]:
    """Each value by habit, passed on as it was written, right or wrong."""
    values: list[int] = []
    running = chain.digits[0]
    for sign, digit in zip(chain.operators, chain.digits[1:]):
        running = habits.write(sign, running, digit, uniform)
        values.append(running)
    return values


def scrambled_values(chain: Chain, uniform: Uniform, share: float) -> list[int]:
    """Return right values except for a ``share`` of random ones, each passed on."""
    values: list[int] = []
    running = chain.digits[0]
    for sign, digit in zip(chain.operators, chain.digits[1:]):
        right = OPERATIONS[sign](running, digit)
        running = int(uniform() * 10) if uniform() < share else right
        values.append(running)
    return values


def cold_example(chain: Chain, habits: Habits, uniform: Uniform) -> Example:
    """Each step by habit, each value passed on as it was written, right or wrong."""
    values = own_values(chain, habits, uniform)
    return Example(prompt(chain.question), trace(work(chain, values), values[-1]))


def hinted_example(chain: Chain, habits: Habits, uniform: Uniform, *, scrambled: float) -> Example:
    """Copy the hint's values, right or wrong; only the last step is the role's own.

    A share ``scrambled`` of the values is random: they can be predicted only from the hint.
    """
    values = scrambled_values(Chain(chain.digits[:-1], chain.operators[:-1]), uniform, scrambled)
    answer = habits.write(chain.operators[-1], values[-1], chain.digits[-1], uniform)
    shown = work(chain, values)
    return Example(prompt(chain.question, shown), trace(shown, answer))


def work(chain: Chain, values: list[int] | tuple[int, ...]) -> str:
    """The body of a trace that writes ``values``; all but the last one are shown."""
    return working(chain.digits[0], chain.operators, chain.digits[1:], tuple(values))
