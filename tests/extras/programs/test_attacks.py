"""Programs that are wrong and try to be taken for right, or to read what is expected of them."""

import sys

import pytest

from coterie.extras.programs.sandbox import ProgramLimits, ProgramTests, run
from coterie.extras.programs.wire import BrokenLinkError, Peer

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the guard is Linux's")
AMPLE = ProgramLimits(deadline_s=60.0, memory_mb=256)
# A right program returns 1001, 1002, ...; the callback makes the link busy in both directions.
TEST = (
    "def check(candidate):\n    for n in range(1, 4):\n"
    "        assert candidate(n, lambda x: x) == 1000 + n\n"
)

WRITES = (
    "import os, json\ndef write(*messages):\n    for end in range(3, 16):\n"
    "        for message in messages:\n            try: os.write(end, (message + '\\n').encode())\n"
    "            except OSError: pass\n"
)
ATTACKS = {
    # What a program writes to its pipe is a result like any other: none of these knows it.
    "a forged load": WRITES + "write('\"loaded\"')\ndef f(n, g): return 0",
    "a forged word": WRITES + "write('\"passed\"', 'passed')\ndef f(n, g): return 0",
    "an error for a value": WRITES + 'def f(n, g): write(\'{"error": [["Exception"], []]}\')',
    "calls of what is not served": WRITES + "def f(n, g): write('{\"call\": [99, 0, 0]}')",
    "calls with odd numbers": WRITES + 'def f(n, g): write(\'{"call": ["0", [], {}]}\')',
    "calls of negative numbers": WRITES
    + 'def f(n, g): write(\'{"call": [-1, ["tuple", []], ["dict", []]]}\')',
    "a function of the tests as result": WRITES + 'def f(n, g): write(\'{"value": ["yours", 0]}\')',
    "changed arguments that nobody looks at": WRITES
    + 'def f(n, g): write(\'{"changed": [1001, ["list", [1, 2]]]}\')',
    "two keys": WRITES + 'def f(n, g): write(\'{"value": 1001, "error": 0}\')',
    "depth": WRITES + "def f(n, g): write('{\"value\": ' + '[' * 99999)",
    "no UTF-8": "import os\ndef f(n, g): [os.write(end, b'\\xff\\n') for end in (3, 4)]",
    "an unknown error": WRITES + 'def f(n, g): write(\'{"error": [["SystemExit"], []]}\')',
    # Classes that lie.
    "an integer that equals all": (
        "class Any(int):\n    __hash__ = int.__hash__\n    def __eq__(self, other): return True\n"
        "    def __int__(self): return 1001\n    def __index__(self): return 1001\n"
        "def f(n, g): return Any(0)"
    ),
    "text that equals all": (
        "class Any(str):\n    __hash__ = str.__hash__\n    def __eq__(self, other): return True\n"
        "def f(n, g): return Any()"
    ),
    "a list that equals all": (
        "class Any(list):\n    def __eq__(self, other): return True\n"
        "    def __iter__(self): return iter([1001])\ndef f(n, g): return Any()"
    ),
    "a dictionary that equals all": (
        "class Any(dict):\n    def __eq__(self, other): return True\n"
        "    def items(self): return [(1, 2)]\ndef f(n, g): return Any()"
    ),
    "a fraction that equals all": (
        "from fractions import Fraction\nclass Any(Fraction):\n    __hash__ = None\n"
        "    def __eq__(self, other): return True\ndef f(n, g): return Any(1, 3)"
    ),
    "a date that equals all": (
        "import datetime\nclass Any(datetime.date):\n    __hash__ = None\n"
        "    def __eq__(self, other): return True\ndef f(n, g): return Any(2024, 1, 1)"
    ),
    "another class": (
        "class Any:\n    __class__ = int\n    def __eq__(self, other): return True\n"
        "def f(n, g): return Any()"
    ),
    "a function that equals all": (
        "class Any:\n    def __eq__(self, other): return True\n    def __call__(self): return 1\n"
        "def f(n, g): return Any()"
    ),
    "an iterator that equals all": (
        "class Any:\n    def __eq__(self, other): return True\n"
        "    def __iter__(self): return self\n    def __next__(self): return 1001\n"
        "def f(n, g): return Any()"
    ),
    "a type that equals all": (
        "class Meta(type):\n    __hash__ = type.__hash__\n"
        "    def __eq__(self, other): return True\nclass int(metaclass=Meta): pass\n"
        "def f(n, g): return int"
    ),
    "an array of its own": (
        "class Any:\n    def __array__(self, *a, **k): return 1001\n    __module__ = 'numpy'\n"
        "    def tolist(self): return self\ndef f(n, g): return Any()"
    ),
    # What the process holds.
    "patching its own side": (
        "import sys, builtins, json\nfor name in ('wire', 'assemble', 'guard'):\n"
        "    module = sys.modules[name]\n    for key in list(vars(module)):\n"
        "        if callable(vars(module)[key]) and not key.startswith('_'):\n"
        "            setattr(module, key, lambda *a, **k: 1001)\n"
        "json.dumps = lambda message: '\"passed\"'\nbuiltins.isinstance = lambda *a: True\n"
        "def f(n, g): return 0"
    ),
    "patching through the callback": (
        "def f(n, g):\n    for name in ('__eq__', '__globals__', '__code__', '__closure__'):\n"
        "        try: setattr(type(g), name, lambda *a: True)\n        except Exception: pass\n"
        "    return g"
    ),
    "asking the callback for its insides": (
        "def f(n, g):\n    for name in ('__globals__', '__closure__', '__code__', '__self__'):\n"
        "        if hasattr(g, name): return 1000 + n\n    return g(g)"
    ),
    "searching all objects": (
        "import gc, sys\ndef f(n, g):\n    frame = sys._getframe()\n    seen = gc.get_objects()\n"
        "    while frame:\n        seen.append(frame.f_locals)\n        frame = frame.f_back\n"
        # "== 1000", of which this process must hold no copy.
        "    hit = any(bytes([61, 61, 32, 49, 48, 48, 48]).decode() in repr(it) for it in seen)\n"
        "    return 1000 + n if hit else 0"
    ),
    "reading ahead": (
        "import os\ndef f(n, g):\n    for end in (3, 4):\n"
        "        try: os.read(end, 1)\n        except OSError: pass\n    return 0"
    ),
    "leaving when all is over": (
        "import atexit, os\natexit.register(lambda: os.write(1, b'passed\\n'))\n"
        "def f(n, g): raise SystemExit"
    ),
    "raising what the tests raise": "def f(n, g): raise AssertionError",
    "the end of a loop": "def f(n, g): raise StopIteration",
    "recursion between both sides": "def f(n, g): return f(n, lambda x: f(x, g))",
}


@pytest.mark.parametrize("name", ATTACKS)
def test_attacks_fail(name: str) -> None:
    limits = ProgramLimits(deadline_s=2.0, memory_mb=256) if name == "reading ahead" else AMPLE
    assert run(ATTACKS[name], ProgramTests("f", TEST), limits) in ("failed", "quit", "timeout")


def test_the_tests_can_be_passed() -> None:
    assert run("def f(n, g): return 1000 + g(n)", ProgramTests("f", TEST), AMPLE) == "passed"


def test_tests_that_catch_everything_do_not_hide_an_end_in_an_iterator() -> None:
    swallows = "it = f()\ntry:\n    list(it)\nexcept BaseException:\n    pass\n"
    program = "import os\ndef f():\n    yield 1\n    os._exit(0)"
    assert run(program, ProgramTests("f", swallows), AMPLE) == "quit"


class Lines:
    """A link on which the other side has sent these messages."""

    def __init__(self, *messages: object) -> None:
        self.messages = list(messages)
        self.sent: list[object] = []
        self.received = 0

    def send(self, message: object) -> None:
        self.sent.append(message)

    def receive(self, longest: object = None) -> object:
        return self.messages.pop(0)


@pytest.mark.parametrize(
    "message",
    [
        *(None, 7, "value", [], {}, {"value": 1, "error": 2}, {"other": 1}, {"value": {}}),
        *({"value": ["odd", []]}, {"value": ["list"]}, {"value": ["list", "ab"]}, {"value": []}),
        *({"value": ["set", [["list", []]]]}, {"value": ["dict", [[["list", []], 1]]]}),
        *({"value": ["dict", "ab"]}, {"value": [["list"], []]}, {"value": ["yours", 0]}),
        *({"value": ["range", 0, 10**9, 1]}, {"value": ["range", 0, 1, 0]}),
        *({"value": ["range", True, 2, 1]}, {"value": ["Fraction", 1, 0]}),
        *({"value": ["Fraction", 0.5, 1]}, {"value": ["Decimal", [0, [1], 9]]}),
        *({"value": ["Decimal", "x"]}, {"value": ["int", 5]}, {"value": ["bytes", 10**9]}),
        *({"value": ["type", "SystemExit"]}, {"value": ["type", "eval"]}, {"value": ["date", 3]}),
        *({"value": ["deque", [], -1]}, {"value": ["complex", "1", 2]}, {"error": []}),
        *({"error": "ab"}, {"error": [3, []]}, {"error": [[], []]}, {"changed": [1, ["list", []]]}),
        *({"call": 3}, {"call": [0, ["tuple", []], ["dict", []]]}, {"call": [None, 0, 0]}),
    ],
)
def test_an_invalid_message_breaks_the_link(message: object) -> None:
    peer = Peer(Lines(message))  # type: ignore[arg-type]
    with pytest.raises(BrokenLinkError):
        peer.call(0, (), {})
    assert peer.broken


def test_only_what_was_given_can_be_called() -> None:
    link = Lines({"call": [0, ["tuple", [4]], ["dict", []]]}, {"value": ["yours", 0]})
    peer = Peer(link)  # type: ignore[arg-type]
    assert peer.call(0, (abs,), {}) is abs
    assert link.sent[1:] == [{"value": 4}]
