"""What can be chosen about a report, and its command line."""

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

from coterie.datatypes import UserError
from coterie.evaluation.report.choose import WHICH, Which
from coterie.evaluation.report.tags import TAG_NAMES


@dataclass(frozen=True)
class ReportSettings:
    """One report."""

    run: Path
    """The run's directory."""
    out: Path
    """The file to write."""
    episodes: int = 60
    """How many episodes the page holds at most."""
    which: Which = "spaced"
    """Which of them: evenly spaced over the run, the first, or the last."""
    only: str | None = None
    """A tag that they must have."""
    megabytes: float = 16.0
    """How much of the page they may take; fewer are kept where they are longer."""


def parse(argv: Sequence[str]) -> ReportSettings:
    """Read the command line.

    Raises:
        UserError: a flag that does not exist, or a value that makes no sense.
    """
    parser = _Parser(
        prog="coterie report",
        description="Write a run as one self-contained HTML file.",
        formatter_class=argparse.ArgumentDefaultsHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("run", type=Path, help="the run's directory, such as runs/x")
    parser.add_argument(
        "--out", type=Path, default=None, help="the file to write; without, report.html in the run"
    )
    parser.add_argument(
        "--episodes", type=int, default=60, help="how many episodes the page holds at most"
    )
    parser.add_argument(
        "--which", choices=WHICH, default="spaced", help="evenly spaced over the run, first or last"
    )
    parser.add_argument("--only", choices=TAG_NAMES, help="only episodes of this kind")
    parser.add_argument(
        "--megabytes",
        type=float,
        default=16.0,
        help="room for episodes; fewer are kept where they are long",
    )
    chosen: dict[str, Any] = vars(parser.parse_args(argv))
    if chosen["episodes"] < 0:
        raise UserError(f"--episodes is {chosen['episodes']}; say how many, 0 or more")
    if not chosen["megabytes"] > 0:
        raise UserError(f"--megabytes is {chosen['megabytes']}; say more than 0")
    chosen["out"] = chosen["out"] or chosen["run"] / "report.html"
    return ReportSettings(**chosen)


class _Parser(argparse.ArgumentParser):
    """Says what is wrong in one sentence."""

    def error(self, message: str) -> NoReturn:
        raise UserError(f"{message} (see --help)")
