"""Where a response holds its program: right programs are right however they are written down."""

import sys
import time
from types import ModuleType

import pytest

from coterie.datatypes import Problem
from coterie.extras.programs.assemble import assemble, load
from coterie.extras.programs.fences import program_in
from coterie.extras.programs.grader import LONGEST, ProgramGrader
from coterie.extras.programs.sandbox import ProgramLimits
from coterie.rewards.grading.answers import after_thinking

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the guard is Linux's")

PROMPT = 'def triple(x: int) -> int:\n    """Return three times x."""\n'
TEST = "def check(candidate):\n    assert candidate(2) == 6\n    assert candidate(-5) == -15\n"
META = {"entry_point": "triple", "test": TEST, "code_prompt": PROMPT}
PROBLEM = Problem("p", PROMPT, "    return 3 * x\n", "code", meta=META)
GRADE = ProgramGrader(ProgramLimits(deadline_s=60.0, memory_mb=256))

GOOD = "def triple(x):\n    return 3 * x\n"
BAD = "def triple(x):\n    return 2 * x\n"


def block(code: str, info: str = "python", mark: str = "```") -> str:
    return f"{mark}{info}\n{code.rstrip()}\n{mark}\n"


RIGHT = {
    # What follows the solution.
    "usage": block(GOOD) + "Use it like this:\n" + block("print(triple(4))  # 12"),
    "a wrong assertion": block(GOOD) + block("assert triple(1) == 4"),
    "a shell": block(GOOD) + block("$ python triple.py\n12", "bash"),
    "an output that assigns": block(GOOD) + block("triple = 12", "text"),
    "a stub that recalls it": block(GOOD)
    + block("def triple(x):\n    ...  # as above\n\nassert triple(1) == 3"),
    "a loop over a solution class": block(
        "class Solution:\n    def triple(self, x):\n        return 3 * x\n\n"
        "while True:\n    print(Solution().triple(int(input())))"
    ),
    "commands of a notebook": block("!pip install numpy\n%matplotlib inline\n" + GOOD),
    "a test class": block(GOOD)
    + block(
        "import unittest\nfrom solution import triple\n\nclass TestTriple(unittest.TestCase):\n"
        "    def test(self):\n        self.assertEqual(triple(2), 6)\n\nunittest.main()"
    ),
    "a demonstration that reads": block(GOOD) + block("n = int(input())\nprint(triple(n))"),
    "reading in the same block": block(GOOD + "\nn = int(input('n? '))\nprint(triple(n))"),
    "a wrong assertion in the same block": block(GOOD + "\nassert triple(1) == 4"),
    "main in the same block": block(
        GOOD + "\ndef main():\n    while True:\n        print(triple(int(input())))\n\nmain()"
    ),
    "a guarded main": block(GOOD + '\nif __name__ == "__main__":\n    import sys\n    sys.exit(1)'),
    # Helpers in blocks of their own.
    "a helper before": block("def add(a, b):\n    return a + b")
    + "With it:\n"
    + block("def triple(x):\n    return add(x, add(x, x))"),
    "a helper after": block("def triple(x):\n    return add(x, 2 * x)")
    + "where\n"
    + block("def add(a, b):\n    return a + b"),
    "a star import before": block("from operator import *")
    + block("def triple(x):\n    return mul(x, 3)"),
    "helpers of helpers": block("ONE = 1\ndef two():\n    return ONE + ONE\nprint(two())")
    + block("def three():\n    return two() + ONE")
    + block("def triple(x):\n    return three() * x"),
    "a table that is filled before": block(
        "table = {}\nfor n in range(-9, 9):\n    table[n] = 3 * n"
    )
    + block("def triple(x):\n    return table[x]"),
    "a decorator in the next block": block(
        "import functools\n\n@functools.cache\ndef triple(x):\n    return 3 * x"
    )
    + block("triple(2)\ntriple.cache_info()"),
    "a wrapper in the next block": block(GOOD)
    + "Faster:\n"
    + block("from functools import cache\ntriple = cache(triple)"),
    # Versions.
    "drafts": block(BAD) + "Wait, that doubles.\n" + block(GOOD),
    "drafts in one block": block(BAD + "\n" + GOOD),
    "a draft that loops": block("while True:\n    pass\n" + BAD) + block(GOOD),
    # Fences.
    "four backticks": block(GOOD, mark="````"),
    "four around three": block(
        'def triple(x):\n    """\n    ```\n    triple(2)\n    ```\n    """\n    return 3 * x',
        mark="````",
    ),
    "tildes": block(GOOD, mark="~~~"),
    "a list": "1. Code:\n\n   ```python\n   def triple(x):\n       return 3 * x\n   ```\n2. Done.",
    "a mark of a list": "- ```python\n  def triple(x):\n      return 3 * x\n  ```\n- Done.",
    "a quotation": "> ```python\n> def triple(x):\n>     return 3 * x\n> ```\n",
    "a title": block(GOOD, 'py title="triple.py"'),
    "braces": block(GOOD, "{.python .numberLines}"),
    "windows lines": block(GOOD).replace("\n", "\r\n"),
    "code at the closing fence": "```python\ndef triple(x):\n    return 3 * x```\nThat is all.",
    "words before the fence": "Answer: ```python\n" + GOOD + "```",
    "words after the closing fence": "```python\n" + GOOD + "``` This triples x.",
    "code at the opening fence": "```python def triple(x):\n    return 3 * x\n```",
    "one line": "It is ```def triple(x): return 3 * x```, I think.",
    "one line at the margin": "```python def triple(x): return 3 * x```",
    "a stray fence before": "```\nHere you are:\n```python\n" + GOOD + "```",
    "a stray fence between": block(BAD) + "```\nNo:\n" + block(GOOD),
    "a stray fence after": block(GOOD) + "```\nThat is all.",
    "never closed": "```python\n" + GOOD,
    "broken off behind it": "```python\n" + GOOD + "\nprint(triple(",
    "an element": "<answer>\n" + GOOD + "</answer>",
    "a glued element": "<code>def triple(x):\n    return 3 * x</code>",
    # No fence.
    "words before": "Here is the function:\n\n" + GOOD,
    "words after": GOOD + "\nThis function multiplies x (an int) by three: it's simple.",
    "words around": "Sure! You need this.\n\n" + GOOD + "\nNote: it works for any number.\n- fast",
    "usage without a fence": GOOD + "\nExample:\n>>> triple(4)\n12\n",
    "an open bracket in words": "See (below\n\n" + GOOD + "\nThat's it :)",
    "text at the margin": 'def triple(x):\n    text = """\nmargin\n"""\n    return 3 * x\nSo',
    "code with an indentation": "The code is:\n\n    def triple(x):\n        return 3 * x\n\nDone.",
    "imports before it": "from math import prod\n\ndef triple(x):\n    return prod((3, x))\n",
    "imports and a fence": "import math\n\ndef triple(x):\n    return math.prod((3, x))\n```\n",
    "imports and a helper": "import math\n\ndef times(n, x):\n    return math.prod((n, x))\n\n"
    "def triple(x):\n    return times(3, x)",
    "imports and a class": "import math\n\nclass Solution:\n    def triple(self, x):\n"
    "        return math.prod((3, x))",
    # The end of the text, spelled out.
    "an end": GOOD.rstrip() + "<|endoftext|>",
    "half an end": GOOD.rstrip() + "<|im_",
    "an end in an open fence": "```python\n" + GOOD.rstrip() + "<end_of_turn>",
    "an end behind a body": "    return 3 * x<｜end▁of▁sentence｜>",
    "an end that is a value": block("def triple(x):\n    return 3 * x if '</s>' else '<|a|>'"),
    "a decorator": "Here:\n@staticmethod\ndef triple(x):\n    return 3 * x\nDone it is.",
    # Continuations of the prompt.
    "a body": "    return 3 * x\n",
    "a body without its indentation": "return 3 * x",
    "a body whose first line lost it": "total = x\n    return total + 2 * x",
    "a body of two blanks": "  y = 2 * x\n  return x + y",
    "a body in a fence": block("    y = 2 * x\n    return x + y"),
    "a bare body in a fence": block("y = 2 * x\nreturn x + y"),
    "a body and words": "    return 3 * x\n\nThis returns three times x.\n",
    "a body, then another function": "    return 3 * x\n\n\ndef quadruple(x):\n    return 4 * x\n",
    "a body, then half a function": "    return 3 * x\n\n\ndef quadruple(x):\n    return 4 *",
    "a body, then the function again": "    return 3 * x\n\n\n" + BAD,
    "a body, then half the function again": "    return 3 * x\n\n\ndef triple(x):\n    if x >",
    "a body, then a program": "    return 3 * x\n\nimport sys\nprint(triple(1))\nsys.exit(0)\n",
    "a body, then a loop": "    return 3 * x\n\nn = 1\nwhile n:\n    n += 1\n",
    "a body, then a helper": "    return helped(x)\n\n\ndef helped(x):\n    return 3 * x\n",
    "a body, then a fence": "    return 3 * x\n```\n\nThat is the function `triple`.",
    # What a definition may look like.
    "a future": block("from __future__ import annotations\n\n" + GOOD),
    "a future behind words": "Code:\nfrom __future__ import annotations\n" + GOOD,
    "a dataclass with a future": block(
        "from __future__ import annotations\nfrom dataclasses import dataclass\n\n@dataclass\n"
        "class Times:\n    n: int\n\ndef triple(x):\n    return Times(3).n * x"
    ),
    "a lambda": block("triple = lambda x: 3 * x"),
    "a name": block("def thrice(number):\n    return 3 * number\n\ntriple = thrice"),
    "a name with a type": block(
        "from typing import Callable\ntriple: Callable[[int], int] = lambda x: 3 * x"
    ),
    "an import": block(
        "import math\n\ndef three(): return 3\n\nfrom operator import mul as times\n"
        "def triple(x): return times(three(), x)"
    ),
    "a coroutine": block(
        "async def part(x):\n    return 2 * x\n\nasync def triple(x):\n    return x + await part(x)"
    ),
    "a solution class": block(
        "class Solution:\n    def triple(self, x: int) -> List[int]:\n        return 3 * x"
    ),
    "names that an editor imports": block(
        "class Solution:\n    def triple(self, x: int) -> Optional[int]:\n"
        "        counts = defaultdict(int)\n        counts[x] += 2\n"
        "        return accumulate and heapq.nlargest(1, [counts[x]])[0] * x + math.prod([x])\n"
        "    " + "# 2 * x + x\n"
    ),
    "a solution object": block(
        "class Times:\n    def triple(self, x):\n        return 3 * x\n\ntriple = Times().triple"
    ),
    "a static method": block(
        "class Solution:\n    @staticmethod\n    def triple(x):\n        return 3 * x"
    ),
    "a callable object": block(
        "class Times:\n    def __init__(self, n):\n        self.n = n\n"
        "    def __call__(self, x):\n        return self.n * x\n\ntriple = Times(3)"
    ),
    "an attribute of the function": block(
        "def triple(x):\n    triple.calls += 1\n    return 3 * x\n\ntriple.calls = 0"
    ),
    "mutual recursion": block(
        "def less(x):\n    return triple(x - 1) + 3\n\n"
        "def triple(x):\n    return 3 * x if x <= 0 else less(x)"
    ),
    "either definition": block(
        "try:\n    from numba import jit\nexcept ImportError:\n    def jit(f): return f\n\n"
        "@jit\ndef triple(x):\n    return 3 * x"
    ),
    "an import that fails": block("import matplotlib.pyplot as plt\n\n" + GOOD),
    "behind a thought": "<think>\n" + block(BAD) + "Hm.</think>\n" + block(GOOD),
}


@pytest.mark.parametrize("name", RIGHT)
def test_right_programs_are_found(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """In this process, because a guarded one takes a fifth of a second."""
    program = program_in(after_thinking(RIGHT[name]), "triple", PROMPT)
    assert program is not None
    space = ModuleType("program")
    monkeypatch.setitem(sys.modules, "program", space)
    parts = assemble([*program.blocks], program.home, "triple", PROMPT, program.kind)
    triple = load(parts, "triple", vars(space))
    if name != "a coroutine":
        assert [triple(2), triple(-5)] == [6, -15]


GUARDED = (
    "usage",
    "a demonstration that reads",
    "a helper after",
    "four around three",
    "words around",
    "a body, then a program",
    "a dataclass with a future",
    "a coroutine",
    "a solution class",
    "an import that fails",
)


def test_right_programs_are_right_under_guard() -> None:
    verdicts = GRADE([(RIGHT[name], PROBLEM) for name in GUARDED])
    assert [(verdict.correct, verdict.method) for verdict in verdicts] == [(True, "tests")] * 10


@pytest.mark.parametrize(
    "response",
    [
        block(GOOD) + block("while True:\n    triple(1)"),
        block("while True:\n    pass\n") + block(GOOD),
        block(
            GOOD + "\nwhile True:\n    try:\n        print(triple(int(input())))\n"
            "    except Exception:\n        continue\n"
        ),
    ],
)
def test_a_demonstration_that_never_ends_is_not_run(response: str) -> None:
    (verdict,) = GRADE([(response, PROBLEM)])
    assert verdict.correct


WRONG = {
    "the last version": (block(GOOD) + "Better:\n" + block(BAD), "tests"),
    "the last version in one block": (block(GOOD + "\n" + BAD), "tests"),
    "a last version that cannot be parsed": (
        block(GOOD) + block("def triple(x) return 3 * x"),
        "tests",
    ),
    "that in one block": (block(GOOD + "\ndef triple(x) return 3 * x"), "tests"),
    "a last version that breaks off": (
        block(GOOD) + "```python\ndef triple(x):\n    return (3 *",
        "tests",
    ),
    "a version that breaks off": ("```python\ndef triple(x):\n    return (3 *", "tests"),
    "a body that breaks off": ("    return (3 *", "tests"),
    "a body that is wrong, then the function": ("    return 2 * x\n\n\n" + GOOD, "tests"),
    "the draft of a thought": ("<think>\n" + block(GOOD) + "</think>\nI do not know.", "none"),
    "a thought without an end": ("<think>\n" + block(GOOD), "none"),
    "words": ("Multiply x by three and return it: triple(x) = 3 * x.", "none"),
    "usage alone": (block("print(triple(4))"), "tests"),
    "another name": (block(GOOD.replace("triple", "thrice")), "none"),
    "a nested function": (block("def outer():\n    def triple(x):\n        return 3 * x"), "tests"),
    "an exit on loading": (block("import os\n" + GOOD + "os._exit(0)"), "quit"),
    "sys.exit on loading": (block("import sys\n" + GOOD + "sys.exit(0)"), "tests"),
    "a decorator that fails": (block(GOOD + "\n@missing\n" + GOOD), "tests"),
    "a stub alone": (block("def triple(x):\n    ..."), "tests"),
    "a name in a comment": (block("# triple\nx = 1"), "tests"),
    "too long": (block(f"def triple(x):\n    return {'0+' * LONGEST}3 * x"), "refused"),
}


@pytest.mark.parametrize("name", WRONG)
def test_other_programs_are_wrong(name: str) -> None:
    response, method = WRONG[name]
    (verdict,) = GRADE([(response, PROBLEM)])
    assert (verdict.correct, verdict.method) == (False, method)


def test_without_a_prompt_nothing_is_continued() -> None:
    assert program_in("    return 3 * x", "triple", "") is None


def test_the_answer_is_the_block_with_the_solution() -> None:
    (verdict,) = GRADE([(block(GOOD) + block("print(triple(4))"), PROBLEM)])
    assert verdict.answer == GOOD.strip()


@pytest.mark.parametrize(
    "text",
    [
        "`" * 200_000,
        "```\n" * 50_000,
        " " * 200_000,
        "> " * 100_000,
        "def triple" * 20_000,
        "triple:" * 30_000,
        "1. " * 60_000,
    ],
)
def test_finding_is_linear(text: str) -> None:
    began = time.process_time()
    program_in(text, "triple", PROMPT)
    # Each takes minutes where the time grows with the square of the length.
    assert time.process_time() - began < 4
