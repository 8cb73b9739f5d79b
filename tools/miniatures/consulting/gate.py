"""What a warm start must have reached before it may be shipped."""

import re
from dataclasses import asdict, dataclass

_TRACE = re.compile(r" <think> [^<>]+ </think>\nAnswer: (\d{1,9})")
_SOLUTION = re.compile(r" [\d+\-@#= ]+\nAnswer: (\d{1,9})")
_CALL = re.compile(
    r' <think> (?:[^<>]+ )?</think> <agent_calls>\[\{"expert_id": .*\}\]</agent_calls>'
)


@dataclass(frozen=True)
class PolicyGate:
    """Bounds for a policy: hardly anything is solved alone, replies are read, help is sought."""

    alone_max: float = 0.03
    """Pass@1 on chains of weak operations only, without help."""
    strong_min: float = 0.9
    """Pass@1 on chains of strong operations only."""
    helped_min: float = 0.5
    """Pass@1 on chains of weak operations with a right reply."""
    asking_min: float = 0.4
    asking_max: float = 0.8
    """Share of first turns that ask."""
    format_min: float = 0.97


@dataclass(frozen=True)
class ExpertGate:
    """Bounds for an expert."""

    weak_min: float = 0.85
    """Pass@1 on the chains that the policy cannot solve."""
    format_min: float = 0.97


@dataclass(frozen=True)
class Measured:
    """Shares, sampled at temperature 1 with no filter; None where a role is not asked."""

    weak: float
    """Pass@1 on chains of the policy's weak operations."""
    strong: float
    format: float
    helped: float | None = None
    asking: float | None = None

    def as_json(self) -> dict[str, object]:
        """Plain data, rounded to what the sample size can tell."""
        return {k: None if v is None else round(v, 4) for k, v in asdict(self).items()}


Gate = PolicyGate | ExpertGate


def complaints(measured: Measured, gate: Gate) -> list[str]:
    """One sentence for each bound that is missed; an empty list opens the gate."""
    m = measured
    checks = [(m.format >= gate.format_min, f"format {m.format:.3f} < {gate.format_min}")]
    if isinstance(gate, ExpertGate):
        checks.append((m.weak >= gate.weak_min, f"weak {m.weak:.3f} < {gate.weak_min}"))
    else:
        helped, asking = m.helped or 0.0, m.asking or 0.0
        checks += [
            (m.weak <= gate.alone_max, f"alone {m.weak:.3f} > {gate.alone_max}"),
            (m.strong >= gate.strong_min, f"strong {m.strong:.3f} < {gate.strong_min}"),
            (helped >= gate.helped_min, f"helped {helped:.3f} < {gate.helped_min}"),
            (asking >= gate.asking_min, f"asking {asking:.3f} < {gate.asking_min}"),
            (asking <= gate.asking_max, f"asking {asking:.3f} > {gate.asking_max}"),
        ]
    return [complaint for passed, complaint in checks if not passed]


def read_answer(text: str) -> str | None:
    """The digits of a well-formed answer of either role, or None."""
    match = _TRACE.fullmatch(text) or _SOLUTION.fullmatch(text)
    return match[1] if match else None


def is_call(text: str) -> bool:
    """Whether a first turn is a well-formed call."""
    return _CALL.fullmatch(text) is not None
