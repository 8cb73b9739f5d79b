"""Help texts: ``--help`` shows the settings of the run, its environment and its algorithm;
``--help-all`` shows all settings."""

import dataclasses
import inspect
import sys
from collections.abc import Sequence
from typing import Any, NoReturn

from coterie.cli.flags import parse_flags

ALL = "--help-all"
_FIRST = ("run", "env", "algo")
_ORDER = (*_FIRST, "agents", "problems", "rollout", "learner", "eval", "warmup", "scoring")
_OF_ONE_ROLE = (
    "--agents.ROLE.algo NAME, --agents.ROLE.algo.* and --agents.ROLE.learner.*\n"
    "override --algo, --algo.* and --learner.* for one role."
)

Section = tuple[str, Any, Any]
"""Name, type and default of a group of settings."""


def wants_help(args: Sequence[str]) -> bool:
    """Whether ``args`` ask for a help text."""
    return bool({"-h", "--help", ALL} & set(args))


def show_help(
    sections: Sequence[Section], args: Sequence[str], *, prog: str, description: str
) -> NoReturn:
    """Print the help text that ``args`` ask for and exit with 0.

    Args:
        sections: all groups of settings of the choice.
        args: the command line, with ``--help`` or ``--help-all``.
        prog: the command, with the choice.
        description: the first paragraph.
    """
    rank = {name: place for place, name in enumerate(_ORDER)}
    sections = sorted(sections, key=lambda section: rank.get(section[0], len(rank)))
    shown = sections if ALL in args else [section for section in sections if section[0] in _FIRST]
    try:
        kind = dataclasses.make_dataclass("Settings", shown, frozen=True)
        parse_flags(kind, ["--help"], prog=prog, description=description)
    except SystemExit:
        if shown != sections:
            print(_more_groups(sections))
        print(_OF_ONE_ROLE)
    sys.exit(0)


def _more_groups(sections: Sequence[Section]) -> str:
    """A line for each group of settings that ``--help-all`` adds."""
    lines = [f"More settings, with {ALL}:"]
    for name, kind, default in sections:
        if name == "agents":
            kind = type(next(iter(vars(default).values())))
            name = "agents.ROLE"
        if name not in _FIRST:
            first = (inspect.getdoc(kind) or "").replace("\n", " ").partition(". ")[0].rstrip(".")
            lines.append(f"  {f'--{name}.*':<16} {first}")
    return "\n".join(lines)
