"""From rewards to advantages: who is compared with whom, and on which scale.

Groups consist of members. A member is one agent of one episode. It has one row for each context
that it began, and every row carries the member's whole reward: averaging over rows would give more
weight to members with more contexts.

Legend: N rows, M members, K groups. All arrays are float64 on the CPU.
"""

from collections import defaultdict
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Literal

import numpy as np
import numpy.typing as npt

from coterie.algorithms.algorithm import Algorithm
from coterie.algorithms.turn_credit import TurnBonus, turn_bonus
from coterie.cli.plugins import load
from coterie.datatypes import Trajectory, UserError, raised

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.intp]
Bools = npt.NDArray[np.bool_]

# Rewards are sums of a few float64 terms: a spread below this, relative to their size, is rounding.
_ROUNDING = 1e-9


@dataclass(frozen=True)
class Credit:
    """The advantage of each row of a step."""

    advantage_B: Floats
    """One number per trajectory, in the order of the input; 0 for rows that are not trainable."""
    stats: dict[str, float]
    """``groups``, ``group_size`` (mean), ``singletons`` (groups of one), ``zero_variance`` (share
    of groups of two and more with equal rewards), ``reward``, ``reward_std`` (population)."""
    averages: Mapping[str, float] = field(default_factory=dict)
    """Role -> the running average of its rewards after the step, for baseline ``role-average``."""
    turn_bonus: TurnBonus = field(default_factory=dict)
    """Index of a trajectory -> (turns,) what the tokens of each turn add to its advantage; only for
    trajectories with turn rewards."""


@dataclass(frozen=True)
class Groups:
    """Statistics of the rewards of each group."""

    count_K: Ints
    mean_K: Floats
    varies_K: Bools
    """Whether the group's rewards differ by more than rounding; false for groups of one."""


def group_statistics(reward_N: Floats, group_N: Ints) -> Groups:
    """Return count, mean and whether rewards differ; groups are numbered from 0."""
    size = int(group_N.max(initial=-1)) + 1
    count_K = np.bincount(group_N, minlength=size)
    mean_K = np.bincount(group_N, weights=reward_N, minlength=size) / np.maximum(count_K, 1)
    low_K, high_K = np.full(size, np.inf), np.full(size, -np.inf)
    np.minimum.at(low_K, group_N, reward_N)
    np.maximum.at(high_K, group_N, reward_N)
    size_K = np.maximum(1.0, np.maximum(np.abs(low_K), np.abs(high_K)))
    return Groups(count_K, mean_K, high_K - low_K > _ROUNDING * size_K)


def centre(
    reward_N: Floats,
    group_N: Ints,
    baseline: Literal["group-mean", "leave-one-out", "role-average"],
) -> Floats:
    """Rewards less their baseline; exactly 0 in groups of one and where all rewards are equal."""
    groups = group_statistics(reward_N, group_N)
    difference_N = reward_N - groups.mean_K[group_N]
    if baseline == "leave-one-out":
        # R_i - mean_{j != i} R_j = G / (G - 1) (R_i - mean R)   RLOO, arXiv:2402.14740
        count_K = groups.count_K
        difference_N = difference_N * (count_K / np.maximum(count_K - 1, 1))[group_N]
    return np.where(groups.varies_K[group_N], difference_N, 0.0)


def scale_by_group(
    difference_N: Floats, reward_N: Floats, group_N: Ints, *, ddof: int, epsilon: float
) -> Floats:
    """Divide differences by (standard deviation of the group's rewards + epsilon).

    ``--algo.scale none`` leaves this division out, as Dr. GRPO does.
    """
    groups = group_statistics(reward_N, group_N)
    square_N = (reward_N - groups.mean_K[group_N]) ** 2
    total_K = np.bincount(group_N, weights=square_N, minlength=len(groups.count_K))
    std_K = np.sqrt(total_K / np.maximum(groups.count_K - ddof, 1))
    # Differences are 0 without variance, so any divisor will do.
    divisor_K = np.where(groups.varies_K, std_K + epsilon, 1.0)
    return difference_N / divisor_K[group_N]


def scale_by_batch(difference_N: Floats, group_N: Ints, *, ddof: int, epsilon: float) -> Floats:
    """Divide differences by (their standard deviation over the batch + epsilon).

    Source: REINFORCE++, arXiv:2501.03262. The divisor is the root of the mean square. Differences
    from group means have mean 0, so it is their standard deviation. Differences from a running
    average need not; where all of them are equal, it does not vanish. Groups of one do not count.
    """
    compared_N = np.bincount(group_N)[group_N] > 1 if len(group_N) else np.zeros(0, np.bool_)
    rows = int(compared_N.sum())
    if rows <= ddof or not difference_N.any():
        return np.zeros_like(difference_N)
    std = np.sqrt((difference_N[compared_N] ** 2).sum() / (rows - ddof))
    return difference_N / (std + epsilon)


def advantages(reward_N: Floats, group_N: Ints, algorithm: Algorithm) -> Floats:
    """Return advantages (N,).

    Args:
        reward_N: rewards.
        group_N: the group of each reward, numbered from 0.
        algorithm: baseline and scale, or a custom function.

    Raises:
        UserError: ``algorithm.advantage`` fails or returns something other than advantages.
    """
    if algorithm.advantage and len(reward_N):
        return custom_advantage(algorithm.advantage, reward_N, group_N)
    difference_N = centre(reward_N, group_N, algorithm.baseline)
    spread = {"ddof": algorithm.ddof, "epsilon": algorithm.epsilon}
    match algorithm.scale:
        case "group-std":
            return scale_by_group(difference_N, reward_N, group_N, **spread)
        case "batch-std":
            return scale_by_batch(difference_N, group_N, **spread)
        case "none":
            return difference_N


def custom_advantage(path: str, reward_N: Floats, group_N: Ints) -> Floats:
    """Return advantages (N,) from the custom function at ``path`` (``pkg.module:function``).

    Raises:
        UserError: the function cannot be loaded, fails, or does not return N finite numbers.
    """
    title = f"algo.advantage {path!r}"
    function = load(path, title)
    if not callable(function):
        raise UserError(f"{title} is a {type(function).__name__}; it must be a function")
    try:
        advantage_N = np.asarray(function(reward_N.copy(), group_N.copy()), np.float64)
    except (Exception, SystemExit) as error:
        raise UserError(f"{title} {raised(error)}") from error
    # The loss has them in float32.
    most = np.finfo(np.float32).max
    if advantage_N.shape != reward_N.shape or not (np.abs(advantage_N) <= most).all():
        shown = " ".join(repr(advantage_N).split())[:200]
        raise UserError(
            f"{title} gave {shown}; it must give {len(reward_N)} finite numbers, one for "
            "each reward"
        )
    return advantage_N


def advantages_of_terms(term_NK: Floats, group_N: Ints, algorithm: Algorithm) -> Floats:
    """Return advantages (N,) from K reward terms: each term is centred and scaled within its group,
    and the sum is scaled over the batch (GDPO, arXiv:2601.05242)."""
    total_N = sum_of_scaled_terms(term_NK, group_N, algorithm)
    return scale_by_batch(total_N, group_N, ddof=algorithm.ddof, epsilon=algorithm.epsilon)


def sum_of_scaled_terms(term_NK: Floats, group_N: Ints, algorithm: Algorithm) -> Floats:
    """Return the sum (N,) of K reward terms, each centred and scaled within its group; exactly 0
    where they cancel out but for rounding."""
    total_N = np.zeros(len(term_NK))
    for term_N in term_NK.T:
        difference_N = centre(term_N, group_N, algorithm.baseline)
        total_N += scale_by_group(
            difference_N, term_N, group_N, ddof=algorithm.ddof, epsilon=algorithm.epsilon
        )
    return np.where(np.abs(total_N) > _ROUNDING, total_N, 0.0)


def assign_credit(
    trajectories: Sequence[Trajectory],
    key: str,
    algorithm: Algorithm,
    averages: Mapping[str, float] = MappingProxyType({}),
) -> Credit:
    """Assign advantages to all trajectories of a step, grouped by ``trajectory.groups[key]``.

    All rows of a member get the member's advantage. Rows that are not trainable get 0 and enter no
    statistic.

    Args:
        trajectories: the rows of a step.
        key: names the groups within which rewards are compared.
        algorithm: baseline, scale and combination.
        averages: role -> running average of its rewards before the step (default 0), for baseline
            ``role-average``.

    Raises:
        UserError: a row lacks the key, every group has a single member although members are
            compared with each other, or a reward is not finite.
    """
    use = [i for i, t in enumerate(trajectories) if t.trainable]
    # A running average needs no second member to compare with.
    role_average = algorithm.baseline == "role-average"
    needs_peers = not role_average and algorithm.distillation.rewards
    check_groups(trajectories, key, needs_peers=needs_peers)
    rows = [trajectories[i] for i in use]
    reward_N = np.array([row.reward for row in rows], np.float64)
    if not np.isfinite(reward_N).all():
        bad = rows[int(np.argmin(np.isfinite(reward_N)))]
        raise UserError(
            f"the environment gave {bad.agent} the reward {bad.reward}; rewards must be finite"
        )
    member_N = members(rows, key)
    group_M = number(row.groups[key] for row in rows)[first_rows(member_N)]
    reward_M = mean_by_member(reward_N, member_N)
    stats = _stats(reward_M, group_M)
    role_M = [rows[i].role for i in first_rows(member_N)]

    def compare(value_M: Floats) -> Floats:
        if role_average:
            return over_averages(value_M, role_M, averages, algorithm)
        return advantages(value_M, group_M, algorithm)

    def compare_to_go(value_M: Floats) -> Floats:
        # The running average is one of whole rewards. Add what the role was paid before this turn,
        # on average, so that the two can be compared.
        if role_average:
            role_index_M = number(role_M)
            paid_K = mean_by_member(reward_M - value_M, role_index_M)
            value_M = value_M + paid_K[role_index_M]
        return compare(value_M)

    averages_after = averages
    if role_average:
        averages_after = updated_averages(reward_M, role_M, averages, algorithm.baseline_decay)
        stats |= {f"baseline_{role}": value for role, value in averages_after.items()}
    if algorithm.combine == "normalise-then-sum":
        _check_no_turn_rewards(rows)
        term_MK = mean_by_member(reward_terms(rows), member_N)
        advantage_M = advantages_of_terms(term_MK, group_M, algorithm)
    else:
        advantage_M = compare(reward_M)
    bonus = turn_bonus(rows, member_N, reward_M, compare_to_go)
    advantage_B = np.zeros(len(trajectories))
    if not algorithm.distillation.rewards:
        return Credit(advantage_B, stats, averages_after)
    advantage_B[use] = advantage_M[member_N]
    return Credit(advantage_B, stats, averages_after, {use[i]: value for i, value in bonus.items()})


def over_averages(
    reward_M: Floats, role_M: Sequence[str], averages: Mapping[str, float], algorithm: Algorithm
) -> Floats:
    """Return rewards less the running average of their role before the step, so that no reward is
    compared with itself."""
    difference_M = reward_M - np.array([averages.get(role, 0.0) for role in role_M])
    if algorithm.scale == "none":
        return difference_M
    return scale_by_batch(
        difference_M,
        np.zeros(len(difference_M), np.intp),
        ddof=algorithm.ddof,
        epsilon=algorithm.epsilon,
    )


def updated_averages(
    reward_M: Floats, role_M: Sequence[str], averages: Mapping[str, float], decay: float
) -> dict[str, float]:
    """Return role -> running average after these rewards, in order."""
    after = dict(averages)
    for reward, role in zip(reward_M.tolist(), role_M):
        # b <- decay b + (1 - decay) r   SPIRAL, arXiv:2506.24119
        after[role] = decay * after.get(role, 0.0) + (1 - decay) * reward
    return after


def number(names: Iterable[Hashable]) -> Ints:
    """Number the names from 0 in order of appearance."""
    seen: dict[Hashable, int] = {}
    return np.array([seen.setdefault(name, len(seen)) for name in names], np.intp)


def members(rows: Sequence[Trajectory], key: str) -> Ints:
    """Return the member of each row (N,), numbered in order of appearance. A row without
    ``member`` is a member of its own."""
    return number((row.groups[key], row.member or i) for i, row in enumerate(rows))


def first_rows(member_N: Ints) -> Ints:
    """Return the index (M,) of each member's first row."""
    return np.unique(member_N, return_index=True)[1]


def mean_by_member(value_N: Floats, member_N: Ints) -> Floats:
    """Return means (M, ...) over each member's rows; a length penalty makes their rewards
    differ."""
    count_M = np.bincount(member_N)
    total_M = np.zeros((len(count_M), *value_N.shape[1:]))
    np.add.at(total_M, member_N, value_N)
    return (total_M.T / count_M).T


def with_divergence_penalty(
    trajectories: Sequence[Trajectory], divergence_N: Sequence[float], algorithm: Algorithm
) -> list[Trajectory]:
    """Subtract each agent's divergence from its rewards, as the term ``divergence``. The rows stay
    unchanged if ``algorithm.kl_in_reward`` is 0.

    REINFORCE++ subtracts it token by token and sums from each token on. Earlier tokens have no part
    in a token's expected gradient, so both forms agree in expectation.

    Args:
        trajectories: the rows of a step.
        divergence_N: each row's sum of d = log pi - log pi_ref over its sampled tokens.
        algorithm: its ``kl_in_reward`` is beta.
    """
    if not algorithm.kl_in_reward:
        return list(trajectories)
    owners = [t.member or i for i, t in enumerate(trajectories)]
    total: dict[Hashable, float] = defaultdict(float)
    for member, value in zip(owners, divergence_N):
        total[member] += float(value)
    out = []
    for member, t in zip(owners, trajectories):
        # R = r - beta sum_t d_t   RLOO, arXiv:2402.14740; REINFORCE++, arXiv:2501.03262v1
        out.append(t.with_term("divergence", -algorithm.kl_in_reward * total[member]))
    return out


def reward_terms(rows: Sequence[Trajectory]) -> Floats:
    """Return the weighted reward terms (N, K); 0 where a row lacks a term."""
    names = list(dict.fromkeys(name for row in rows for name in row.reward_terms))
    table = [[row.reward_terms.get(name, 0.0) for name in names] for row in rows]
    return np.array(table, np.float64).reshape(len(rows), len(names))


def _stats(reward_N: Floats, group_N: Ints) -> dict[str, float]:
    groups = group_statistics(reward_N, group_N)
    several_K = groups.count_K > 1
    return {
        "groups": float(len(groups.count_K)),
        "group_size": float(groups.count_K.mean()) if len(groups.count_K) else 0.0,
        "singletons": float((~several_K).sum()),
        "zero_variance": float((~groups.varies_K[several_K]).mean()) if several_K.any() else 0.0,
        "reward": float(reward_N.mean()) if len(reward_N) else 0.0,
        "reward_std": float(reward_N.std()) if len(reward_N) else 0.0,
    }


def _check_no_turn_rewards(rows: Sequence[Trajectory]) -> None:
    if paid := next((row for row in rows if row.turn_rewards), None):
        raise UserError(
            f"{paid.agent} is paid by turns, and algo.combine normalise-then-sum compares the "
            "terms of whole episodes; leave it at sum-then-normalise"
        )


def check_groups(trajectories: Sequence[Trajectory], key: str, *, needs_peers: bool) -> None:
    """Check that rewards can be compared.

    Args:
        trajectories: rows that were played.
        key: names the groups within which rewards are compared.
        needs_peers: whether a group of one teaches nothing.

    Raises:
        UserError: a trainable row lacks the key, or peers are needed and every group has a single
            member.
    """
    for row in trajectories:
        if row.trainable and key not in row.groups:
            known = ", ".join(sorted(row.groups)) or "none"
            raise UserError(f"{row.agent} belongs to no group called {key!r}; known keys: {known}")
    # Failed rows count here: the key is not wrong if all but one member of a group failed.
    groups = {t.member or i: t.groups[key] for i, t in enumerate(trajectories) if key in t.groups}
    if needs_peers and groups and len(set(groups.values())) == len(groups):
        raise UserError(
            f"every group under the key {key!r} has a single row, so there is nothing to compare; "
            "use a coarser key, or more traces per problem"
        )
