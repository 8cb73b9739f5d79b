"""Every settings class refuses a value that its ``Literal`` does not have, wherever it is built."""

import dataclasses
import importlib
import pkgutil
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Literal, get_args, get_origin, get_type_hints

import pytest

import coterie
from coterie.agents.team.settings import AgentSettings
from coterie.cli.extras import ENVIRONMENT_KINDS
from coterie.datatypes import UserError

# What fields without a default are given.
NEEDED = {
    "base_url": "http://127.0.0.1:1/v1",
    "model": "tiny:alice",
    "out": Path("out"),
    "systems": ("a", "b"),
    "runs": (),
}
# Whose fields are filled by this program, never by a user.
OURS = {
    *("Ask", "Completion", "Finding", "Mark", "Move", "Problem", "ReturnEntry", "Variant"),
    *("Consultation", "EngineSpec", "Fading", "Message", "Phase", "Tag", "ThresholdChoice"),
    *("_Bench", "Boundary", "Columns", "Gold", "MemoryPart", "Program"),
}
SETTINGS_OF = {"cluster": "extras.cluster.settings"}


def not_here() -> set[str]:
    """Modules of environments whose package is not installed."""
    return {kind.module for kind in ENVIRONMENT_KINDS.values() if not find_spec(kind.package)}


def modules() -> Iterator[Any]:
    root = Path(coterie.__file__).parent
    rooms, names = (
        sorted(path.name for path in folder.iterdir() if path.is_dir() and path.name[0] != "_")
        for folder in (root, root / "extras")
    )
    rooms.remove("extras")
    # Of the cluster its settings alone: the rest is no user's.
    rooms += [SETTINGS_OF.get(name, f"extras.{name}") for name in names]
    for room in rooms:
        package = importlib.import_module(f"coterie.{room}")
        yield package
        for info in pkgutil.walk_packages(getattr(package, "__path__", ()), f"coterie.{room}."):
            if not info.name.endswith("__main__") and info.name not in not_here():
                yield importlib.import_module(info.name)


def has_literal(hint: Any) -> bool:
    return get_origin(hint) is Literal or any(map(has_literal, get_args(hint)))


def settings_classes() -> list[tuple[type, list[str]]]:
    fields_of: dict[type, list[str]] = {}
    for module in modules():
        for kind in vars(module).values():
            ours = isinstance(kind, type) and kind.__module__ == module.__name__
            if not ours or not dataclasses.is_dataclass(kind) or kind.__name__ in OURS:
                continue
            try:
                hints = get_type_hints(kind)
            except NameError:  # a type that is there for type checkers alone: no settings
                continue
            names = [f.name for f in dataclasses.fields(kind) if has_literal(hints[f.name])]
            if names:
                fields_of[kind] = names
    return list(fields_of.items())


def test_every_settings_class_checks_its_literals() -> None:
    classes = settings_classes()
    assert len(classes) > 20
    for kind, names in classes:
        missing = dataclasses.MISSING
        required = [
            f.name
            for f in dataclasses.fields(kind)
            if f.default is missing and f.default_factory is missing
        ]
        built = kind(**{name: NEEDED[name] for name in required})
        for name in names:
            wrong = "no_such_value"
            with pytest.raises(UserError, match=wrong):
                dataclasses.replace(built, **{name: wrong})


@pytest.mark.parametrize("wrong", ["lora ", "LoRA", None, 1, True])
def test_a_value_of_another_spelling_or_type(wrong: Any) -> None:
    sentence = "tuning is .*; it must be one of auto, full, lora"
    with pytest.raises(UserError, match=sentence):
        AgentSettings("tiny:alice", tuning=wrong)
