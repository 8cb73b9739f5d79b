"""Metrics of a suite's systems with intervals: over all questions, and over sets of problems."""

# Q questions, R resamples, M rows, S sets, K numbers of samples

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np

from coterie.datatypes import derive_seed
from coterie.evaluation.compare.responses import Responses
from coterie.evaluation.compare.systems import Prices, System
from coterie.evaluation.evaluation import Resampled
from coterie.evaluation.metrics.complementarity import complementarity, joint_table
from coterie.evaluation.metrics.intervals import resampled_means
from coterie.evaluation.metrics.means import Floats, as_floats, mean_at_n, mean_present, ratio
from coterie.evaluation.metrics.passk import is_binary, pass_at_k, team_pass_at_k

Sets = Sequence[Sequence[System]]
"""The same rows on every set of problems."""


@dataclass(frozen=True)
class Figures:
    """Figures of one system over all sets."""

    system: System
    """The system on the first set, with a label for all sets."""
    micro: Resampled
    """Mean over all questions."""
    macro: Resampled
    """Mean over sets with equal weights."""
    over_best: Resampled
    """The lead over the best single policy, each over the questions that both answered. The best
    policy is chosen anew in each resample, so the interval accounts for the choice."""
    missing: int
    """Questions without an answer, which all figures leave out."""
    tokens: float
    """Sampled tokens per answer, summed over policies."""
    money: float | None
    """Cost of a thousand answers; None without prices."""
    seconds: float
    """Mean wait for an answer in seconds, while a whole batch is sampled."""


def measure_rows(sets: Sets, prices: Prices, *, resamples: int, seed: int) -> list[Figures]:
    """Figures of every row over all sets, whose questions are resampled independently."""
    drawn = {"resamples": resamples, "seed": seed}
    columns = _scores(sets)
    micro, macro = resampled(columns, **drawn)
    first = sets[0]
    singles = [index for index, system in enumerate(first) if system.is_single]
    pairs = [(single, index) for index in range(len(first)) for single in singles]
    leads = dict(zip(pairs, _paired(columns, pairs, **drawn)))
    figures: list[Figures] = []
    for index, system in enumerate(first):
        parts = [systems[index] for systems in sets]
        answered = [~np.isnan(part.score_Q) for part in parts]
        spent: dict[str, list[Floats]] = {}
        for part, answered_Q in zip(parts, answered):
            for name, used in part.used.items():
                spent.setdefault(name, []).append(used[answered_Q])
        # A policy costs nothing on a set that it did not answer.
        questions = int(sum(answered_Q.sum() for answered_Q in answered))
        per_answer = {
            name: np.nansum(np.concatenate(used), axis=0) / max(1, questions)
            for name, used in spent.items()
        }
        label = _joined([part.label for part in parts])
        figures.append(
            Figures(
                replace(system, label=label),
                micro[index],
                macro[index],
                _least([leads[single, index] for single in singles]),
                sum(map(len, answered)) - questions,
                float(sum(used[1] for used in per_answer.values())),
                _money(per_answer, prices),
                float(mean_present(np.concatenate([part.seconds_Q for part in parts]))),
            )
        )
    return figures


def _joined(labels: Sequence[str]) -> str:
    """One label for all sets: ``vote of 2 to 8``, ``by confidence or agreement``."""
    words: list[str] = []
    for of_sets in zip(*(label.split(" ") for label in labels)):
        different = list(dict.fromkeys(of_sets))
        if len(different) > 1 and all(word.isdecimal() for word in different):
            words.append(f"{min(map(int, different))} to {max(map(int, different))}")
        else:
            words.append(" or ".join(different))
    return " ".join(words)


def differences(
    sets: Sets, rows: Sequence[Figures], *, resamples: int, seed: int
) -> dict[tuple[str, str], Resampled]:
    """(first, second) -> how much the second row's average is above the first's, paired by the
    questions that both answered, for every pair of rows that are no oracles. ``rows`` are the
    figures of the sets, by :func:`measure_rows`."""
    deployable = [index for index, row in enumerate(rows) if not row.system.oracle]
    pairs = list(combinations(deployable, 2))
    changes = _paired(_scores(sets), pairs, resamples=resamples, seed=seed)
    return {
        (rows[first].system.name, rows[second].system.name): change
        for (first, second), change in zip(pairs, changes)
    }


def _scores(sets: Sets) -> list[Floats]:
    return [np.stack([system.score_Q for system in systems], axis=1) for systems in sets]


def _paired(
    columns: Sequence[Floats], pairs: Sequence[tuple[int, int]], *, resamples: int, seed: int
) -> list[Resampled]:
    """The second column's mean less the first's, over the questions that both have, for each pair
    of columns."""
    if not pairs:
        return []
    firsts, seconds = map(list, zip(*pairs))
    changes = [values_QM[:, seconds] - values_QM[:, firsts] for values_QM in columns]
    return resampled(changes, resamples=resamples, seed=seed)[0]


def _least(leads: Sequence[Resampled]) -> Resampled:
    """The least of several differences, for the data and in each resample."""
    value = np.fmin.reduce([lead.value for lead in leads])
    least_R = np.min([lead.replicates for lead in leads], axis=0)
    return Resampled(float(value), least_R, min(lead.count for lead in leads))


def _greatest(policies: Sequence[Resampled]) -> Resampled:
    """The greatest of several means, for the data and in each resample."""
    value = np.nanmax([policy.value for policy in policies])
    greatest_R = np.max([policy.replicates for policy in policies], axis=0)
    return Resampled(float(value), greatest_R, policies[0].count)


def resampled(
    columns: Sequence[Floats], *, resamples: int, seed: int
) -> tuple[list[Resampled], list[Resampled]]:
    """(micro, macro): the mean of each column over all questions, and over sets of equal weight,
    from the (Q_s, M) values of each of S sets; NaN: not measured."""
    point_SM = np.stack([mean_present(values_QM, axis=0) for values_QM in columns])
    drawn_SRM = np.stack(
        [
            resampled_means(values, resamples=resamples, seed=derive_seed(seed, "set", index))
            for index, values in enumerate(columns)
        ]
    )
    count_SM = np.stack([(~np.isnan(values_QM)).sum(axis=0) for values_QM in columns])
    share_SM = ratio(count_SM, count_SM.sum(axis=0))
    micro: list[Resampled] = []
    macro: list[Resampled] = []
    for m, count in enumerate(count_SM.sum(axis=0).tolist()):
        share_S1 = share_SM[:, m, None]
        measured_S = count_SM[:, m] > 0
        drawn_SR = drawn_SRM[measured_S, :, m]
        whole_R = (share_S1[measured_S] * drawn_SR).sum(axis=0) if count else drawn_SRM[0, :, m]
        each_R = drawn_SR.mean(axis=0) if count else whole_R
        weighted = (share_SM[measured_S, m] * point_SM[measured_S, m]).sum() if count else np.nan
        micro.append(Resampled(float(weighted), whole_R, count))
        macro.append(Resampled(float(mean_present(point_SM[:, m])), each_R, count))
    return micro, macro


def _money(per_answer: Mapping[str, Floats], prices: Prices) -> float | None:
    if not prices:
        return None
    return float(sum(used @ as_floats(prices[name]) for name, used in per_answer.items()) / 1000)


@dataclass(frozen=True)
class PassAtK:
    """Unbiased pass@k of every policy and of the team."""

    policies: Mapping[str, Sequence[Resampled]]
    """Policy -> pass@1 .. pass@N."""
    team: Sequence[Resampled]
    """Team Pass@k, k of each policy (CoRe, arXiv:2601.21600), k = 1 .. N. This and the
    following fields are empty if scores are not binary."""
    control: Sequence[Resampled]
    """The best single policy with as many candidates, for every k with enough samples."""
    gain: Sequence[Resampled]
    """Team minus control."""


def passes(sets: Sequence[Mapping[str, Responses]], *, resamples: int, seed: int) -> PassAtK:
    """Pass@k over all questions of all sets."""
    policies = list(sets[0])
    samples = min(responses.samples for answered in sets for responses in answered.values())
    binary = are_binary(sets)
    each_k = range(1, samples + 1)
    # The columns of every set; the team's have no policy.
    keys: list[tuple[str | None, int]] = [(name, k) for name in policies for k in each_k]
    if binary:
        keys += [(None, k) for k in each_k]
    column = {key: index for index, key in enumerate(keys)}
    columns: list[Floats] = []
    for answered in sets:
        correct = {name: responses.correct_QN for name, responses in answered.items()}
        values = [
            team_pass_at_k(correct, k) if name is None else pass_at_k(correct[name], k)
            for name, k in keys
        ]
        columns.append(np.stack(values, axis=1))
    micro, _ = resampled(columns, resamples=resamples, seed=seed)
    # Column of the team -> those of single policies: pass@(kM) of one of M policies has as many
    # candidates as k samples of each.
    matched = {
        column[None, k]: [column[name, k * len(policies)] for name in policies]
        for k in range(1, samples // len(policies) + 1)
        if binary
    }
    pairs = [(single, team) for team, singles in matched.items() for single in singles]
    leads = dict(zip(pairs, _paired(columns, pairs, resamples=resamples, seed=seed)))
    return PassAtK(
        policies={name: [micro[column[name, k]] for k in each_k] for name in policies},
        team=[micro[column[None, k]] for k in each_k] if binary else [],
        control=[_greatest([micro[single] for single in singles]) for singles in matched.values()],
        gain=[
            _least([leads[single, team] for single in singles]) for team, singles in matched.items()
        ],
    )


def are_binary(sets: Sequence[Mapping[str, Responses]]) -> bool:
    """Whether every score is 0 or 1."""
    return all(
        is_binary(responses.correct_QN) for answered in sets for responses in answered.values()
    )


@dataclass(frozen=True)
class Pair:
    """How far the errors of two policies differ, with one response each."""

    first: str
    second: str
    measured: Mapping[str, Resampled]
    """Keys: fields of :class:`coterie.evaluation.metrics.complementarity.Complementarity`."""


def pairs(sets: Sequence[Mapping[str, Responses]], *, resamples: int, seed: int) -> list[Pair]:
    """The decomposition of every pair of policies (CoRe, arXiv:2601.21600, Thm 4.1)."""
    decompositions: list[Pair] = []
    for first, second in combinations(sets[0], 2):
        tables = [
            joint_table(mean_at_n(a[first].correct_QN), mean_at_n(a[second].correct_QN))
            for a in sets
        ]
        micro, _ = resampled(tables, resamples=resamples, seed=seed)
        point = vars(complementarity(*(mean.value for mean in micro)))
        drawn = vars(complementarity(*(mean.replicates for mean in micro)))
        decompositions.append(
            Pair(
                first,
                second,
                {n: Resampled(float(point[n]), drawn[n], micro[0].count) for n in point},
            )
        )
    return decompositions
