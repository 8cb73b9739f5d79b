"""The final table of a run: before against after, with intervals."""

from collections.abc import Mapping
from typing import Any

from coterie import envs
from coterie.evaluation import evaluation_of
from coterie.evaluation.evaluation import Evaluation, Resampled
from coterie.evaluation.report.rundata import RunData
from coterie.evaluation.table import Line, lines

RESAMPLES = 10_000


def evaluation_for(run: RunData) -> Evaluation | None:
    """How the run's environment is evaluated; None where it is somebody else's and not at hand."""
    try:
        return evaluation_of(envs.spec(str(run.setting("choice", "env", default=""))))
    except Exception:
        # Somebody else's package: whatever its import raises. The stored summary is shown instead.
        return None


def result(run: RunData, evaluation: Evaluation | None, roles: list[str]) -> list[Line]:
    """The lines that the run printed at its end, computed anew from the stored outcomes; from
    ``summary.json``, unpaired, where that cannot be done."""
    if evaluation is not None and run.outcomes:
        try:
            measured = {name: _estimated(run, evaluation, name) for name in ("before", "after")}
            rows = evaluation.table(roles, *measured.values())
            return lines(measured["before"], measured["after"], rows)
        except (KeyError, TypeError, ValueError, IndexError, AttributeError):
            # Outcomes of another version of the environment's evaluation.
            pass
    return _stored(run.summary or {})


def _estimated(run: RunData, evaluation: Evaluation, name: str) -> Mapping[str, Resampled]:
    if name not in run.outcomes:
        return {}
    resamples = run.setting("eval", "resamples", default=RESAMPLES)
    return evaluation.estimate(run.outcomes[name], resamples, run.setting("run", "seed", default=0))


def _stored(summary: Mapping[str, Any]) -> list[Line]:
    values = {name: summary.get(name) or {} for name in ("before", "after")}
    bounds = summary.get("intervals") or {}
    names = dict.fromkeys([*values["before"], *values["after"]])

    def cell(when: str, name: str) -> str:
        return _cell(values[when].get(name), (bounds.get(when) or {}).get(name))

    return [Line(name, cell("before", name), cell("after", name), "", "") for name in names]


def _cell(value: float | None, interval: list[float | None] | None) -> str:
    if value is None:
        return ""
    low, high = interval or (None, None)
    return f"{value:.3f}" + ("" if low is None or high is None else f" [{low:.2f} {high:.2f}]")
