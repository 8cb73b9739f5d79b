"""What passes between a program and its tests: right programs of every kind, and no false ones."""

import sys

import pytest

from coterie.extras.programs.sandbox import ProgramLimits, ProgramTests, run

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the guard is Linux's")
AMPLE = ProgramLimits(deadline_s=60.0, memory_mb=512)

RIGHT = {
    "iterators": (
        "def f(n):\n    yield from range(n)\n"
        "    for item in zip('ab', map(abs, (-1, 2))): yield item",
        "assert list(f(2)) == [0, 1, ('a', 1), ('b', 2)]\nassert next(f(1)) == 0",
    ),
    "an iterator without an end": (
        "def f():\n    n = 0\n    while True:\n        yield n\n        n += 1",
        "from itertools import islice\nassert list(islice(f(), 3)) == [0, 1, 2]\nassert 5 in f()",
    ),
    "iterators of iterators": (
        "import itertools\ndef f(text): return itertools.groupby(text)",
        "assert [(key, len(list(group))) for key, group in f('aab')] == [('a', 2), ('b', 1)]",
    ),
    "an iterator that raises": (
        "def f():\n    yield 1\n    raise KeyError('two')",
        "it = f()\nassert next(it) == 1\ntry:\n    next(it)\nexcept KeyError as error:\n"
        "    assert error.args == ('two',)\nelse:\n    assert False",
    ),
    "an iterator as an argument": (
        "def f(items): return sum(items) + next(items, 0)",
        "assert f(iter([1, 2])) == 3\nassert f(n * n for n in range(3)) == 5",
    ),
    "ranges and views": (
        "def f(d): return range(1, 7, 2), d.keys(), d.values(), d.items(), reversed([1, 2])",
        "r, k, v, i, back = f({'a': 1})\nassert r == range(1, 7, 2) and k == {'a'}\n"
        "assert list(v) == [1] and i == {('a', 1)} and list(back) == [2, 1]",
    ),
    "exact numbers": (
        "from fractions import Fraction\nfrom decimal import Decimal\n"
        "def f(): return Fraction(1, 3), Decimal('0.10'), 10 ** 5000, -(2 ** 70), 1 - 2j",
        "from fractions import Fraction\nfrom decimal import Decimal\n"
        "assert f() == (Fraction(2, 6), Decimal('0.1'), 10 ** 5000, -(2 ** 70), 1 - 2j)",
    ),
    "dates": (
        "import datetime as dt\ndef f(day): return day + dt.timedelta(days=1), dt.datetime("
        "2024, 2, 29, 1, tzinfo=dt.timezone.utc), dt.time(1, 2)",
        "import datetime as dt\nassert f(dt.date(2023, 12, 31)) == (dt.date(2024, 1, 1), "
        "dt.datetime(2024, 2, 29, 1, tzinfo=dt.timezone.utc), dt.time(1, 2))",
    ),
    "collections": (
        "from collections import *\n"
        "def f(): return deque([1], 3), Counter('aab'), OrderedDict(b=1, a=2), bytearray(b'x'), "
        "defaultdict(list, {1: [2]}), namedtuple('P', 'x')(1)",
        "d, c, o, b, e, p = f()\nd.append(2)\nassert d == collections.deque([1, 2])\n"
        "assert d.maxlen == 3 and c.most_common(1) == [('a', 2)] and list(o) == ['b', 'a']\n"
        "assert b == b'x' and e == {1: [2]} and p == (1,)",
    ),
    "sets": (
        "def f(a): return a | {3}, frozenset(a)",
        "a, b = f({1, 2})\nassert a == {1, 2, 3} and b == {1, 2} and type(b) is frozenset",
    ),
    "an enumeration": (
        "import enum\nclass Colour(str, enum.Enum):\n    RED = 'red'\n"
        "class Level(enum.IntEnum):\n    LOW = 1\ndef f(): return Colour.RED, Level.LOW",
        "assert f() == ('red', 1)",
    ),
    "numpy": (
        "import numpy as np\ndef f(xs): return np.mean(xs), np.array(xs) * 2, np.int64(3), "
        "np.bool_(True), np.linalg.det(np.eye(2))",
        "import numpy as np\nmean, twice, three, yes, one = f([1, 2])\n"
        "assert mean == 1.5 and three == 3 and yes is True and abs(one - 1) < 1e-9\n"
        "assert np.allclose(twice, [2, 4])",
    ),
    "an array as an argument": (
        "import numpy as np\ndef f(xs): return (xs.T @ xs).tolist()",
        "import numpy as np\nassert f(np.array([[1, 2]])) == [[1, 2], [2, 4]]",
    ),
    "callbacks": (
        "def f(g, xs, key=None): return [g(x) for x in xs], sorted(xs, key=key)",
        "assert f(lambda x: x + 1, [2, -3], key=abs) == ([3, -2], [2, -3])\n"
        "seen = []\nf(seen.append, [1, 2])\nassert seen == [1, 2]",
    ),
    "a callback that raises": (
        "def f(g):\n    try: return g(0)\n    except ZeroDivisionError: return 'none'",
        "assert f(lambda x: 1 / x) == 'none'",
    ),
    "functions as results": (
        "def f(g, h): return lambda x: g(h(x))",
        "assert f(lambda x: x + 1, lambda x: 2 * x)(5) == 11\ng = lambda: 0\n",
    ),
    "a function that comes back": (
        "def f(g): return g",
        "def g(): return 7\nassert f(g) is g\nassert f(max) is max",
    ),
    "callbacks that call": (
        "def f(n, g): return 1 if n == 0 else n * g(n - 1)",
        "again = lambda n: f(n, again)\nassert f(5, again) == 120",
    ),
    "types": (
        "def f(xs, kind): return [x for x in xs if not isinstance(x, kind)], type(xs)",
        "assert f([1, 'a', 2.5], int) == (['a', 2.5], list)\nassert f([1, 'a'], str)[0] == [1]",
    ),
    "the expected error": (
        "def f(x):\n    if x < 0:\n        raise ValueError('negative', x)\n    return x ** 0.5",
        "for bad in (-1, -2):\n    try:\n        f(bad)\n        assert False, 'nothing raised'\n"
        "    except ValueError as error:\n        assert error.args == ('negative', bad)\n"
        "assert f(4) == 2.0",
    ),
    "an own kind of error": (
        "class Empty(LookupError): pass\ndef f(xs):\n    if not xs: raise Empty\n    return xs[0]",
        "try:\n    f([])\nexcept LookupError:\n    pass\nelse:\n    raise AssertionError",
    ),
    "an error by unittest": (
        "def f(x): return 1 / x",
        "import unittest\ncase = unittest.TestCase()\ncase.assertRaises(ZeroDivisionError, f, 0)\n"
        "case.assertAlmostEqual(f(4), 0.25)",
    ),
    "sorting in place": (
        "def f(xs): xs.sort()",
        "def check(g):\n    xs = [3, 1, 2]\n    g(xs)\n    assert xs == [1, 2, 3]\n"
        "    for given, wanted in (([2, 1], [1, 2]), ([], [])):\n"
        "        assert g(given) is None\n        assert given == wanted",
    ),
    "in place against a copy": (
        "def f(xs): xs.reverse()",
        "def check(candidate):\n    xs = [1, 2, 3]\n    wanted = xs[::-1]\n    candidate(xs)\n"
        "    assert xs == wanted\n    xs = [4, 5]\n    wanted = xs[::-1]\n    candidate(xs)\n"
        "    assert wanted == xs",
    ),
    "the length of what is left": (
        "def f(nums):\n    nums[:] = sorted(set(nums)) + [0]\n    return len(nums) - 1",
        "nums = [1, 1, 2]\nk = f(nums)\nassert k == 2\nassert nums[:k] == [1, 2]",
    ),
    "other containers in place": (
        "def f(m, s, d, b):\n    m[0][0] = 9\n    s.add(2)\n    d.append(3)\n    b += b'!'\n"
        "    m.append([])",
        "m, s, d, b = [[1]], {1}, collections.deque([1]), bytearray(b'a')\nf(m, s, d=d, b=b)\n"
        "assert m == [[9], []] and s == {1, 2}\nassert list(d) == [1, 3]\nassert b == b'a!'",
    ),
    "arguments that stay": (
        "def f(xs):\n    xs.sort()\n    return xs",
        "xs = [2, 1]\nassert f(xs) == sorted(xs)",
    ),
    "modules of the tests": (
        "def f(x): return x",
        "import json, string, heapq\nfrom functools import reduce\nfrom typing import List\n"
        "assert json.loads(json.dumps(f([1]))) == [1]",
    ),
}


@pytest.mark.parametrize("name", RIGHT)
def test_right_programs_pass(name: str) -> None:
    program, test = RIGHT[name]
    assert run(program, ProgramTests("f", test), AMPLE) == "passed"


WRONG = {
    "a list for a tuple": ("def f(): return [1]", "assert f() == (1,)", "failed"),
    "a range for a list": ("def f(): return range(2)", "assert f() == [0, 1]", "failed"),
    "an iterator for a list": ("def f(): return iter([0])", "assert f() == [0]", "failed"),
    "another error": (
        "def f(): raise TypeError",
        "try:\n    f()\nexcept ValueError:\n    pass",
        "failed",
    ),
    "no error": (
        "def f(): return 0",
        "try:\n    f()\n    assert False\nexcept ValueError:\n    pass",
        "failed",
    ),
    "the end of a loop as an error": (
        "def f(x): raise StopIteration",
        "assert all(map(lambda x: f(x) == x, [1, 2]))",
        "failed",
    ),
    "that of a kind of its own": (
        "class End(StopIteration): pass\ndef f(x): raise End",
        "assert all(map(lambda x: f(x) == x, [1, 2]))",
        "failed",
    ),
    "an exit where an exit is awaited": (
        "import sys\ndef f(): sys.exit(0)",
        "try:\n    f()\nexcept SystemExit:\n    pass",
        "failed",
    ),
    "emptying what the tests count on": (
        "def f(xs):\n    xs.clear()\n    return []",
        "xs = [2, 1]\nassert f(xs) == sorted(xs)\nassert len(f(xs)) == len(xs)",
        "failed",
    ),
    "emptying and returning nothing": (
        "def f(xs): xs.clear()",
        "def least(xs): return min(xs) if xs else None\n"
        "for xs in ([2, 1], [3]):\n    out = f(xs)\n    assert out == least(xs)",
        "failed",
    ),
    "an object": ("class A: pass\ndef f(): return A()", "assert f()", "failed"),
    "an endless iterator": (
        "def f():\n    while True: yield 'x' * 500_000",
        "assert len(list(f())) == 3",
        "quit",
    ),
    "a range of gigabytes": (
        "def f(): return range(10 ** 12)",
        "assert len(f()) == 3",
        "quit",
    ),
    "an object as an argument": ("def f(x): return x", "assert f(object()) == 1", "error"),
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_programs_do_not_pass(name: str) -> None:
    program, test, outcome = WRONG[name]
    assert run(program, ProgramTests("f", test), AMPLE) == outcome


EVALPLUS = """
import numpy as np
def is_floats(x):
    return isinstance(x, float) or (isinstance(x, (list, tuple)) and all(map(is_floats, x)))
def assertion(out, exp, atol):
    exact_match = out == exp
    if atol == 0 and is_floats(exp):
        atol = 1e-6
    if not exact_match and atol != 0:
        assert np.allclose(out, exp, rtol=1e-07, atol=atol)
    else:
        assert exact_match
def check(candidate):
    for inp, exp in zip([[0.0], [1.5]], [RESULTS]):
        assertion(candidate(*inp), exp, 0)
"""
NUMBERS = EVALPLUS.replace("RESULTS", "0.5, 3.5")
LISTS = EVALPLUS.replace("RESULTS", "[0.5, 0.5], [3.5, 3.5]")
# Each takes f(1.5) for 3.5. The last two hold for NaN as well.
FORMS = (
    NUMBERS,
    "import numpy as np\nnp.testing.assert_allclose(f(1.5), 3.5)",
    "import numpy as np\nnp.testing.assert_allclose(desired=3.5, actual=f(1.5))",
    "from numpy.testing import assert_array_almost_equal as same\nsame(f(1.5), 3.5)",
    "import numpy\nassert numpy.isclose(f(1.5), 3.5).all()",
    "import numpy as np\nassert np.array_equiv(f(1.5), 3.5)",
    "import numpy as np\nnp.testing.assert_equal(f(1.5), np.array(3.5))",
    "assert not abs(f(1.5) - 3.5) > 1e-6",
    "if abs(f(1.5) - 3.5) >= 1e-6:\n    raise AssertionError",
)
CHEATS = (
    "[]", "[[]]", "()", "[3.5]", "[[3.5]]", "[3.5, 3.5]", "float('nan')", "[float('nan')]",
    "np.zeros((0, 1))",
)  # fmt: skip


@pytest.mark.parametrize("test", FORMS)
def test_a_number_is_compared_with_a_number(test: str) -> None:
    tests = ProgramTests("f", test)
    assert run("def f(x): return 2 * x + 0.5", tests, AMPLE) == "passed"
    program = "import numpy as np\ndef f(x): return {}"
    # A process each: one form meets all of them, the others one of each kind.
    cheats = CHEATS if test == NUMBERS else ("[]", "[3.5]", "float('nan')", "np.zeros((0, 1))")
    assert {value: run(program.format(value), tests, AMPLE) for value in cheats} == dict.fromkeys(
        cheats, "failed"
    )


def test_lists_of_numbers_are_compared_by_their_shape() -> None:
    tests = ProgramTests("f", LISTS)
    for value in ("[y, y]", "(y, y)", "[y + 1e-9, y]"):
        assert run(f"def f(x):\n    y = 2 * x + 0.5\n    return {value}", tests, AMPLE) == "passed"
    for value in ("y", "[y]", "[[y, y]]", "[[y], [y]]", "[]", "[y, float('nan')]"):
        assert run(f"def f(x):\n    y = 2 * x + 0.5\n    return {value}", tests, AMPLE) == "failed"


def test_nan_passes_where_the_tests_expect_it() -> None:
    tests = ProgramTests("f", "import math\nassert math.isnan(f())")
    assert run("def f(): return float('nan')", tests, AMPLE) == "passed"
