"""The process that runs the tests. It calls the program over a pipe, and alone knows the verdict.

The tests come with a data set, so this process is guarded as well. Like the player it runs as a
file.
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
    from guard import guard, load_modules
    from strict_numpy import compare_shapes
    from wire import BrokenLinkError, Link, NoPlainValueError, Peer

    sys.path.pop(0)
    job = json.load(sys.stdin)
    entry, prompt = job["program"]["entry"], job["program"]["prompt"]
    # Guarded processes cannot import; the tests of EvalPlus compare with numpy.
    load_modules(f"{prompt}\n{job['test']}")
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
    # Otherwise a program could change its arguments so that a value computed from them fits.
    peer.returns_arguments = looks_at_arguments(job["test"], entry)
    # NaN passes tests like "not abs(result - 4) > 0.1": accept it only if the tests name it.
    peer.refuses_nan = "nan" not in f"{prompt}\n{job['test']}".lower()
    bad_argument = False

    def candidate(*arguments: Any, **named: Any) -> Any:
        nonlocal bad_argument
        try:
            return peer.call(0, arguments, named)
        except NoPlainValueError:
            bad_argument = True
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
            check = space.get("check")
            # The function under test may itself be called so (Mbpp/56).
            if callable(check) and check is not candidate:
                check(candidate)
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
    # Tests that swallow all exceptions would otherwise pass a program that quit.
    outcome = "quit" if peer.broken else "error" if bad_argument else outcome
    os.write(verdicts, outcome.encode() + b"\n")


def looks_at_arguments(test: str, entry: str) -> bool:
    """Whether tests compare a changed argument with a value that does not depend on it.

    ``f(xs); assert xs == [1, 2]`` does. ``assert f(xs) == sorted(xs)`` does not: if the change were
    visible here, a program that empties the list and returns it would pass.
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
        (part.id, _position(node))
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and _names(node.func) & functions
        for part in [*node.args, *(keyword.value for keyword in node.keywords)]
        if isinstance(part, ast.Name)
    ]
    assigned = _assigned(tree)
    derived: set[str] = set()

    def changed(name: str, position: tuple[int, int]) -> bool:
        """Whether a call between the last assignment to ``name`` and ``position`` may change it."""
        values = [at for names, _, at in assigned if name in names and at < position]
        return any(
            argument == name and max(values, default=at) <= at < position for argument, at in calls
        )

    def depends(node: ast.expr) -> bool:
        names = _names(node)
        return bool(names & (functions | derived)) or any(
            changed(name, _position(node)) for name in names
        )

    while True:
        more = {name for names, value, _ in assigned if depends(value) for name in names} - derived
        if not more:
            break
        derived |= more
    return any(
        any(changed(name, _position(one)) for name in _names(one))
        and not _names(one) & functions
        and not depends(other)
        for pair in _compared(tree)
        for one, other in (pair, pair[::-1])
    )


def _position(node: ast.expr) -> tuple[int, int]:
    return node.lineno, node.col_offset


def _assigned(tree: ast.AST) -> list[tuple[set[str], ast.expr, tuple[int, int]]]:
    """(names, value, position) of all assignments and loops."""
    found: list[tuple[set[str], ast.expr, tuple[int, int]]] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign):
            names = set().union(*map(_names, node.targets))
            found.append((names, node.value, _position(node.targets[0])))
        elif isinstance(node, ast.AugAssign | ast.NamedExpr):
            found.append((_names(node.target), node.value, _position(node.target)))
        elif isinstance(node, ast.For | ast.comprehension):
            found.append((_names(node.target), node.iter, _position(node.target)))
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
