"""Which modules see all settings of a run: ``python tools/settings_route.py``.

A small run of the tiny team is traced, once while it is checked (``preflight``) and once while it
is built and trains (``run``). A call sees all settings where an argument is a ``TrainSettings``, or
an object that holds one in an attribute, as ``self`` does in its methods. Calls in a row in the
same module are a stay. A module in which there was a stay before is returned to, so that the
returns are the stays less the modules.

    python tools/settings_route.py --list     # every module, with its stays
"""

import argparse
import contextlib
import io
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import Any

SMALL = ("--steps", "2", "--rollout.problems-per-step", "2", "--problems.held-out", "2")


@dataclass
class Route:
    """The modules that saw all settings, in the order of the calls."""

    stays: list[str] = field(default_factory=list)
    """Names of modules; never the same one twice in a row."""

    @property
    def rooms(self) -> int:
        """Return the number of modules that saw the settings."""
        return len(set(self.stays))

    @property
    def returns(self) -> int:
        """Return the number of stays in a module that had seen them before."""
        return len(self.stays) - self.rooms

    def add(self, module: str) -> None:
        """Note a call in ``module``."""
        if self.stays[-1:] != [module]:
            self.stays.append(module)


@contextmanager
def traced(kind: type, package: str = "coterie") -> Iterator[Route]:
    """Record the route of every object of ``kind`` through the modules of ``package``."""
    route = Route()

    def note(frame: FrameType, event: str, _: Any) -> None:
        module = frame.f_globals.get("__name__", "")
        if event == "call" and module.partition(".")[0] == package and _sees(frame, kind):
            route.add(module)

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        yield route
    finally:
        sys.setprofile(before)


def _sees(frame: FrameType, kind: type) -> bool:
    code = frame.f_code
    count = code.co_argcount + code.co_kwonlyargcount
    given = [frame.f_locals.get(name) for name in code.co_varnames[:count]]
    return any(
        isinstance(value, kind)
        or any(isinstance(part, kind) for part in getattr(value, "__dict__", {}).values())
        for value in given
        if not isinstance(value, type)
    )


def measure(folder: Path) -> dict[str, Route]:
    """Trace a small run in ``folder``: the routes while it is checked, and while it runs."""
    from coterie.cli.command_line import parse
    from coterie.training.config.preflight import preflight
    from coterie.training.config.train_settings import TrainSettings
    from coterie.training.session import open_session

    settings = parse([*SMALL, "--run-dir", str(folder)])
    with traced(TrainSettings) as checked:
        problems = preflight(settings)
    with traced(TrainSettings) as run, open_session(settings, problems) as session:
        before = session.evaluate("before")
        with session.open_logbook() as logbook:
            for step in session.steps_left():
                batch = session.sample(step)
                credit = session.credit(batch)
                session.record(step, batch, credit, session.update(batch, credit), logbook)
                session.evaluate_between(step, logbook)
                session.checkpoint(step)
        session.conclude(before, session.evaluate("after"))
    return {"preflight": checked, "run": run}


def main(argv: Sequence[str] | None = None) -> int:
    """Print a line for each part; returns the exit code."""
    parser = argparse.ArgumentParser(description="Which modules see all settings of a run.")
    parser.add_argument("--list", action="store_true", help="every module, with its stays")
    own = parser.parse_args(argv)
    with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(io.StringIO()):
        routes = measure(Path(folder) / "run")
    for name, route in routes.items():
        print(f"{name}: {route.rooms} rooms, {len(route.stays)} stays, {route.returns} returns")
        if own.list:
            for module, stays in Counter(route.stays).most_common():
                print(f"  {stays:4} {module}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
