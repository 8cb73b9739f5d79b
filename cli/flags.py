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

# tyro's errors are boxes. A terminal without UTF-8 has dashes for lines and no frame.
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
    help_flag: str = "--help",
) -> Any:
    """An instance of the dataclass ``kind``: its defaults, overridden by flags.

    Prints help and exits with 0 on ``--help``.

    Args:
        kind: the dataclass; each field is a flag, and its docstring the help text.
        argv: the command line.
        prog: what messages call the program.
        description: the text above the options; None: the docstring of ``kind``.
        default: an instance whose values replace the defaults of the fields.
        help_flag: the flag that lists all options, for messages.

    Raises:
        UserError: an unknown flag, a flag that is given twice, or a value that does not fit.
    """
    check_once(argv)
    if "--" in argv:
        raise UserError("leave out the word --: all that follows is options and their values")
    defaults = {} if default is None else {"default": default}
    read = partial(
        tyro.cli,
        kind,
        args=list(argv),
        prog=prog,
        description=_wrapped(description or inspect.getdoc(kind) or ""),
        config=(tyro.conf.AvoidSubcommands, tyro.conf.SuppressFixed),
        registry=_registry(helps=bool({"-h", "--help"} & {*argv})),
        **defaults,
    )
    # A section does not know its prefix when it is made, so its errors could not name the flag.
    with unvalidated():
        parsed = _read_or_refuse(read, prog, help_flag)
    validate(parsed, "--")
    return parsed


def _wrapped(text: str) -> str:
    """``text`` with its paragraphs as wide as the terminal."""
    # tyro joins lines, except before one that is indented.
    width = min(100, shutil.get_terminal_size().columns)
    return "\n\n".join(
        textwrap.fill(
            paragraph.replace("``", ""), width, subsequent_indent="  ", break_on_hyphens=False
        )
        for paragraph in text.split("\n\n")
    )


def _registry(*, helps: bool) -> ConstructorRegistry:
    """tyro's rules with help texts as paragraphs, and numbers as other programs write them.

    ``helps``: the help page will be printed.
    """
    registry, in_own_rule = ConstructorRegistry(), False

    @registry.struct_rule
    def _(info: Struct) -> StructConstructorSpec | None:
        nonlocal in_own_rule
        if in_own_rule:  # called by the line below, which wants tyro's rule
            return None
        in_own_rule = True
        try:
            spec = ConstructorRegistry.get_struct_spec(info)
        finally:
            in_own_rule = False
        if not isinstance(spec, StructConstructorSpec):
            return None
        fields = list(map(_documented, spec.fields))
        if not helps:
            # For the help texts of groups tyro reads source files, which takes half of its time.
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
    """The number that the single word means."""
    (word,) = words
    # Python itself would also read 1_0, and the digits of any script.
    if "_" in word or not word.isascii():
        whole = "invalid literal for int() with base 10: "
        raise ValueError(
            f"{whole if kind is int else 'could not convert string to float: '}{word!r}"
        )
    return kind(word)


def _documented(field: StructFieldSpec) -> StructFieldSpec:
    """``field`` with its help text as one paragraph."""

    def text() -> str | None:
        written = field.helptext() if callable(field.helptext) else field.helptext
        return written and " ".join(written.replace("``", "").split())

    kind = field.type
    if is_dataclass(field.default) and not fits(field.default, kind):
        kind = type(field.default)  # a plug-in's class, which need not derive from the field's
    if field.default in (None, "", ()):
        # No "(default: )": the help text says what an empty value means.
        kind = Annotated[kind, tyro.conf.arg(help_behavior_hint="")]
    return replace(field, type=kind, helptext=text)  # type: ignore[arg-type]


def _read_or_refuse(read: Callable[[], Any], prog: str, help_flag: str) -> Any:
    """The result of ``read``, a call of tyro; its error box becomes one sentence.

    Raises:
        UserError: tyro refuses the arguments.
    """
    printed = io.StringIO()
    try:
        with redirect_stderr(printed):
            return read()
    except SystemExit as left:
        if left.code != 2:
            raise
        # Once more for a box without line breaks, which can be parsed.
        printed = io.StringIO()
        with _without_line_breaks(), redirect_stderr(printed), suppress(SystemExit):
            read()
        box, printed = printed.getvalue(), io.StringIO()
        raise UserError(in_one_line(_sentence(box), prog, help_flag)) from None
    finally:
        sys.stderr.write(printed.getvalue())


@contextmanager
def _without_line_breaks() -> Iterator[None]:
    """Inside, the terminal is so wide that no line is broken."""
    before = os.environ.get("COLUMNS")
    os.environ["COLUMNS"] = "100000"
    try:
        yield
    finally:
        os.environ.pop("COLUMNS")
        if before is not None:
            os.environ["COLUMNS"] = before


def _sentence(box: str) -> str:
    """The text of tyro's error box as one sentence, without its hint at the help text."""
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
    """The sentence on unknown ``words``, joined by commas; ``parts`` list similar options."""
    unknown = [word.strip() for word in words.split(", ")]
    flag = next((word for word in unknown if word.startswith("--")), None)
    if flag is None:
        return f"unexpected argument {unknown[0]!r}"
    similar = [line.split()[0].rstrip(",") for part in parts for line in part if _is_flag(line)]
    hint = f"; did you mean {join_or(similar[:3])}?" if similar else ""
    return f"unknown option {flag.partition('=')[0]}{hint}"


def _is_flag(line: str) -> bool:
    return line.strip().startswith("--")


def _required(lines: list[str]) -> Iterator[str]:
    """Each missing option as its flag and its help text."""
    for head, text in zip(lines[::2], lines[1::2]):
        what = _DEFAULT.sub("", text.strip()).rstrip(".")
        yield f"{head.split()[0]} ({what})" if _is_flag(head) else what
