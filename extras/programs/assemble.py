"""Makes one program of the blocks of a response: the solution with its helpers, without examples.

It parses text that a model wrote, so it runs in the guarded process only. The module imports
nothing from this project: child processes run it as a plain file.
"""

import ast
import builtins
import codeop
import dis
import importlib
import re
import textwrap
import typing
from collections.abc import Sequence
from types import CodeType
from typing import Any

_LEETCODE = (
    *("collections", "heapq", "bisect", "itertools", "functools", "math", "operator", "string"),
    *("random", "re", "datetime", "copy", "statistics", "fractions"),
)
_MOST_PARSED = 1 << 21
"""Maximum number of characters to parse in search of the ends of incomplete statements."""
_CONTINUES = re.compile(r"(?:else|elif|except|finally)\b|[)\]}]|[ \t]|$")
_HEADER = re.compile(r"(?:async|def|class)\b|@")
_INDENTED = re.compile(r"[ \t]|\s*$")
_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


class Statement:
    """One statement at the top level of a module."""

    def __init__(self, node: ast.stmt, futures: Sequence[ast.stmt]) -> None:
        self.node = node
        self.code = compile(
            ast.Module([*futures, node], []), "<program>", "exec", dont_inherit=True
        )
        self.binds: set[str] = set()
        """Global names that it assigns."""
        self.loads: set[str] = set()
        """Global names that it reads, at once or when its functions are called."""
        self.reads: set[str] = set()
        """Global names that it reads at once."""
        self._read(self.code, top=True)

    def _read(self, code: CodeType, *, top: bool) -> None:
        for instruction in dis.get_instructions(code):
            operation, name = instruction.opname, instruction.argval
            if operation == "STORE_GLOBAL" or (top and operation == "STORE_NAME"):
                self.binds.add(name)
            elif operation in ("LOAD_NAME", "LOAD_GLOBAL", "LOAD_FROM_DICT_OR_GLOBALS"):
                self.loads.add(name)
                if top:
                    self.reads.add(name)
        for constant in code.co_consts:
            if isinstance(constant, CodeType):
                self._read(constant, top=False)

    def extends(self, names: set[str]) -> bool:
        """Whether it changes a part of a name's value: ``f.calls = 0``, ``table[0] = 1``."""
        if not isinstance(self.node, ast.Assign | ast.AugAssign | ast.AnnAssign):
            return False
        targets = self.node.targets if isinstance(self.node, ast.Assign) else [self.node.target]
        for target in targets:
            whole: Any = target
            while isinstance(whole, ast.Attribute | ast.Subscript):
                whole = whole.value
            if whole is not target and isinstance(whole, ast.Name) and whole.id in names:
                return True
        return False

    @property
    def imports_all(self) -> bool:
        """Whether it is ``from somewhere import *``."""
        return isinstance(self.node, ast.ImportFrom) and self.node.names[0].name == "*"

    def has_method(self, name: str) -> bool:
        """Whether it is a class with a method of that name."""
        return isinstance(self.node, ast.ClassDef) and any(
            isinstance(part, _DEFINITIONS) and part.name == name for part in self.node.body
        )


def assemble(blocks: list[str], home: int, entry: str, prompt: str, kind: str) -> list[Statement]:
    """Return the statements of a program in the order in which they are run.

    Args:
        blocks: the parts of a response, code and prose.
        home: index of the block that holds the solution.
        entry: name of the function under test.
        prompt: source that comes before the program: imports and helpers.
        kind: ``whole`` for a block that was closed; ``cut`` for one that may break off;
            ``continuation`` for one that goes on after the prompt.

    Raises:
        SyntaxError: the last version of the function cannot be parsed.
    """
    continues = kind == "continuation"
    text = _continued(prompt, blocks[home]) if continues else blocks[home]
    statements = _read(text, entry, cut=kind != "whole")
    before = [] if continues else [part for part in _read(prompt) if entry not in part.binds]
    solution = _solution(statements, entry, first=continues)
    if solution is None:
        return [*before, *statements]
    needed = _closure(solution.binds | solution.loads, statements)
    known = set(dir(builtins)).union(*(part.binds for part in [*statements, *before]))
    if all(entry in part.reads for part in statements if entry in part.binds):
        known -= {entry}  # f = cache(f) needs a definition from elsewhere
    # The nearest block first, those after the solution last.
    others = [*reversed(blocks[:home]), *blocks[home + 1 :]] if needed - known else []
    helpers = _helpers(needed - known, [_read(block) for block in others], known, entry)
    needed |= set().union(*(part.loads for part in helpers))
    kept = _without_examples(statements, solution, needed, entry, continues)
    return [*before, *helpers, *kept]


def defines(text: str, name: str) -> bool:
    """Whether a line of ``text`` looks like a definition of ``name``."""
    word = re.escape(name)
    # A constant is none: "triple = 12" is the output of a program.
    value = r"(?!=)[ \t]*+(?!True\b|False\b|None\b)(?=[A-Za-z_(])"
    function = rf"(?:async[ \t]+)?(?:def|class)[ \t]+{word}\b"
    line = rf"^[ \t]*(?:{function}|{word}[ \t]*(?::[^=\n]+)?={value})"
    return re.search(line, text, re.MULTILINE) is not None


def _read(text: str, entry: str = "", *, cut: bool = True) -> list[Statement]:
    nodes = _nodes(text, entry, cut)
    futures = [
        node for node in nodes if isinstance(node, ast.ImportFrom) and node.module == "__future__"
    ]
    statements: list[Statement] = []
    for node in nodes:
        if node not in futures:
            try:
                statements.append(Statement(node, futures))
            except (SyntaxError, ValueError, RecursionError):
                if entry and entry in {getattr(part, "name", "") for part in ast.walk(node)}:
                    raise
    return statements


def _nodes(text: str, entry: str, cut: bool) -> list[ast.stmt]:
    """Parse a text; skip what cannot be parsed."""
    for attempt in (text, textwrap.dedent(text)):
        nodes = _parsed(attempt)
        if nodes is not None:
            return nodes
    chunks = _chunks(textwrap.dedent(text))
    versions = [i for i, (chunk, _) in enumerate(chunks) if entry and defines(chunk, entry)]
    if versions and chunks[versions[-1]][1] is None:
        # Use an earlier version if the last one breaks off with the text, not if it is just wrong.
        breaks_off = cut and versions[-1] == len(chunks) - 1 and len(versions) > 1
        if not breaks_off:
            raise SyntaxError("the last version cannot be parsed")
    return [node for _, nodes in chunks for node in nodes or ()]


def _parsed(text: str) -> list[ast.stmt] | None:
    try:
        return ast.parse(text).body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def _chunks(text: str) -> list[tuple[str, list[ast.stmt] | None]]:
    """Cut a text into statements and other lines, each with the indented lines after it."""
    lines = text.split("\n")
    starts = [index for index, line in enumerate(lines) if not _CONTINUES.match(line)]
    ends = [*starts[1:], len(lines)]
    chunks: list[tuple[str, list[ast.stmt] | None]] = []
    at, budget = 0, _MOST_PARSED
    while at < len(starts):
        last = at
        source = "\n".join(lines[starts[at] : ends[last]])
        nodes = _parsed(source)
        # A decorator, an open bracket or a text in triple quotes goes on after its line.
        while nodes is None and last + 1 < len(starts) and budget > 0 and _incomplete(source):
            last += 1
            source = "\n".join(lines[starts[at] : ends[last]])
            budget -= len(source)
            nodes = _parsed(source)
        if nodes is None:
            last = at
            source = "\n".join(lines[starts[at] : ends[last]])
        chunks.append((source, nodes))
        if nodes is None and not _HEADER.match(source):
            # A line of prose may be followed by indented code.
            chunks += _chunks(textwrap.dedent(source.partition("\n")[2]))
        at = last + 1
    return chunks


def _incomplete(source: str) -> bool:
    try:
        return codeop.compile_command(source, symbol="exec") is None
    except (SyntaxError, ValueError, OverflowError, RecursionError, MemoryError):
        return False


def _continued(prompt: str, body: str) -> str:
    """Append the body of its function to the prompt, and repair the body's indentation."""
    head, lines = prompt.rstrip(), body.strip("\n").split("\n")
    # The function ends before the next line that begins at the margin.
    margins = (index for index, line in enumerate(lines) if index and not _INDENTED.match(line))
    end = next(margins, len(lines))
    inside, rest = "\n".join(lines[:end]), lines[end:]
    first, _, others = inside.partition("\n")
    attempts = [_indented(inside), f"{_indented(first.strip())}\n{others}"]
    if _INDENTED.match(first):
        attempts.insert(0, inside)
    elif any(line.startswith("return") for line in rest):
        attempts, rest = [_indented(body)], []
    for function in attempts:
        if _parsed(f"{head}\n{function}\n") is not None:
            return "\n".join([head, function, *rest])
    return f"{head}\n{body}"


def _indented(text: str) -> str:
    return textwrap.indent(textwrap.dedent(text), "    ")


def _solution(statements: list[Statement], entry: str, *, first: bool) -> Statement | None:
    versions = [part for part in statements if entry in part.binds] or [
        part for part in statements if part.has_method(entry)
    ]
    if not versions:
        return None
    return versions[0] if first else versions[-1]


def _closure(names: set[str], parts: list[Statement]) -> set[str]:
    """``names``, and all names that their definitions need."""
    names = set(names)
    while True:
        more = {name for part in parts if part.binds & names for name in part.loads} - names
        if not more:
            return names
        names |= more


def _helpers(
    missing: set[str], others: list[list[Statement]], known: set[str], entry: str
) -> list[Statement]:
    """Statements of other blocks that define what is missing; nearer blocks have precedence."""
    taken: list[list[Statement]] = [[] for _ in others]
    missing = set(missing)
    while missing:
        name = missing.pop()
        known = known | {name}
        for block, chosen in zip(others, taken, strict=True):
            makers = [part for part in block if name in part.binds]
            if not makers:
                continue
            if not any(isinstance(part.node, _DEFINITIONS) for part in makers):
                # A table may be filled by later statements: primes.append(2), or a loop.
                makers += [part for part in block if name in part.reads and entry not in part.loads]
            chosen += makers
            missing |= {load for part in makers for load in part.loads} - known
            break
        else:
            # Nothing defines the name: take it from "from math import *", which names nothing.
            for block, chosen in zip(others, taken, strict=True):
                chosen += [part for part in block if part.imports_all]
    in_order = [
        [part for part in block if part in chosen]
        for block, chosen in zip(others, taken, strict=True)
    ]
    return [part for block in reversed(in_order) for part in block]


def _without_examples(
    statements: list[Statement], solution: Statement, needed: set[str], entry: str, continues: bool
) -> list[Statement]:
    """Drop statements that only call the solution."""
    users = {entry, *(solution.binds if solution.has_method(entry) else ())}
    while True:
        more = {name for part in statements if part.loads & users for name in part.binds}
        more -= users | needed
        if not more:
            break
        users |= more
    end = statements.index(solution)
    kept: list[Statement] = []
    for index, part in enumerate(statements):
        if part.binds & needed:
            # A base model may go on to invent the next problem, and define the function again.
            keep = not continues or index <= end or entry not in part.binds
        elif isinstance(part.node, _DEFINITIONS) or part.extends(needed):
            keep = True
        else:
            keep = not part.loads & users and not (continues and index > end)
        if keep:
            kept.append(part)
    return kept


def _leetcode_names(names: set[str]) -> dict[str, Any]:
    """Those of ``names`` that LeetCode imports for a solution class: modules and their members."""
    modules = {name: importlib.import_module(name) for name in _LEETCODE}
    found = {name: modules[name] for name in names & modules.keys()}
    for name in names - modules.keys():
        for module in modules.values():
            if name in getattr(module, "__all__", dir(module)):
                found[name] = getattr(module, name)
                break
    return found


def load(statements: list[Statement], entry: str, space: dict[str, Any]) -> Any:
    """Run the statements in ``space`` and return the function.

    A statement that raises an exception is skipped, unless it defines the function.

    Raises:
        KeyError: no function has that name.
    """
    loads: set[str] = set().union(*(part.loads for part in statements))
    space.update({name: getattr(typing, name) for name in loads.intersection(typing.__all__)})
    if any(part.has_method(entry) for part in statements):
        space.update(_leetcode_names(loads - set(dir(builtins)) - space.keys()))
    for part in statements:
        try:
            exec(part.code, space)
        except Exception:
            if entry in part.binds:
                raise
    if entry in space:
        return space[entry]
    owners = [part.node.name for part in statements if part.has_method(entry)]  # type: ignore[attr-defined]
    if not owners:
        raise KeyError(entry)
    owner = space[owners[-1]]
    return lambda *arguments, **named: getattr(owner(), entry)(*arguments, **named)
