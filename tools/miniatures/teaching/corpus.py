"""What a tiny role reads before it meets a peer: its own imperfect work, cold and hinted."""

from collections.abc import Callable

from launch.tiny.example import Example
from launch.tiny.teaching.habits import Habits
from launch.tiny.teaching.markup import prompt, trace, working
from problems.chains import OPERATIONS, Chain, ChainSettings, draw_chain

Uniform = Callable[[], float]


def draw_length(uniform: Uniform) -> int:
    """A number of operations, as the team meets them."""
    usual = ChainSettings()
    return usual.min_length + int(uniform() * (usual.max_length - usual.min_length + 1))


def draw_strong(operators: str, length: int, uniform: Uniform) -> Chain:
    """A chain with these ``operators`` only."""
    signs = "".join(operators[int(uniform() * len(operators))] for _ in range(length))
    return Chain(tuple(int(uniform() * 10) for _ in range(length + 1)), signs)


def draw_any(length: int, uniform: Uniform) -> Chain:
    """A chain of the mix of families on which the team is trained and measured."""
    return draw_chain(ChainSettings(min_length=length, max_length=length), uniform)[1]


def cold_example(chain: Chain, habits: Habits, uniform: Uniform) -> Example:
    """Each step by habit, each value passed on as it was written, right or wrong."""
    values: list[int] = []
    running = chain.digits[0]
    for sign, digit in zip(chain.operators, chain.digits[1:]):
        running = habits.write(sign, running, digit, uniform)
        values.append(running)
    return Example(prompt(chain.question), trace(work(chain, values), values[-1]))


def hinted_example(chain: Chain, habits: Habits, uniform: Uniform, *, scrambled: float) -> Example:
    """The hint's values are copied, however wrong; only the last step is the role's own.

    A share ``scrambled`` of the values is random: only who reads the hint can foretell them.
    """
    values: list[int] = []
    running = chain.digits[0]
    for sign, digit in zip(chain.operators[:-1], chain.digits[1:]):
        right = OPERATIONS[sign](running, digit)
        running = int(uniform() * 10) if uniform() < scrambled else right
        values.append(running)
    answer = habits.write(chain.operators[-1], running, chain.digits[-1], uniform)
    shown = work(chain, values)
    return Example(prompt(chain.question, shown), trace(shown, answer))


def work(chain: Chain, values: list[int] | tuple[int, ...]) -> str:
    """The body of a trace that writes ``values``; all but the last one are shown."""
    return working(chain.digits[0], chain.operators, chain.digits[1:], tuple(values))
