"""How a report shows an episode that a program played."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from coterie.evaluation import Row, per_episode
from coterie.evaluation.per_episode import line, measure
from coterie.evaluation.report_labels import Drawing, ReportLabels
from coterie.extras.gateway.outcome import RARE


def drawn(turns: Sequence[Sequence[Any]]) -> str:
    """Draw the contexts of one role as a tree. Each line is a row of calls, counted from 1, that
    continue each other; calls in brackets are not trained.

    Args:
        turns: see :meth:`coterie.extras.gateway.outcome.Record.forest`.

    >>> print(drawn([["new", None, None, ""], ["bridged", 0, None, ""], ["branch", 0, None, "twin"],
    ...              ["compacted", None, 1, ""]]))
    new: 1 ─ 2
      └ branch after 1: (3: twin)
    compacted from 2: 4
    """
    children: dict[int | None, list[int]] = {}
    for turn, (_, parent, _, _) in enumerate(turns):
        children.setdefault(parent, []).append(turn)
    lines: list[str] = []
    stack = [(turn, 0) for turn in reversed(children.get(None, []))]
    while stack:
        turn, depth = stack.pop()
        kind, parent, lost_parent, _ = turns[turn]
        row, forks = [turn], list[int]()
        while after := children.get(row[-1]):
            row.append(after[0])
            forks += after[1:]
        stack += [(fork, depth + 1) for fork in sorted(forks, reverse=True)]
        label = kind.replace("_", " ")
        if parent is not None:
            label += f" after {parent + 1}"
        elif lost_parent is not None:
            label += f" from {lost_parent + 1}"
        calls = (f"({t + 1}: {turns[t][3]})" if turns[t][3] else f"{t + 1}" for t in row)
        lines.append(f"{'  ' * depth}{'└ ' * (depth > 0)}{label}: {' ─ '.join(calls)}")
    return "\n".join(lines)


def _forest(by_role: Mapping[str, Sequence[Sequence[Any]]]) -> dict[str, str]:
    return {role: drawn(turns) for role, turns in by_role.items() if turns}


def _row(metric: str) -> Row:
    kind, *_, name = metric.split("/")
    return replace(line(metric), rare=kind in ("measured", "episode") and name in RARE)


_DRAWING = Drawing("Calls by row (in brackets: not learned)", "forest", _forest)

EVALUATION = replace(per_episode(measure, row=_row), labels=ReportLabels(drawings=(_DRAWING,)))
