"""Writing what experts return into the policy's context."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from rewards.consultation import CALLS, RETURNS, THINK

Status = Literal["OK", "UNAVAILABLE", "ERROR", "BUDGET_EXHAUSTED"]


@dataclass(frozen=True)
class Entry:
    """One entry of the list that is returned."""

    status: Status
    result: str = ""
    expert_id: int | None = None
    """None where the entry answers the call as a whole."""

    def as_json(self) -> str:
        """``status`` is written only where it is not OK."""
        data: dict[str, object] = {}
        if self.expert_id is not None:
            data["expert_id"] = self.expert_id
        data["result"] = self.result
        if self.status != "OK":
            data["status"] = self.status
        return _defused(json.dumps(data, ensure_ascii=False))


def returned(entries: Sequence[Entry]) -> str:
    """The piece that continues the policy's turn."""
    listed = ", ".join(entry.as_json() for entry in entries)
    return f"\n{RETURNS[0]}[{listed}]{RETURNS[1]}\n"


def _defused(text: str) -> str:
    r"""Tags of the conversation inside a reply close nothing: ``</`` becomes ``<\/``."""
    for opening, closing in (CALLS, RETURNS, THINK):
        text = text.replace(closing, closing.replace("/", r"\/"))
        text = text.replace(opening, opening.replace("<", r"\u003c"))
    return text
