"""The site's hooks as modules, without what builds the site."""

import importlib.util
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

HOOKS = Path(__file__).resolve().parents[2] / "docs" / "hooks"
# What a hook imports -> what of it the hook uses, as plain as can be.
STAND_INS: dict[str, dict[str, Any]] = {
    "mkdocs.structure.files": {
        "File": SimpleNamespace(
            generated=lambda config, uri, content: SimpleNamespace(
                src_uri=uri, content_string=content
            )
        )
    },
    "griffe": {"Extension": object, "Module": object},
    "latex2mathml.converter": {"convert": lambda source, display: f"<{display}>{source}"},
}


@pytest.fixture
def hook(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], ModuleType]:
    """One of ``docs/hooks`` by its name."""
    for name, contents in STAND_INS.items():
        parts = name.split(".")
        for length in range(1, len(parts) + 1):
            module = ModuleType(".".join(parts[:length]))
            monkeypatch.setitem(sys.modules, module.__name__, module)
        vars(sys.modules[name]).update(contents)

    def load(name: str) -> ModuleType:
        spec = importlib.util.spec_from_file_location(f"hook_{name}", HOOKS / f"{name}.py")
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return module

    return load
