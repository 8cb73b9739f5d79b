"""Read a run directory for the report. A run may be unfinished, killed or incomplete; each missing
part becomes a sentence."""

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import orjson

from coterie import envs
from coterie.datatypes import UserError
from coterie.evaluation import evaluation_of
from coterie.evaluation.by_set import estimate
from coterie.evaluation.evaluation import Evaluation, Resampled
from coterie.evaluation.metrics.intervals import RESAMPLES
from coterie.evaluation.run_table import Line, lines
from coterie.evaluation.table import value_with_interval

CONFIG, METRICS, SUMMARY = "config.json", "metrics.jsonl", "summary.json"
EPISODES, EVALUATIONS, ENVIRONMENT = "episodes.jsonl", "evaluations.jsonl", "environment.json"
OUTCOMES = {name: f"evaluation/{name}.json" for name in ("before", "after")}
WARMED_UP = "evaluation/warmed-up.json"


@dataclass(frozen=True)
class RunData:
    """All data of a run but its episodes, which may not fit into memory."""

    path: Path
    config: Mapping[str, Any]
    metrics: list[dict[str, Any]]
    """One dictionary per step, in order."""
    summary: Mapping[str, Any] | None
    outcomes: Mapping[str, Any]
    """Those of ``before``, ``warmed_up`` and ``after`` that were evaluated."""
    missing: list[str] = field(default_factory=list)
    """One sentence for each missing part."""
    begun: Mapping[str, Any] = field(default_factory=dict)
    """Time, command and commit of the start, as far as they are stored."""
    evaluations: list[dict[str, Any]] = field(default_factory=list)
    """Metrics on held-out problems by step: before and after the warm-up (both 0), between and
    after training."""

    def setting(self, *keys: str, default: Any = None) -> Any:
        """A setting by its path; ``default`` if the run's configuration lacks it."""
        value: Any = self.config
        for key in keys:
            value = value.get(key) if isinstance(value, Mapping) else None
        return default if value is None else value


def read_run(path: Path) -> RunData:
    """Read a run's directory.

    Raises:
        UserError: there is no run at ``path``.
    """
    if not path.is_dir():
        raise UserError(f"there is no directory {path}; give the one of --run-dir")
    if not (path / CONFIG).is_file():
        raise UserError(
            f"{path} is not a run (it has no {CONFIG}); give the directory of --run-dir"
        )
    config = _json(path / CONFIG)
    if config is None:
        raise UserError(f"{path / CONFIG} cannot be read as a JSON object")
    steps = (config.get("run") or {}).get("steps", "?")
    missing: list[str] = []
    metrics = _metrics(path / METRICS, missing)
    summary = _json(path / SUMMARY)
    done = metrics[-1]["step"] if metrics else 0
    ended = _ended(summary or {}, done)
    if summary is None:
        missing.insert(
            0, f"The run has not ended: {done} of {steps} steps are logged, and no {SUMMARY} yet."
        )
    elif ended < done:
        missing.insert(
            0,
            f"The run goes on: {done} of {steps} steps are logged, and its results after training "
            f"are of step {ended}.",
        )
    outcomes: dict[str, Any] = {}
    for name, file in OUTCOMES.items():
        if (stored := _json(path / file)) is not None:
            outcomes[name] = stored
        else:
            missing.append(f"There is no evaluation {name} training ({file}).")
    if (stored := _json(path / WARMED_UP)) is not None:
        outcomes["warmed_up"] = stored
    noted = (_json(path / ENVIRONMENT) or {}).get("begun")
    begun = noted if isinstance(noted, dict) else {}
    evaluations = _evaluations(path / EVALUATIONS, summary or {}, ended)
    return RunData(path, config, metrics, summary, outcomes, missing, begun, evaluations)


def _ended(summary: Mapping[str, Any], done: int) -> int:
    """The last step of the results in ``summary``, which are old while a run that had ended goes on
    with more steps; ``done``: the last step that is logged."""
    steps = summary.get("steps")
    return min(steps, done) if isinstance(steps, int) else done


def _evaluations(path: Path, summary: Mapping[str, Any], ended: int) -> list[dict[str, Any]]:
    between = _metrics(path, []) if path.is_file() else []
    by_time = {
        (metrics_at["step"], "between"): {
            name.removeprefix("eval/"): value for name, value in metrics_at.items()
        }
        for metrics_at in between
    }
    # The warm-up takes no step of training, so it has two points at step 0.
    for step, when in ((0, "before"), (0, "warmed_up"), (ended, "after")):
        if isinstance(summary.get(when), dict):
            by_time.pop((step, "between"), None)
            by_time[step, when] = {**summary[when], "step": step}
    # Python sorts stably: equal steps stay in the order in which they were added.
    return [by_time[time] for time in sorted(by_time, key=lambda time: time[0])]


def _metrics(path: Path, missing: list[str]) -> list[dict[str, Any]]:
    if not path.is_file():
        missing.append(f"No step has been logged ({METRICS} is not there), so there are no curves.")
        return []
    lines = path.read_bytes().splitlines()
    parsed = [value for value in map(_parse, lines) if isinstance(value, dict)]
    metrics = [value for value in parsed if isinstance(value.get("step"), int)]
    if len(metrics) < len(lines):
        # A run that is still writing, or was killed, leaves half a line at the end.
        missing.append(f"{len(lines) - len(metrics)} lines of {METRICS} cannot be read.")
    return metrics


def _parse(line: bytes) -> Any:
    try:
        return orjson.loads(line)
    except orjson.JSONDecodeError:
        return None


def _json(path: Path) -> dict[str, Any] | None:
    """Read a JSON object; None if there is none."""
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return value if isinstance(value, dict) else None


def evaluation_for(run: RunData) -> Evaluation | None:
    """The evaluation of the run's environment; None if its package cannot be imported here."""
    try:
        return evaluation_of(envs.spec(str(run.setting("choice", "env", default=""))))
    except Exception:
        # The import of another package may raise anything; the stored summary is shown instead.
        return None


def result(run: RunData, evaluation: Evaluation | None, roles: list[str]) -> list[Line]:
    """The lines of the run's final table, computed from the stored outcomes; if that is impossible,
    from ``summary.json``, without changes."""
    if evaluation is not None and run.outcomes:
        try:
            moments = ("before", "after", "warmed_up")
            before, after, between = (_estimate(run, evaluation, name) for name in moments)
            return lines(before, after, evaluation.table(roles, before, after), between)
        except (KeyError, TypeError, ValueError, IndexError, AttributeError):
            # The outcomes are from another version of the evaluation.
            pass
    return _from_summary(run.summary or {})


def _estimate(run: RunData, evaluation: Evaluation, name: str) -> Mapping[str, Resampled]:
    if name not in run.outcomes:
        return {}
    resamples = run.setting("eval", "resamples", default=RESAMPLES)
    seed = run.setting("run", "seed", default=0)
    return estimate(evaluation, run.outcomes[name], resamples, seed)


def _from_summary(summary: Mapping[str, Any]) -> list[Line]:
    values = {name: summary.get(name) or {} for name in ("before", "after")}
    bounds = summary.get("intervals") or {}
    names = dict.fromkeys([*values["before"], *values["after"]])

    def cell(when: str, name: str) -> str:
        if (value := values[when].get(name)) is None:
            return ""
        low, high = (
            math.nan if end is None else end
            for end in (bounds.get(when) or {}).get(name) or (None, None)
        )
        return value_with_interval(value, low, high)

    return [Line(name, cell("before", name), cell("after", name), "", "") for name in names]
