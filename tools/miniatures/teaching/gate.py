"""What a warm start must have reached before it may be shipped."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass

_FORMAT = re.compile(
    r' <strategy id="1"> [^<>]+ <result> (\d) </result> </strategy>'
    r" <final_answer> (\d) </final_answer>"
)


@dataclass(frozen=True)
class Gate:
    """Bounds on what was measured: room to learn, something to teach, and hints that are read."""

    cold_min: float = 0.35
    cold_max: float = 0.5
    strong_min: float = 0.9
    """Cold accuracy on chains of the role's strong operations."""
    lift_min: float = 0.15
    """Hinted accuracy on problems failed cold, less the accuracy of a second cold attempt."""
    format_min: float = 0.99


GATES = {"dora": Gate(cold_min=0.5, cold_max=0.7)}
"""Bounds of a role that has its own."""


@dataclass(frozen=True)
class Measured:
    """Shares, sampled at temperature 1 with no filter."""

    cold: float
    """Pass@1 on the mix."""
    by_family: Mapping[str, float]
    strong: float
    retry: float
    """Second cold attempt on problems that the first one failed."""
    hinted: float
    """With a right peer's hint, on the same problems."""
    format: float
    """Well-formed answers among all samples."""

    def as_json(self) -> dict[str, object]:
        """Plain data, rounded to what the sample size can tell."""
        return {
            key: round(value, 4)
            if isinstance(value, float)
            else {family: round(share, 4) for family, share in value.items()}
            for key, value in asdict(self).items()
        }


def complaints(measured: Measured, gate: Gate) -> list[str]:
    """One sentence for each bound that is missed; an empty list opens the gate."""
    lift = measured.hinted - measured.retry
    checks = (
        (measured.cold >= gate.cold_min, f"cold {measured.cold:.3f} < {gate.cold_min}"),
        (measured.cold <= gate.cold_max, f"cold {measured.cold:.3f} > {gate.cold_max}"),
        (measured.strong >= gate.strong_min, f"strong {measured.strong:.3f} < {gate.strong_min}"),
        (lift >= gate.lift_min, f"hints lift by {lift:.3f} < {gate.lift_min}"),
        (measured.format >= gate.format_min, f"format {measured.format:.3f} < {gate.format_min}"),
    )
    return [complaint for passed, complaint in checks if not passed]


def read_answer(text: str) -> str | None:
    """The digit of a well-formed answer, or None."""
    match = _FORMAT.fullmatch(text)
    return match[2] if match and match[1] == match[2] else None


def share(outcomes: Sequence[bool]) -> float:
    """Fraction of true outcomes; 0 of none."""
    return sum(outcomes) / len(outcomes) if outcomes else 0.0
