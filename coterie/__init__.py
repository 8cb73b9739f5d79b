"""Multi-agent environments in which language models learn to reason together.

::

    import coterie

    env = coterie.make("core-teaching")
    coterie.check_env(env)

The packages lie at the top of the repository. Links in this folder give them their names,
``coterie.envs``, ``coterie.algorithms`` and so on. They are imported on first use.
"""

from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from pkgutil import iter_modules
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from coterie.envs import EnvSpec, check_env, make, register

__all__ = ["EnvSpec", "check_env", "make", "register"]

if not (Path(__file__).parent / "envs").is_dir():
    # A checkout without links, as on Windows.
    __path__.append(str(Path(__file__).resolve().parent.parent))


def __getattr__(name: str) -> Any:
    if name in __all__:
        return getattr(import_module("coterie.envs"), name)
    if not name.startswith("_") and find_spec(f"coterie.{name}"):
        return import_module(f"coterie.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    packages = {module.name for module in iter_modules(__path__) if module.ispkg}
    return sorted({*globals(), *__all__, *packages})
