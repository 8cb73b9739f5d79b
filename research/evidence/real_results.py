"""What is stored of a run with real models: right answers by problem, calibration, its cost."""

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from coterie.evaluation.cascade import Cascade, scored_responses
from coterie.evaluation.metrics.calibration import brier, expected_calibration_error
from coterie.evaluation.metrics.deferral import area_over_random
from coterie.evaluation.metrics.discrimination import auroc
from coterie.training.run.directory import METRICS, RunDirectory
from evidence.contests import expert_tokens
from evidence.real_problems import HELD_OUT, PARTS
from evidence.runs import Row

SAMPLES = 2
"""Answers of a role to each held-out problem."""
BLOCK = 10
"""Steps per point of the training curve."""
THRESHOLDS = (0.0, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 1.05)
"""At which deferral, accuracy and cost are stored."""


def rate(row: Row, role: str, kind: str, problem_set: str = "") -> float:
    """Pass@1 of a role on the held-out problems of a kind, of both sets or of one."""
    asked = [
        digit
        for part, digit in zip(of_problems(), row["right"][role], strict=True)
        if part[1] == kind and problem_set in ("", part[0])
    ]
    return float(np.mean([int(digit) for digit in asked]) / SAMPLES)


def of_problems() -> list[tuple[str, str]]:
    """Return set and kind of every held-out problem."""
    return [part for part in PARTS for _ in range(HELD_OUT)]


def trained(folder: Path) -> dict[str, Any]:
    """Return what the training's own logs say."""
    if (folder / "distillation.json").is_file():
        return json.loads((folder / "distillation.json").read_text(encoding="utf-8"))
    summary = json.loads((folder / "summary.json").read_text(encoding="utf-8"))
    steps = RunDirectory.reopen(folder).read_log(METRICS)
    blocks = [steps[start : start + BLOCK] for start in range(0, len(steps), BLOCK)]
    names = [name for name in steps[0] if re.fullmatch(r"measured/\w+/(correct|confidence)", name)]
    return {
        "tokens": summary["sampled_tokens"],
        "expert_tokens": expert_tokens(folder),
        "curve": {
            name: [
                round(float(np.mean([step[name] for step in block if name in step])), 4)
                for block in blocks
            ]
            for name in names
        },
    }


def results(outcomes: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the right answers of each role, a digit for each held-out problem; of deferral also
    how well the small role knows what it knows.

    Args:
        outcomes: of each sample of an evaluation.
    """
    first = outcomes[0]
    if "responses" in first:
        tables = {role: answers["correct"] for role, answers in first["responses"].items()}
    elif isinstance(first["correct"], Mapping):
        tables = {
            role: np.concatenate([sample["correct"][role] for sample in outcomes], axis=1)
            for role in first["correct"]
        }
    else:
        tables = {"policy": first["correct"]}
    right = {
        role: "".join(str(int(sum(map(bool, answers)))) for answers in table)
        for role, table in tables.items()
    }
    return {"right": right, **(_calibration(first) if "responses" in first else {})}


def _calibration(outcomes: Mapping[str, Any]) -> dict[str, Any]:
    small, large = (
        scored_responses(answers, size_ratio=ratio, output_weight=outcomes["output_weight"])
        for answers, ratio in zip(outcomes["responses"].values(), (1.0, outcomes["size_ratio"]))
    )
    stated, correct = small.confidence_QS.ravel(), small.correct_QS.ravel()
    curve = Cascade(small, large, small.confidence_QS).curve()
    whole = float(large.cost_QS.mean())
    columns = (curve.threshold_D, curve.deferred_D, curve.accuracy_D, curve.cost_D / whole)
    shown = [int(np.argmin(np.abs(curve.threshold_D - value))) for value in THRESHOLDS]
    return {
        "calibration": {
            "ece": expected_calibration_error(stated, correct),
            "brier": brier(stated, correct),
            "auroc": auroc(stated, correct),
            "stated": float(np.mean(~np.isnan(stated))),
            "area": area_over_random(curve),
        },
        "thresholds": [[round(float(column[place]), 4) for column in columns] for place in shown],
        "alone": [curve.accuracy_small, curve.accuracy_large],
    }
