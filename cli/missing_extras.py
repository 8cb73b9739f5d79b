"""What is said where an extra of this repository is needed that is not here."""

import dataclasses
from collections.abc import Mapping
from importlib import import_module
from typing import Any, TypeVar

from coterie.cli.extras import has
from coterie.datatypes.errors import UserError

T = TypeVar("T")

ADDED: Mapping[str, tuple[str, ...]] = {
    "cluster": ("cluster",),
    "games": ("pettingzoo", "gymnasium", "discrete", "textarena", "verifiers"),
    "gateway": ("harness", "command"),
    "ops": ("doctor", "push", "serve"),
    "papers": ("corea", "eapo", "distill", "sweep"),
    "programs": (),
}
"""Extra of this repository -> the programs, comparisons, kinds of environments and sections that it
adds, so that a message can name an extra that is not here."""


class MissingExtra(UserError):
    """Raised where an extra is needed that is not here."""

    def __init__(self, what: str, extra: str) -> None:
        super().__init__(
            f"{what} needs the extra {extra!r}, which is not here: leave it out, or get the folder "
            f"extras/{extra} of the repository back"
        )


def missing_extra(name: str) -> str | None:
    """The extra of this repository that would add ``name`` (see :data:`ADDED`), where it is not
    here."""
    extra = next((extra for extra, names in ADDED.items() if name in names), None)
    return None if extra is None or has(extra) else extra


def check_added(name: str, what: str) -> None:
    """Refuse what an extra would add that is not here.

    Args:
        name: see :data:`ADDED`.
        what: what the message calls it.

    Raises:
        MissingExtra: its extra is not here.
    """
    if extra := missing_extra(name):
        raise MissingExtra(what, extra)


def module_of(extra: str, module: str, what: str) -> Any:
    """A module of an extra of this repository, for those who can do without.

    Raises:
        MissingExtra: it is not here; ``what`` needs it.
    """
    if not has(extra):
        raise MissingExtra(what, extra)
    return import_module(f"coterie.extras.{extra}.{module}")


def of_extra(extra: str, default: T) -> T:
    """A field, in a settings class of the core, that does something only where an extra is.

    Help texts leave it out elsewhere, and :func:`check_fields_of_extras` refuses it.

    Args:
        extra: of this repository.
        default: the field's.
    """
    return dataclasses.field(default=default, metadata={"extra": extra})


def fields_of_missing(kind: type) -> dict[str, str]:
    """Name -> extra of the fields of a dataclass that need an extra which is not here."""
    named = {field.name: field.metadata.get("extra") for field in dataclasses.fields(kind)}
    return {name: extra for name, extra in named.items() if extra and not has(extra)}


def check_fields_of_extras(settings: Any, at: str) -> None:
    """Refuse a field that does nothing here as its extra is missing.

    Args:
        settings: a dataclass.
        at: what its flags begin with.

    Raises:
        MissingExtra: one has another value than its default.
    """
    for setting in dataclasses.fields(settings):
        extra = setting.metadata.get("extra")
        if extra and getattr(settings, setting.name) != setting.default and not has(extra):
            raise MissingExtra(f"{at}{setting.name.replace('_', '-')}", extra)
