"""The result of one check."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from rich.table import Table
from rich.text import Text

Verdict = Literal["ok", "differs", "wrong", "not measured"]
_STYLES = {"ok": "green", "differs": "yellow", "wrong": "bold red", "not measured": "yellow"}


@dataclass(frozen=True)
class Finding:
    """A row of the doctor's table."""

    check: str
    role: str
    """A role, a device, or ``all``."""
    measured: str
    verdict: Verdict
    way_out: str = ""
    """What the user can do."""


def judge(check: str, role: str, measured: str, *, wrong: bool, way_out: str) -> Finding:
    """A finding with verdict ``wrong`` and its way out, or ``ok`` without."""
    if wrong:
        return Finding(check, role, measured, "wrong", way_out)
    return Finding(check, role, measured, "ok")


def table(findings: Sequence[Finding]) -> Table:
    """A table of all findings. Text from models and servers is never read as markup."""
    drawn = Table()
    names = ["check", "role", "measured", "verdict"]
    helped = any(finding.way_out for finding in findings)
    for name in [*names, "way out"] if helped else names:
        drawn.add_column(name, overflow="fold")
    for finding in findings:
        cells = [Text(finding.check), Text(finding.role), Text(finding.measured)]
        cells.append(Text(finding.verdict, style=_STYLES[finding.verdict]))
        drawn.add_row(*cells, *([Text(finding.way_out)] if helped else []))
    return drawn
