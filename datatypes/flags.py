"""Settings from flags, with help texts that read as paragraphs and state each default once."""

import inspect
import shutil
import textwrap
from collections.abc import Sequence
from dataclasses import is_dataclass, replace
from functools import partial
from typing import Annotated, Any

import tyro
from tyro.constructors import ConstructorRegistry, StructConstructorSpec, StructFieldSpec
from tyro.constructors import StructTypeInfo as Struct

from coterie.datatypes.arguments import check_once
from coterie.datatypes.refused_flags import read_or_refuse
from coterie.datatypes.userinput import fits


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
        UserError: a flag that does not exist or is given twice, or a value of the wrong type.
    """
    check_once(argv)
    given = {} if default is None else {"default": default}
    read = partial(
        tyro.cli,
        kind,
        args=list(argv),
        prog=prog,
        description=_wrapped(description or inspect.getdoc(kind) or ""),
        config=(tyro.conf.AvoidSubcommands,),
        registry=_registry(),
        **given,
    )
    return read_or_refuse(read, prog)


def _wrapped(text: str) -> str:
    """Paragraphs as wide as the terminal; tyro keeps the break before a line that is indented."""
    width = min(100, shutil.get_terminal_size().columns)
    return "\n\n".join(
        textwrap.fill(
            paragraph.replace("``", ""), width, subsequent_indent="  ", break_on_hyphens=False
        )
        for paragraph in text.split("\n\n")
    )


def _registry() -> ConstructorRegistry:
    """tyro's own rules for dataclasses, whose help texts keep the line breaks of the source."""
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
        return replace(spec, fields=tuple(_documented(field) for field in spec.fields))

    return registry


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
