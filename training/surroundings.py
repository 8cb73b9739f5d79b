"""What a run ran on: written beside its settings, so that it can be run again."""

import platform
from importlib.metadata import PackageNotFoundError, version
from typing import Any

_PACKAGES = (
    "coterie", "torch", "transformers", "peft", "tokenizers", "numpy", "pettingzoo", "gymnasium",
    "mpmath", "sentence-transformers", "reasoning-gym", "datasets",
)  # fmt: skip


def surroundings() -> dict[str, Any]:
    """Package versions, Python and the kind of machine; nothing that names the user."""
    return {
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.machine()}",
        "packages": {name: found for name in _PACKAGES if (found := _version(name))},
    }


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None
