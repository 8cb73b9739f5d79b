"""The process that runs the tests: it calls the program over a pipe; only it knows the verdict.

The tests come with a data set, so this process is guarded as well. Both processes are started as
files.
"""

import ast
import json
import os
import sys
from pathlib import Path
from typing import Any


def main(memory: int, cpu_s: int, reads: int, writes: int) -> None:
    """Run the tests of the job on standard input; write ``ready``, then one word as the verdict."""
    sys.path.insert(0, str(Path(__file__).parent))
    import modules
    from guard import guard
    from shapes import compare_shapes
    from wire import BrokenLinkError, Link, NoPlainValueError, Peer

    sys.path.pop(0)
    job = json.load(sys.stdin)
    entry, prompt = job["program"]["entry"], job["program"]["prompt"]
    # Guarded processes cannot import; the tests of EvalPlus compare with numpy.
    modules.load(f"{prompt}\n{job['test']}")
    if "unittest" in job["test"]:
        import unittest  # noqa: F401
    if "numpy" in job["test"]:
        compare_shapes()
    import collections
    import copy
    import itertools
    import math
    import random

    verdicts = os.dup(1)
    nowhere = os.open(os.devnull, os.O_RDWR)
    for descriptor in (0, 1, 2):
        os.dup2(nowhere, descriptor)
    guard(memory, cpu_s)
    peer = Peer(Link(reads, writes))
    # What a program does to its arguments cannot make a test right that is computed from them.
    peer.returns_arguments = looks_at_arguments(job["test"], entry)
    # Whoever expects NaN has to name it; elsewhere "not abs(result - 4) > 0.1" holds for it.
    peer.refuses_nan = "nan" not in f"{prompt}\n{job['test']}".lower()
    unfit = False

    def candidate(*arguments: Any, **named: Any) -> Any:
        nonlocal unfit
        try:
            return peer.call(0, arguments, named)
        except NoPlainValueError:
            unfit = True
            raise

    def verdict() -> str:
        peer.link.send({"program": job["program"], "returns_arguments": peer.returns_arguments})
        if peer.link.receive() != "loaded":
            return "failed"
        space: dict[str, Any] = {
            "__name__": "tests",
            "collections": collections,
            "copy": copy,
            "itertools": itertools,
            "math": math,
            "random": random,
        }
        try:
            # Tests may use what the prompt defines besides the function under test.
            exec(compile(prompt, "<prompt>", "exec"), space)
            tests = compile(job["test"], "<tests>", "exec")
        except Exception:
            return "error"
        space[entry] = candidate
        try:
            exec(tests, space)
            if callable(space.get("check")):
                space["check"](candidate)
        except Exception:
            return "failed"
        return "passed"

    try:
        if peer.link.receive() != "ready":
            raise BrokenLinkError
        os.write(verdicts, b"ready\n")
        outcome = verdict()
    except BrokenLinkError:
        outcome = "quit"
    # Tests that swallow every exception must not turn a program that quit into a right one.
    outcome = "quit" if peer.broken else "error" if unfit else outcome
    os.write(verdicts, outcome.encode() + b"\n")


def looks_at_arguments(test: str, entry: str) -> bool:
    """Whether tests compare an argument after the call with a value that does not depend on it.

    ``f(xs); assert xs == [1, 2]`` does. ``assert f(xs) == sorted(xs)`` does not: it would hold for
    a program that empties the list and returns it.
    """
    try:
        tree = ast.parse(test)
    except (SyntaxError, ValueError, RecursionError):
        return False
    functions = {entry, "candidate"}
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef) and node.name == "check" and node.args.args:
            functions.add(node.args.args[0].arg)
    calls = [
        (part.id, _place(node))
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and _names(node.func) & functions
        for part in [*node.args, *(keyword.value for keyword in node.keywords)]
        if isinstance(part, ast.Name)
    ]
    assigned = _assigned(tree)
    derived: set[str] = set()

    def changed(name: str, place: tuple[int, int]) -> bool:
        """Whether a call before ``place`` may have changed what ``name`` holds there."""
        given = [at for names, _, at in assigned if name in names and at < place]
        return any(called == name and max(given, default=at) <= at < place for called, at in calls)

    def depends(node: ast.expr) -> bool:
        names = _names(node)
        return bool(names & (functions | derived)) or any(
            changed(name, _place(node)) for name in names
        )

    while True:
        more = {name for names, value, _ in assigned if depends(value) for name in names} - derived
        if not more:
            break
        derived |= more
    return any(
        any(changed(name, _place(one)) for name in _names(one))
        and not _names(one) & functions
        and not depends(other)
        for pair in _compared(tree)
        for one, other in (pair, pair[::-1])
    )


def _place(node: ast.expr) -> tuple[int, int]:
    return node.lineno, node.col_offset


def _assigned(tree: ast.AST) -> list[tuple[set[str], ast.expr, tuple[int, int]]]:
    """(names, the value that they get, where) of all assignments and loops."""
    found: list[tuple[set[str], ast.expr, tuple[int, int]]] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign):
            names = set().union(*map(_names, node.targets))
            found.append((names, node.value, _place(node.targets[0])))
        elif isinstance(node, ast.AugAssign | ast.NamedExpr):
            found.append((_names(node.target), node.value, _place(node.target)))
        elif isinstance(node, ast.For | ast.comprehension):
            found.append((_names(node.target), node.iter, _place(node.target)))
    return found


def _compared(tree: ast.AST) -> list[tuple[ast.expr, ast.expr]]:
    pairs: list[tuple[ast.expr, ast.expr]] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Compare) and isinstance(node.ops[0], ast.Eq):
            pairs.append((node.left, node.comparators[0]))
        # assert_equal(xs, [1]), self.assertEqual(xs, [1])
        elif isinstance(node, ast.Call) and any("assert" in name for name in _names(node.func)):
            pairs += zip(node.args[:1], node.args[1:2], strict=False)
    return pairs


def _names(node: ast.AST) -> set[str]:
    names = {part.id for part in ast.walk(node) if isinstance(part, ast.Name)}
    return names | {part.attr for part in ast.walk(node) if isinstance(part, ast.Attribute)}


if __name__ == "__main__":
    main(*map(int, sys.argv[1:5]))
