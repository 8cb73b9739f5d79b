"""Evaluation of ``eapo-consultation``: the policy without experts, and with them.

Mode ``eval`` plays every held-out problem ``eval_samples`` times without experts, ``assisted`` as
often with experts whose replies are always accepted. The paper's "Pass@32" is the mean of F1 over
samples, ``f1/alone`` here, and its "Var" the variance of F1 between problems,
``f1_var_between/alone`` (EAPO, arXiv:2509.23730, section 3.1). The same metrics of correctness are
avg@n and ``var_between/alone``.
"""

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from coterie.datatypes import Episode, Problem, Trajectory
from coterie.envs.eapo_consultation.outcome import PARADIGMS
from coterie.envs.eapo_consultation.settings import EapoConsultationSettings
from coterie.evaluation.by_set import SETS_OF_PROBLEM
from coterie.evaluation.evaluation import (
    Bars,
    Evaluation,
    Outcomes,
    Picture,
    Play,
    Resampled,
    Row,
    column_means,
    with_derived,
)
from coterie.evaluation.metrics.means import Floats, as_floats, mean_at_n, mean_present, ratio
from coterie.evaluation.metrics.passk import pass_at_k
from coterie.evaluation.report_labels import Mark, Phase, ReportLabels, Tag

# Q problems, N samples of each, R resamples

_MODES = {"alone": "eval", "assisted": "assisted"}
_KS = (1, 2, 4, 8, 16, 32)
_COUNTED = ("consults", "calls", "accepted", "rounds", "errors", "expert_tokens")


async def examine(
    play: Play,
    problems: Sequence[Problem],
    roles: Sequence[str],
    settings: EapoConsultationSettings,
) -> Outcomes:
    """Play the problems in both modes; return measurements by problem and sample."""
    outcomes: Outcomes = {"problems": [problem.id for problem in problems]}
    samples = settings.eval_samples
    for name, mode in _MODES.items():
        episodes = await play(problems, mode=mode, replicas=samples)
        rows = [
            [_policy(episode) for episode in episodes[first : first + samples]]
            for first in range(0, len(episodes), samples)
        ]
        measured = ("correct", "f1", "formatted", "response_tokens")
        if name == "assisted":
            measured += (*_COUNTED, "answer_in_returns", *(f"paradigm_{p}" for p in PARADIGMS))
        outcomes[name] = {key: [[_value(row, key) for row in n] for n in rows] for key in measured}
    return outcomes


def estimate(outcomes: Outcomes, resamples: int, seed: int) -> dict[str, Resampled]:
    """Return every metric with its bootstrap over problems."""
    columns: dict[str, Floats] = {}
    parts = _parts(outcomes)
    for part, (score_QN, f1_QN) in parts.items():
        columns |= {f"avg@n/{part}": mean_at_n(score_QN), **_passes(part, score_QN)}
        columns |= {f"f1/{part}": mean_at_n(f1_QN), **_spread(f"f1_{{}}/{part}", f1_QN)}
        columns |= _spread(f"{{}}/{part}", score_QN)
    for name in _MODES:
        for key in ("formatted", "response_tokens"):
            columns[f"{key}/{name}"] = mean_at_n(outcomes[name][key])
    helped = {key: as_floats(values) for key, values in outcomes["assisted"].items()}
    columns |= {key: mean_at_n(helped[key]) for key in _COUNTED}
    columns |= {f"paradigm/{p}": mean_at_n(helped[f"paradigm_{p}"]) for p in PARADIGMS}
    answered_QN = helped["answer_in_returns"]
    columns["consult_rate"] = mean_at_n(
        np.where(np.isnan(answered_QN), np.nan, helped["consults"] > 0)
    )
    columns["told"] = mean_at_n(answered_QN)
    columns["told_right"] = mean_at_n(answered_QN * helped["correct"])
    columns["untold_right"] = mean_at_n((1 - answered_QN) * helped["correct"])

    means = column_means(columns, resamples, seed)

    told_Q = columns["told"]
    eligible = {
        "right_if_told": int((told_Q > 0).sum()),
        "right_if_untold": int((told_Q < 1).sum()),
    }

    def count(name: str) -> int:
        if name in eligible:
            return eligible[name]
        return means.get(f"avg@n/{name.partition('/')[2]}", means["avg@n/alone"]).count

    metrics = with_derived(means, partial(_derive, list(parts)), count)
    return {name: metric for name, metric in metrics.items() if not name.startswith(_HELPERS)}


_HELPERS = ("square/", "f1_square/", "told_right", "untold_right")


def _parts(outcomes: Outcomes) -> dict[str, tuple[Floats, Floats]]:
    """Part -> (correct, F1), for both modes and, without experts, for each of several data sets.
    Problems of other sets are NaN."""
    parts = {
        name: (as_floats(outcomes[name]["correct"]), as_floats(outcomes[name]["f1"]))
        for name in _MODES
    }
    sets_of_problem = outcomes.get(SETS_OF_PROBLEM, [])
    score_QN, f1_QN = parts["alone"]
    for name in dict.fromkeys(name for names in sets_of_problem for name in names):
        inside = np.array([name in names for names in sets_of_problem])[:, None]
        parts[f"alone/{name}"] = (
            np.where(inside, score_QN, np.nan),
            np.where(inside, f1_QN, np.nan),
        )
    return parts


def _spread(title: str, score_QN: Floats) -> dict[str, Floats]:
    """Columns from which the variances of a score follow."""
    mean_Q = mean_at_n(score_QN)
    return {
        title.format("square"): mean_Q**2,
        title.format("var_within"): mean_present((score_QN - mean_Q[:, None]) ** 2, axis=1),
    }


def _passes(name: str, score_QN: Floats) -> dict[str, Floats]:
    samples = score_QN.shape[1] if score_QN.ndim == 2 else 0
    return {f"pass@{k}/{name}": pass_at_k(score_QN, k) for k in _KS if k <= samples}


def _derive(parts: Sequence[str], m: Mapping[str, Floats]) -> dict[str, Floats]:
    kinds = (("", "avg@n"), ("f1_", "f1"))
    metrics = {
        # (1/Q) sum mu_q^2 - mu^2
        f"{of}var_between/{part}": np.maximum(
            m[f"{of}square/{part}"] - m[f"{kind}/{part}"] ** 2, 0.0
        )
        for part in parts
        for of, kind in kinds
    }
    if sets := [part for part in parts if part not in _MODES]:
        for _, kind in kinds:
            # All sets have the same weight, whatever their size.
            of_sets = [m[f"{kind}/{part}"] for part in sets]
            metrics[f"{kind}/alone/sets"] = as_floats(np.mean(of_sets, axis=0))
        for of, _ in kinds:
            variances = [metrics[f"{of}var_between/{part}"] for part in sets]
            metrics[f"{of}var_between/alone/sets"] = as_floats(np.mean(variances, axis=0))
    metrics["help"] = m["avg@n/assisted"] - m["avg@n/alone"]
    metrics["right_if_told"] = ratio(m["told_right"], m["told"])
    metrics["right_if_untold"] = ratio(m["untold_right"], 1 - m["told"])
    return metrics


def rows(roles: Sequence[str]) -> list[Row]:
    """Return the rows of the table at the end of a run."""
    return [
        Row("Alone, avg@n", "avg@n/alone"),
        Row("Alone, Pass@4", "pass@4/alone"),
        Row("Alone, Pass@8", "pass@8/alone"),
        Row("Alone, variance between", "var_between/alone", "neither"),
        Row("Alone, variance within", "var_within/alone", "lower"),
        Row("Alone, F1", "f1/alone"),
        Row("Alone, F1, variance between", "f1_var_between/alone", "neither"),
        Row("With experts, avg@n", "avg@n/assisted"),
        Row("Gain from experts", "help", "neither"),
        Row("Asks experts", "consult_rate", "neither"),
        Row("Calls an episode", "calls", "neither"),
        Row("Answer in a reply", "told", "neither"),
        Row("Right, answer in a reply", "right_if_told"),
        Row("Right, answer in no reply", "right_if_untold"),
    ]


def further(metrics: Iterable[str]) -> list[Row]:
    """Return rows for the mean of several data sets, as in the paper, and for the variance in
    each."""
    labels = {"avg@n": ("avg@n", "higher"), "f1": ("F1", "higher")}
    labels["f1_var_between"] = ("F1, variance between", "neither")
    lines = []
    for metric in metrics:
        kind, _, part = metric.partition("/alone/")
        if kind in labels and (part == "sets" or (part and kind == "f1_var_between")):
            label, better = labels[kind]
            title = "mean of the sets" if part == "sets" else part
            lines.append(Row(f"Alone, {label}, {title}", metric, better))
    return lines


def headline(roles: Sequence[str]) -> list[str]:
    """Return the metrics of the progress bar."""
    return [f"measured/policy/{name}" for name in ("correct", "consulted", "accepted")]


def pictures(outcomes: Mapping[str, Outcomes]) -> list[Picture]:
    """Return the report's pictures of consulting and of correctness."""
    return [
        Bars(
            "How the policy uses its experts",
            "Share of conversations with experts at hand: by itself, handing on the whole "
            "question, or asking for parts of it.",
            [(name, _paradigms(measured["assisted"])) for name, measured in outcomes.items()],
        ),
        Bars(
            "Right, without experts and with them",
            "Share of conversations that end with the right answer.",
            [
                (f"{name}, {mode}", [("right", rate), ("wrong", 1 - rate)])
                for name, measured in outcomes.items()
                for mode in _MODES
                for rate in [float(mean_present(mean_at_n(measured[mode]["correct"])))]
            ],
        ),
    ]


def _paradigms(assisted: Mapping[str, Any]) -> list[tuple[str, float]]:
    return [(p, float(mean_present(mean_at_n(assisted[f"paradigm_{p}"])))) for p in PARADIGMS]


def _policy(episode: Episode) -> Trajectory:
    return next(row for row in episode.trajectories if row.role == "policy")


def _value(row: Trajectory, key: str) -> float | None:
    """A measurement of the policy; None if it failed to answer."""
    value: Any = row.info.get(key)
    return None if row.status != "ok" or value is None else float(value)


LABELS = ReportLabels(
    tags=(
        Tag(
            "leaked",
            "an accepted reply of an expert states the answer",
            (("answer_in_returns", True),),
        ),
        Tag("consulted", "experts were asked", (("consulted", True),)),
    ),
    marks=(
        Mark("consulted", True, "consulted"),
        Mark("answer_in_returns", True, "a reply stated the answer", "warn"),
        Mark("formatted", False, "format broken", "bad"),
        Mark("exhausted", True, "budget spent", "warn"),
    ),
    phases=(
        Phase("consulted", "The policy's conversation"),
        Phase("asked", "Experts, who see one query each"),
    ),
)
EVALUATION = Evaluation(
    examine=examine,
    estimate=estimate,
    rows=rows,
    headline=headline,
    pictures=pictures,
    further=further,
    answers=lambda roles, own: 2 * own.eval_samples,
    labels=LABELS,
)
