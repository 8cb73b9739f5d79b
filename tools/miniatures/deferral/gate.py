"""What a warm start must have reached before it may be shipped."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass


@dataclass(frozen=True)
class Gate:
    """Bounds on what was measured."""

    accuracy: tuple[float, float]
    """On problems that can be known."""
    auroc: tuple[float, float] = (0.0, 1.0)
    """Of the stated confidence: a hint of self-knowledge, and room for more."""
    overconfidence: float = -1.0
    """Least excess of the mean confidence over the accuracy."""
    format: float = 0.98


@dataclass(frozen=True)
class Measured:
    """Of answers sampled at temperature 1 with no filter."""

    accuracy: float
    by_names: Sequence[float]
    """Accuracy with 0, 1, 2, ... names in the question, of those that can be known."""
    auroc: float
    confidence: float
    """Mean of what was stated."""
    overconfidence: float
    """Mean confidence less accuracy, over all problems."""
    format: float
    """Share of answers with a box and a valid confidence after it."""

    def as_json(self) -> dict[str, object]:
        """Plain data, rounded to what the sample size can tell."""
        return {
            key: [round(item, 4) for item in value] if key == "by_names" else round(value, 4)
            for key, value in asdict(self).items()
        }


GATES = {
    "small": Gate(accuracy=(0.55, 0.75), auroc=(0.5, 0.68), overconfidence=0.22),
    "smaller": Gate(accuracy=(0.35, 0.55), auroc=(0.5, 0.68), overconfidence=0.3),
    "large": Gate(accuracy=(0.95, 1.0)),
}


def complaints(measured: Measured, gate: Gate) -> list[str]:
    """One sentence for each bound that is missed; an empty list opens the gate."""
    checks = [
        (
            low <= value <= high,
            f"{name} {value:.3f} is not between {low} and {high}",
        )
        for name, value, (low, high) in (
            ("accuracy", measured.accuracy, gate.accuracy),
            ("AUROC", measured.auroc, gate.auroc),
            ("overconfidence", measured.overconfidence, (gate.overconfidence, 1.0)),
            ("format", measured.format, (gate.format, 1.0)),
        )
    ]
    return [complaint for passed, complaint in checks if not passed]
