"""What is stored of a finished run."""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from coterie.evaluation.cascade import Cascade, scored_responses
from coterie.evaluation.metrics.calibration import brier, expected_calibration_error
from coterie.evaluation.metrics.deferral import area_over_random
from coterie.evaluation.metrics.discrimination import auroc
from coterie.training.run.directory import EVALUATIONS, METRICS, RunDirectory
from evidence.commands import start
from evidence.real_problems import HELD_OUT, KINDS, PARTS
from evidence.studies import Row, Run

ROLES = ("alice", "bob")
TERMS = ("exploration", "cross_model")
"""CoRe's terms for diversity."""
EAPO = ("avg@n/alone", "f1/alone", "pass@8/alone", "avg@n/assisted", "consult_rate")
SAMPLES = 2
"""Answers of a real model to each held-out problem."""
ANSWERS = "held-out/answers.json"
"""Of the evaluation of a real model, in the run's folder."""
THRESHOLDS = (0.0, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 1.05)
"""At which deferral, accuracy and cost are stored."""

_ANSWERS_ARE = re.compile(
    r"measured/\w+/(correct|stated|confidence|consulted|accepted)|learner/\w+/(entropy|rows|tokens)"
)
"""What tells how the answers of training change: right, certain, long."""


def by_program(training: Callable[[Path], dict[str, Any]]) -> Callable[[Run, Path], dict[str, Any]]:
    """Return what reads any command of a study: its comparisons, or a ``training``."""

    def measure(run: Run, folder: Path) -> dict[str, Any]:
        words = run.words
        if words[0] == "distill":
            return {"after": _json(folder / "distillation.json")}
        if words[0] == "suite":
            asked = words[words.index("--policies") + 1 :]
            return scores([word.partition("=")[0] for word in asked], _json(folder / run.done))
        if words[0] == "corea":
            return cascades(_json(folder / run.done))
        return training(folder)

    return measure


def scores(policies: Sequence[str], results: Mapping[str, Any]) -> dict[str, Any]:
    """Return the accuracy of each policy in the results of a suite."""
    (asked,) = results["suites"]["eapo"]["sets"].values()
    return {"after": {name: row for name, row in asked["rows"].items() if name in policies}}


def cascades(results: Mapping[str, Any]) -> dict[str, Any]:
    """Return system -> metrics, with those of the whole curve where it has one."""
    names = ("accuracy", "ece", "auroc", "deferred", "random_gain", "saving", "loss")
    names = (*names, "helped", "harmed", "cost")
    after: dict[str, dict[str, float]] = {}
    for system, metrics in results["systems"].items():
        curve = results["curves"].get(system, {})
        after[system] = {name: metrics[name]["value"] for name in names if name in metrics}
        after[system] |= {
            name: value
            for name, value in curve.items()
            if name.startswith("saving@") or name in ("apgr", "area_over_random")
        }
    return {"after": after}


def spent(folder: Path) -> dict[str, Any]:
    """Return the steps and tokens of a training."""
    summary = _json(folder / "summary.json")
    after = {"steps": summary["steps"], "expert_tokens": tokens_of(folder)["expert-tokens"]}
    return {"after": after, "tokens": summary["sampled_tokens"]}


def tokens_of(folder: Path) -> dict[str, int]:
    """Return the tokens sampled in training: of learners (``tokens``), of frozen models."""
    last = _steps(folder)[-1]
    learners = int(last["rollout/learner_tokens_total"])
    return {"tokens": learners, "expert-tokens": int(last["rollout/tokens_total"]) - learners}


def taught(folder: Path) -> dict[str, Any]:
    """Return the results of a team of teachers."""
    first, last = (_json(folder / f"evaluation/{when}.json")["correct"] for when in WHEN)
    return {
        "before": {role: counts(rows) for role, rows in first.items()},
        "after": {role: counts(rows) for role, rows in last.items()},
        "tokens": _json(folder / "summary.json")["sampled_tokens"],
        "curve": dict(zip(last, _curves(folder, "measured/{}/correct", last, 30))),
        # Number of right answers to each held-out problem, one digit per problem.
        "right": {role: "".join(str(sum(row)) for row in rows) for role, rows in last.items()},
    }


def counts(correct: Sequence[Sequence[int]]) -> list[int]:
    """Return [right answers, all answers]."""
    return [sum(map(sum, correct)), sum(map(len, correct))]


def peers(run: Run, folder: Path) -> dict[str, Any]:
    """Return the results of teachers, what may foretell them, and the roles' majority votes."""
    first = _json(folder / "evaluation/before.json")["correct"]
    return {
        **taught(folder),
        "peer_only": {role: peer_only(first, role) for role in ROLES},
        "hint_lift": _json(folder / "summary.json")["before"].get("hint_lift"),
        "votes": _votes(run, folder),
    }


def peer_only(correct: Mapping[str, Sequence[Sequence[int]]], role: str) -> float:
    """Return the share of problems that the role never solves and its peer does."""
    (peer,) = set(ROLES) - {role}
    pairs = list(zip(correct[role], correct[peer], strict=True))
    return round(sum(not any(own) and any(other) for own, other in pairs) / len(pairs), 4)


def _votes(run: Run, folder: Path) -> dict[str, float]:
    """Majority accuracy of six answers: from each role alone, and three from each."""
    problems = f"{run.words[run.words.index('--problems.train') + 1]}&seed={1000 + run.seed}"
    policies = [f"{role}={folder}" for role in ROLES]
    flags = ("--questions", "256", "--samples", "6", "--resamples", "1", "--no-workflow")
    where = ("--problems", problems, "--seed", str(run.seed), "--out", str(folder / "votes"))
    words = ("suite", "--policies", *policies, *flags, *where)
    start("benchmark.py", words, folder / "votes", "results.json")
    suites = _json(folder / "votes/results.json")["suites"]
    rows = suites["core"]["sets"][problems]["rows"]
    return {"alice": rows["vote/alice"], "bob": rows["vote/bob"], "team": rows["vote"]}


def controls(run: Run, folder: Path) -> dict[str, Any]:
    """Return the results of teachers and what hints did for roles that failed."""
    summary = _json(folder / "summary.json")
    names = ("rescue_rate", "retry_rate", "hint_lift")
    rescues = {when: {name: summary[when].get(name) for name in names} for when in WHEN}
    return {**taught(folder), "rescues": rescues, "read": _read(folder)}


def _read(folder: Path) -> dict[str, list[int]]:
    """Role -> [rows that core-teaching would read again, those that were]; only where the two
    differ."""
    log = folder / "other_hints.jsonl"
    if not log.exists():
        return {}
    # Steps after the last checkpoint stand twice in the log of a resumed run.
    steps = {line["step"]: line for line in map(json.loads, log.read_text().splitlines())}
    of_role = {role: [line.get(role, (0, 0)) for line in steps.values()] for role in ROLES}
    return {role: [sum(column) for column in zip(*pairs)] for role, pairs in of_role.items()}


def published(run: Run, folder: Path) -> dict[str, Any]:
    """Return the results of teachers and the share of traces that each term paid."""
    steps = _steps(folder)
    paid = {role: {term: _mean(steps, f"paid/{role}/{term}") for term in TERMS} for role in ROLES}
    return {**taught(folder), "paid": paid}


def eapo_published(run: Run, folder: Path) -> dict[str, Any]:
    """Return the measures of a policy that may consult experts."""
    summary, names = _json(folder / "summary.json"), ("correct", "consulted", "accepted")
    return {
        "steps": len(_steps(folder)),
        "tokens": tokens_of(folder)["tokens"],
        **{when: {name: summary[when].get(name) for name in EAPO} for when in WHEN},
        "curve": dict(zip(names, _curves(folder, "measured/policy/{}", names, 10))),
    }


def real(run: Run, folder: Path) -> dict[str, Any]:
    """Return what the training says and what the roles answer on the held-out problems."""
    stored = answered(_json(folder / ANSWERS)["outcomes"])
    rates = {
        role: {kind: round(rate_of_kind(stored, role, kind), 4) for kind in KINDS}
        for role in stored["right"]
    }
    return {**_trained(folder), **stored, "after": rates}


def reasoning(run: Run, folder: Path) -> dict[str, Any]:
    """Return the figures of a run of models that reason, and how its answers changed on the way."""
    if run.words[0] == "corea":
        results = _json(folder / run.done)
        sets = {**results["sets"], **results["averages"]}
        of_set = {name: cascades({"systems": one, "curves": {}}) for name, one in sets.items()}
        return {**cascades(results), "sets": {name: one["after"] for name, one in of_set.items()}}
    if run.asked:
        metrics = _json(folder / ANSWERS)["metrics"]
        after = {name: metric["value"] for name, metric in metrics.items()}
        return {"after": after, **_json(folder / "distillation.json")}
    summary, steps = _json(folder / "summary.json"), _steps(folder)
    names = sorted({name for step in steps for name in step if _ANSWERS_ARE.fullmatch(name)})
    blocks = [steps[start : start + 5] for start in range(0, len(steps), 5)]
    return {
        **{when: summary.get(when) for when in WHEN},
        "steps": len(steps),
        **tokens_of(folder),
        "curve": {name: [_known_mean(block, name) for block in blocks] for name in names},
        **(_held_out(folder, summary) if run.words[:2] == ["--env", "solo"] else {}),
    }


def _held_out(folder: Path, summary: Mapping[str, Any]) -> dict[str, Any]:
    """Right answers to each held-out problem before and after, one digit a problem; and, at each
    evaluation, tokens sampled in training, Pass@1 and the share of stated answers."""
    names = ("pass@1", "stated")
    correct = {when: _json(folder / f"evaluation/{when}.json")["correct"] for when in WHEN}
    tokens = [step["rollout/learner_tokens_total"] for step in _steps(folder)]
    between = RunDirectory.reopen(folder).read_log(EVALUATIONS)
    return {
        "right": {
            when: "".join(str(int(sum(filter(None, answers)))) for answers in rows)
            for when, rows in correct.items()
        },
        "held-out": [
            [0, *(summary["before"][name] for name in names)],
            *(
                [int(tokens[row["step"] - 1]), *(row[f"eval/{name}"] for name in names)]
                for row in between
            ),
            [int(tokens[-1]), *(summary["after"][name] for name in names)],
        ],
    }


def rate_of_kind(row: Row, role: str, kind: str, problem_set: str = "") -> float:
    """Return Pass@1 of a role on the held-out problems of a kind, of both sets or of one."""
    digits = [
        int(digit)
        for part, digit in zip(held_out_parts(), row["right"][role], strict=True)
        if part[1] == kind and problem_set in ("", part[0])
    ]
    return float(np.mean(digits) / SAMPLES)


def held_out_parts() -> list[tuple[str, str]]:
    """Return set and kind of every held-out problem."""
    return [part for part in PARTS for _ in range(HELD_OUT)]


def _trained(folder: Path) -> dict[str, Any]:
    if (folder / "distillation.json").is_file():
        return _json(folder / "distillation.json")
    known = _steps(folder)[0]
    names = [name for name in known if re.fullmatch(r"measured/\w+/(correct|confidence)", name)]
    return {
        "tokens": _json(folder / "summary.json")["sampled_tokens"],
        "expert_tokens": tokens_of(folder)["expert-tokens"],
        "curve": dict(zip(names, _curves(folder, "{}", names, 10))),
    }


def answered(outcomes: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
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


def _curves(folder: Path, key: str, names: Any, block: int) -> list[list[float]]:
    """Training curve of each name, with ``block`` steps per point."""
    steps = _steps(folder)
    blocks = [steps[start : start + block] for start in range(0, len(steps), block)]
    return [[_mean(block, key.format(name)) for block in blocks] for name in names]


def _mean(steps: Sequence[Mapping[str, float]], key: str) -> float:
    return round(float(np.mean([step[key] for step in steps if key in step])), 4)


def _known_mean(steps: Sequence[Mapping[str, float]], key: str) -> float | None:
    """The mean over the steps that measured it; None without one, as where nothing was updated."""
    return _mean(steps, key) if any(key in step for step in steps) else None


def _steps(folder: Path) -> Sequence[Mapping[str, Any]]:
    return RunDirectory.reopen(folder).read_log(METRICS)


def _json(path: Path) -> Any:
    return json.loads(path.read_text(encoding="utf-8"))


WHEN = ("before", "after")
MEASURES: Mapping[str, Callable[[Run, Path], dict[str, Any]]] = {
    "teaching": by_program(taught),
    "spent": by_program(spent),
    "peers": peers,
    "controls": controls,
    "published": published,
    "eapo-published": eapo_published,
    "real": real,
    "reasoning": reasoning,
}
"""Of a study -> what reads a finished run of it in its folder."""
