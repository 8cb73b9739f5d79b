"""The tables of settings in the pages, written from the code: ``python docs/hooks/tables.py``.

A page says where a table stands, and what it shows::

    <!-- table: env core-teaching -->
    (written by this script)
    <!-- end of table -->

``tests/docs/test_tables.py`` holds the pages to the code.
"""

import ast
import dataclasses
import inspect
import re
import textwrap
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import algorithms
import envs
from algorithms import Algorithm, LearnerSettings
from envs.leap import LeapSettings
from training.choice import DEFAULT_ENV, Choice
from training.train_settings import defaults, with_limit_as_length

PAGES = Path(__file__).parents[1]
TABLE = re.compile(r"(<!-- table: (.+?) -->\n).*?(<!-- end of table -->)", re.DOTALL)
# What makes an algorithm; its other settings are shown where they are not off.
_CORE = ("baseline", "scale", "ddof", "epsilon", "surrogate", "reduction")
_OF_SCALE = ("ddof", "epsilon")


def filled(page: str) -> str:
    """``page`` with every table as the code has it."""
    return TABLE.sub(lambda match: f"{match[1]}\n{table(*match[2].split())}\n\n{match[3]}", page)


def table(kind: str, *names: str) -> str:
    """The table of one kind, as Markdown."""
    match kind, names:
        case "algorithm", (name,):
            # As a run has it before any flag.
            run = defaults(Choice(DEFAULT_ENV, name, envs.spec(DEFAULT_ENV).roles))
            return _markdown(_HEAD, _flags("algo", _shown(with_limit_as_length(run).algo)))
        case "algorithms", ():
            return _comparison()
        case "algo-flags", ():
            return _markdown(_HEAD, _flags("algo", _fields(Algorithm(), _all(Algorithm))))
        case "learner", ():
            return _markdown(
                _HEAD, _flags("learner", _fields(LearnerSettings(), _all(LearnerSettings)))
            )
        case "env", (name,):
            settings = defaults(Choice(name, "grpo", envs.spec(name).roles)).env
            return _markdown(_HEAD, _flags("env", _fields(settings, _all(type(settings)))))
        case "leap", ():
            return _markdown(
                ("setting", "default", ""),
                [
                    (f"`{name}`", value, text)
                    for name, value, text in _fields(LeapSettings(), _all(LeapSettings))
                ],
            )
        case _:
            raise ValueError(f"no table is called {kind} {' '.join(names)}")


_HEAD = ("flag", "value", "")
_Row = tuple[str, str, str]


def _flags(part: str, rows: Iterable[_Row]) -> list[_Row]:
    return [(f"`--{part}.{name}`", value, text) for name, value, text in rows]


def _all(settings: type) -> list[str]:
    return [field.name for field in dataclasses.fields(settings)]


def _shown(algorithm: Algorithm) -> list[_Row]:
    default = Algorithm()
    core = [name for name in _CORE if algorithm.scale != "none" or name not in _OF_SCALE]
    further = [
        name
        for name in _all(Algorithm)
        if name not in _CORE and getattr(algorithm, name) != getattr(default, name)
    ]
    return _fields(algorithm, [*core, *further])


def _fields(settings: Any, names: Sequence[str]) -> list[_Row]:
    """(name on the command line, value, help text) of each field; nested ones with their path."""
    help_texts = field_docs(type(settings))
    rows = []
    for name in names:
        value, flag = getattr(settings, name), name.replace("_", "-")
        if dataclasses.is_dataclass(value):
            inner = _fields(value, _all(type(value)))
            rows += [(f"{flag}.{leaf}", shown, text) for leaf, shown, text in inner]
        else:
            rows.append((flag, _value(value), help_texts.get(name, "")))
    return rows


def field_docs(settings: type) -> dict[str, str]:
    """The string under each field of a dataclass, which ``--help`` shows, on one line."""
    body = ast.parse(textwrap.dedent(inspect.getsource(settings))).body[0]
    assert isinstance(body, ast.ClassDef)
    texts = {}
    for field, below in zip(body.body, body.body[1:]):
        match field, below:
            case (
                ast.AnnAssign(target=ast.Name(id=name)),
                ast.Expr(value=ast.Constant(value=str(text))),
            ):
                texts[name] = " ".join(text.split())
    return texts


def _value(value: Any) -> str:
    """As it is typed on the command line."""
    match value:
        case bool():
            return "on" if value else "off"
        case float():
            return f"{value:g}"
        case tuple():
            shown = [str(one) if isinstance(one, str) else f"{one:g}" for one in value]
            return " ".join(shown if len(shown) < 5 else [shown[0], "...", shown[-1]]) or "none"
        case None:
            return "none"
        case _:
            return str(value)


def _comparison() -> str:
    """One row an algorithm: what it is made of."""
    rows = []
    for name in algorithms.names():
        a = algorithms.get(name)
        inside = ", ".join(
            f"{key.replace('_', '-')} {_value(v)}"
            for key, v in dataclasses.asdict(a.surrogate).items()
            if v is not None
        )
        page = name.replace("+", "-plus")
        rows.append(
            (
                f"[{name}](algorithms/{page}.md)",
                f"{a.baseline}",
                a.scale,
                f"{type(a.surrogate).__name__}: {inside}",
                a.reduction,
            )
        )
    return _markdown(("", "baseline", "scale", "surrogate", "reduction"), rows)


def _markdown(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(
        "| " + " | ".join(cell.replace("|", r"\|") for cell in line) + " |" for line in lines
    )


def main() -> None:
    for path in sorted(PAGES.glob("**/*.md")):
        page = path.read_text(encoding="utf-8")
        if (new := filled(page)) != page:
            path.write_text(new, encoding="utf-8")
            print(path.relative_to(PAGES.parent))


if __name__ == "__main__":
    main()
