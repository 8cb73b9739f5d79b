"""Settings from flags, with help texts that read as paragraphs and state each default once."""

import inspect
import io
import os
import re
import shutil
import sys
import textwrap
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, redirect_stderr, suppress
from dataclasses import is_dataclass, replace
from functools import partial
from typing import Annotated, Any

import tyro
from tyro.constructors import (
    ConstructorRegistry,
    PrimitiveConstructorSpec,
    PrimitiveTypeInfo,
    StructConstructorSpec,
    StructFieldSpec,
)
from tyro.constructors import StructTypeInfo as Struct

from coterie.cli.arguments import check_once, in_one_line
from coterie.datatypes.errors import UserError, join_or
from coterie.datatypes.validation import fits, unvalidated, validate

# In a terminal without UTF-8 dashes stand for lines, and there is no frame.
_RULE = re.compile(r"\s*[─-]{8,}\s*")
_VALUE = re.compile(r"Error parsing (\S+): (.+)")
_CHOICE = re.compile(r"invalid choice '(.*)' for argument '(\S+)'\. Expected one of \((.+)\)\.")
_MISSING = re.compile(r"Missing value for argument '(\S+)'\. Expected (\d+) values\.")
_WORDS = (
    (re.compile(r"invalid literal for int\(\) with base 10: (.+)"), "a whole number"),
    (re.compile(r"could not convert string to float: (.+)"), "a number"),
)
_DEFAULT = re.compile(r"\s*\((?:default: .*|required)\)$")


def parse_flags(
    kind: type[Any],
    argv: Sequence[str],
    *,
    prog: str,
    description: str | None = None,
    default: Any = None,
) -> Any:
    """An instance of the dataclass ``kind``: its defaults, overridden by flags.

    Prints help and exits with 0 on ``--help``.

    Args:
        kind: the dataclass; each field is a flag, and its docstring the help text.
        argv: the command line.
        prog: what messages call the program.
        description: stands above the options; None: the docstring of ``kind``.
        default: an instance whose values replace the defaults of the fields.

    Raises:
        UserError: a flag that does not exist or is given twice, or a value that does not fit.
    """
    check_once(argv)
    if "--" in argv:
        raise UserError("leave out the word --: all that follows is options and their values")
    given = {} if default is None else {"default": default}
    read = partial(
        tyro.cli,
        kind,
        args=list(argv),
        prog=prog,
        description=_wrapped(description or inspect.getdoc(kind) or ""),
        config=(tyro.conf.AvoidSubcommands,),
        registry=_registry(helps=bool({"-h", "--help"} & {*argv})),
        **given,
    )
    # A section is made before it knows its flags: --agents.alice.context is any role's context.
    with unvalidated():
        parsed = _read_or_refuse(read, prog)
    validate(parsed, "--")
    return parsed


def _wrapped(text: str) -> str:
    """Paragraphs as wide as the terminal; tyro keeps the break before a line that is indented."""
    width = min(100, shutil.get_terminal_size().columns)
    return "\n\n".join(
        textwrap.fill(
            paragraph.replace("``", ""), width, subsequent_indent="  ", break_on_hyphens=False
        )
        for paragraph in text.split("\n\n")
    )


def _registry(*, helps: bool) -> ConstructorRegistry:
    """tyro's own rules for dataclasses, whose help texts keep the line breaks of the source;
    ``helps``: the help page is asked for."""
    registry, known = ConstructorRegistry(), False

    @registry.struct_rule
    def _(info: Struct) -> StructConstructorSpec | None:
        nonlocal known
        if known:  # asks itself for tyro's own rule
            return None
        known = True
        try:
            spec = ConstructorRegistry.get_struct_spec(info)
        finally:
            known = False
        if not isinstance(spec, StructConstructorSpec):
            return None
        fields = list(map(_documented, spec.fields))
        if not helps:
            # tyro reads the sources of groups for their texts, which takes half of its time.
            fields = [replace(f, helptext="") if is_dataclass(f.type) else f for f in fields]
        return replace(spec, fields=tuple(fields))

    @registry.primitive_rule
    def _(info: PrimitiveTypeInfo) -> PrimitiveConstructorSpec[Any] | None:
        if info.type not in (int, float):
            return None
        return PrimitiveConstructorSpec(
            nargs=1,
            metavar=info.type.__name__.upper(),
            instance_from_str=partial(_number, info.type),
            is_instance=lambda value: fits(value, info.type),
            str_from_instance=lambda value: [str(value)],
        )

    return registry


def _number(kind: type, words: list[str]) -> Any:
    """A number as other programs write it: Python's own reads 1_0 and the digits of any script."""
    (word,) = words
    if "_" in word or not word.isascii():
        whole = "invalid literal for int() with base 10: "
        raise ValueError(
            f"{whole if kind is int else 'could not convert string to float: '}{word!r}"
        )
    return kind(word)


def _documented(field: StructFieldSpec) -> StructFieldSpec:
    """``field`` with its help text as one paragraph, and without the default where that is None or
    empty: the text itself says what an empty value means."""

    def text() -> str | None:
        written = field.helptext() if callable(field.helptext) else field.helptext
        return written and " ".join(written.replace("``", "").split())

    kind = field.type
    if is_dataclass(field.default) and not fits(field.default, kind):
        kind = type(field.default)  # an author's own, which need not derive from ours
    if field.default in (None, "", ()):
        kind = Annotated[kind, tyro.conf.arg(help_behavior_hint="")]
    return replace(field, type=kind, helptext=text)  # type: ignore[arg-type]


def _read_or_refuse(read: Callable[[], Any], prog: str) -> Any:
    """The settings that ``read``, a call of tyro's, reads from the arguments of ``prog``.

    Raises:
        UserError: tyro refuses the arguments.
    """
    said = io.StringIO()
    try:
        with redirect_stderr(said):
            return read()
    except SystemExit as left:
        if left.code != 2:
            raise
        said = io.StringIO()
        with _wide(), redirect_stderr(said), suppress(SystemExit):
            read()
        text, said = said.getvalue(), io.StringIO()
        raise UserError(in_one_line(_sentence(text), prog)) from None
    finally:
        sys.stderr.write(said.getvalue())


@contextmanager
def _wide() -> Iterator[None]:
    """No line is broken inside."""
    before = os.environ.get("COLUMNS")
    os.environ["COLUMNS"] = "100000"
    try:
        yield
    finally:
        os.environ.pop("COLUMNS")
        if before is not None:
            os.environ["COLUMNS"] = before


def _sentence(box: str) -> str:
    """The text of the box as one sentence, without its hint at the help text."""
    title, *lines = (line.strip("╭╮╰╯│").rstrip() for line in box.splitlines())
    title = title.strip("─ ")
    parts: list[list[str]] = [[]]
    for line in lines:
        if not _RULE.fullmatch(line):
            parts[-1].append(line)
        elif parts[0]:
            parts.append([])
    what = " ".join(line.strip() for line in parts[0])
    if title == "Unrecognized options":
        return _unknown(what.partition(":")[2], parts[1:])
    if title == "Required options":
        return f"missing: {'; '.join(_required(parts[0][1:]))}"
    if match := _VALUE.fullmatch(what):
        flag, why = match.groups()
        for pattern, kind in _WORDS:
            if value := pattern.fullmatch(why):
                return f"{flag} is {value[1]}; it must be {kind}"
        return f"{flag}: {why}"
    if match := _CHOICE.fullmatch(what):
        value, flag, known = match.groups()
        words = re.findall(r"'([^']*)'", known)
        return f"{flag} is {value!r}; it must be {join_or(words)}"
    if match := _MISSING.fullmatch(what):
        flag, count = match.groups()
        return f"{flag} needs {'a value' if count == '1' else f'{count} values'}"
    return what or title


def _unknown(words: str, parts: list[list[str]]) -> str:
    """``words``: with commas; ``parts``: those that may have been meant, with help texts."""
    named = [word.strip() for word in words.split(", ")]
    flag = next((word for word in named if word.startswith("--")), None)
    if flag is None:
        return f"{named[0]!r} belongs to no option"
    near = [line.split()[0].rstrip(",") for part in parts for line in part if _is_flag(line)]
    hint = f"; did you mean {join_or(near[:3])}?" if near else ""
    return f"unknown option {flag.partition('=')[0]}{hint}"


def _is_flag(line: str) -> bool:
    return line.strip().startswith("--")


def _required(lines: list[str]) -> Iterator[str]:
    """Each by its flag, if it has one, and what it is."""
    for head, text in zip(lines[::2], lines[1::2]):
        what = _DEFAULT.sub("", text.strip()).rstrip(".")
        yield f"{head.split()[0]} ({what})" if _is_flag(head) else what
