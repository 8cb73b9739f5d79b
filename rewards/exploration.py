"""Rewards for a trace's distance from the other traces of its question, or of its partners."""

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import Literal, get_args

import numpy as np
import numpy.typing as npt

from coterie.datatypes import UserError

# B traces of one question (or any texts), D dimensions of the embedding, C classes of operations


# Equal texts must tie exactly wherever they stand in the batch; matrix products round differently
# by position, far below this many decimals.
_DECIMALS = 9

# CoRe (arXiv:2601.21600) names the classes and what triggers them, the symbol of the operation or
# its family of words; the patterns are ours. None repeats inside a repetition and every symbol
# looks at a bounded neighbourhood, so that each search is linear in the text.
_LEFT = r"(?:[\d)\]}]|\b[a-z]) ?"  # what stands before an infix sign
_RIGHT = r" ?(?:[\d(\[{\\]|[a-z]\b)"  # and after it

OPERATIONS: dict[str, str] = {
    "addition": r"\+|\b(?:add(?:s|ed|ing|itions?)?|sum(?:s|med|ming)?|plus|totals?)\b",
    "subtraction": _LEFT + r"[-−]" + _RIGHT + r"|\b(?:subtract(?:s|ed|ing|ions?)?|minus"
    r"|differences?|take(?:s|n)? away)\b",
    "multiplication": r"[×·]|\\(?:times|cdot)\b|"
    + _LEFT
    + r"\*(?!\*)"
    + _RIGHT
    + r"|\b(?:multipl(?:y|ies|ied|ying|ications?)|times|products?)\b",
    "division": r"÷|\\div\b|" + _LEFT + r"/" + _RIGHT + r"|\b(?:divid(?:e|es|ed|ing)|divisions?"
    r"|quotients?|per)\b",
    "equation": r"=|\b(?:equations?|equals?)\b",
    "comparison": r"[<>≤≥]|\\(?:leq?|geq?|lt|gt)\b|\b(?:greater|less|larger|smaller|fewer"
    r"|more than|at least|at most|compar(?:e|es|ed|ing|isons?)|inequalit(?:y|ies))\b",
    "percentage": r"%|\bpercent(?:s|ages?)?\b",
    "fraction": r"\\[dt]?frac\b|\\[dt]?frac[\d{]|\d ?/ ?\d|\b(?:fractions?|numerators?"
    r"|denominators?|half|halves)\b",
    "square": r"²|(?:\^|\*\*) ?\{?2(?!\d)|\bsquar(?:e|es|ed|ing)\b",
    "root": r"√|\\sqrt|\b(?:roots?|sqrt|radicals?)\b",
    "substitution": r"\b(?:substitut(?:e|es|ed|ing|ions?)|plug(?:s|ged|ging)?"
    r"|replac(?:e|es|ed|ing))\b",
    "simplification": r"\b(?:simplif(?:y|ies|ied|ying|ications?)|reduc(?:e|es|ed|ing)"
    r"|cancel(?:s|led|ed|ling|ing)?)\b",
    "factoring": r"\bfactor(?:s|ed|ing|i[sz](?:e|es|ed|ing|ations?))?\b",
    "expansion": r"\b(?:expan(?:d|ds|ded|ding|sions?)|distribut(?:e|es|ed|ing|ive))\b",
    "isolation": r"\b(?:isolat(?:e|es|ed|ing|ions?)|rearrang(?:e|es|ed|ing)"
    r"|solv(?:e|es|ed|ing) for)\b",
    "verification": r"\b(?:verif(?:y|ies|ied|ying|ications?)|check(?:s|ed|ing)?"
    r"|confirm(?:s|ed|ing)?|validat(?:e|es|ed|ing))\b",
    "case_analysis": r"\b(?:cases?|if|when|scenarios?)\b",
    "induction": r"\b(?:patterns?|sequences?|induct(?:ion|ive|ively))\b",
}
"""Class name -> trigger in lower-case text."""

_COMPILED = tuple(re.compile(pattern) for pattern in OPERATIONS.values())
# A tag begins with a letter: "x < 3 and y > 2" has none.
_TAG = re.compile(r"</?[A-Za-z_][\w.-]*(?:\s[^<>]*)?>")
_SEMANTIC, _STRUCTURAL = 0.6, 0.4
"""Weights of the two parts of a distance."""


def hybrid_distance(
    embeddings_BD: npt.ArrayLike, signatures_BC: npt.ArrayLike
) -> npt.NDArray[np.float64]:
    """(B, B) ``0.6 (1 - cos) + 0.4 (1 - Jaccard)`` (CoRe, arXiv:2601.21600, eq. 12).

    Symmetric, zero on the diagonal, within [0, 1.6] because a cosine can be negative. Rows need not
    be unit vectors; where both rows are zero vectors (or both signatures empty) that part is 0,
    where exactly one is, it is 1.
    """
    signatures_BC = np.asarray(signatures_BC, dtype=bool)
    embeddings_BD = np.asarray(embeddings_BD, dtype=np.float64)
    if len(embeddings_BD) != len(signatures_BC):
        raise ValueError(f"{len(embeddings_BD)} embeddings, {len(signatures_BC)} signatures")
    distance_BB = _STRUCTURAL * _jaccard_distance(signatures_BC)
    distance_BB += _SEMANTIC * _cosine_distance(embeddings_BD)
    distance_BB = np.round((distance_BB + distance_BB.T) / 2, _DECIMALS)
    np.fill_diagonal(distance_BB, 0.0)
    return distance_BB


def signatures(texts: Sequence[str]) -> npt.NDArray[np.bool_]:
    """(B, 18) which classes of :data:`OPERATIONS` occur in each text, in the table's order.

    XML tags are no part of a text's operations. Time is linear in the length of the texts.
    """
    return np.array([_signature(text) for text in texts], dtype=bool).reshape(-1, len(_COMPILED))


def cosines(embeddings_BD: npt.ArrayLike) -> npt.NDArray[np.float64]:
    """(B, B) cosines of all pairs; 0 with a row of zeros."""
    rows_BD = np.asarray(embeddings_BD, dtype=np.float64)
    if not len(rows_BD):
        return np.zeros((0, 0))
    norm_B = np.linalg.norm(rows_BD, axis=1)
    unit_BD = rows_BD / np.where(norm_B > 0, norm_B, 1.0)[:, None]
    return np.clip(unit_BD @ unit_BD.T, -1.0, 1.0)


def _cosine_distance(embeddings_BD: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    zero_B = np.linalg.norm(embeddings_BD, axis=1) == 0
    distance_BB = 1.0 - cosines(embeddings_BD)
    distance_BB[np.ix_(zero_B, zero_B)] = 0.0
    return distance_BB


def _jaccard_distance(signatures_BC: npt.NDArray[np.bool_]) -> npt.NDArray[np.float64]:
    counts_BC = signatures_BC.astype(np.float64)
    shared_BB = counts_BC @ counts_BC.T
    size_B = counts_BC.sum(axis=1)
    union_BB = size_B[:, None] + size_B[None, :] - shared_BB
    # Two empty signatures are equal.
    return np.where(union_BB > 0, 1.0 - shared_BB / np.maximum(union_BB, 1.0), 0.0)


# A cold trace is compared twice: when a teacher is chosen, and again at the end.
@lru_cache(maxsize=1024)
def _signature(text: str) -> tuple[bool, ...]:
    bare = _TAG.sub(" ", text).lower()
    return tuple(pattern.search(bare) is not None for pattern in _COMPILED)


# B traces of one question, S strategies inside one trace


ExplorationMode = Literal["literal", "leave-one-out", "mean-pairwise"]
StopReason = Literal["margin", "cap", "exhausted"]


def greedy_set(
    distance_BB: npt.ArrayLike, score_B: npt.ArrayLike, *, margin: float, cap: int
) -> tuple[list[int], StopReason]:
    """Indices of a diverse set in the order of their choice, and why it grew no further.

    It starts with the highest score and takes the trace with the largest minimum distance to the
    set while that distance is at least ``margin``; ties go to the earlier trace, so that any two
    members are ``margin`` apart (CoRe, arXiv:2601.21600, Prop. B.1). ``"cap"`` says that the cap
    kept a trace out, ``"exhausted"`` that none was left.
    """
    distance_BB = np.asarray(distance_BB, dtype=np.float64)
    score_B = np.asarray(score_B, dtype=np.float64)
    if cap < 1:
        raise UserError(f"The exploration cap is {cap}: it must be at least 1.")
    if not len(score_B):
        return [], "exhausted"
    chosen = [int(np.argmax(score_B))]
    outside_B = np.ones(len(score_B), dtype=bool)
    outside_B[chosen] = False
    nearest_B = distance_BB[chosen[0]].copy()
    while outside_B.any():
        farthest = int(np.argmax(np.where(outside_B, nearest_B, -np.inf)))
        if nearest_B[farthest] < margin:
            return chosen, "margin"
        if len(chosen) == cap:
            return chosen, "cap"
        chosen.append(farthest)
        outside_B[farthest] = False
        nearest_B = np.minimum(nearest_B, distance_BB[farthest])
    return chosen, "exhausted"


def exploration(
    distance_BB: npt.ArrayLike,
    score_B: npt.ArrayLike,
    *,
    mode: ExplorationMode,
    margin: float,
    cap: int,
    pool_B: npt.ArrayLike | None = None,
    eligible_B: npt.ArrayLike | None = None,
) -> npt.NDArray[np.float64]:
    """(B,) unweighted reward for distance from the traces of the same pool.

    ``literal``: nothing for members of the greedy set, ``max(0, min_S d - margin)`` for the others
    (CoRe, arXiv:2601.21600, eq. 3). It is zero everywhere unless the cap binds, because a set that
    stops at the margin leaves only traces nearer than the margin.
    ``leave-one-out``: ``max(0, min d - margin)`` over all other traces of the pool.
    ``mean-pairwise``: ``max(0, mean d - margin)`` over them.

    Args:
        distance_BB: of all traces of a question.
        score_B: the exploitation reward; matters to ``literal`` only, as ``cap`` does.
        mode: one of the three.
        margin: distance that earns nothing.
        cap: most members of the greedy set.
        pool_B: the pool of each trace, one pool if None; a single trace in its pool earns 0.
        eligible_B: whether each trace may earn the reward; all traces if None. Distances count
            the other traces as well.

    Raises:
        UserError: the mode is unknown, or the cap below 1.
    """
    if mode not in get_args(ExplorationMode):
        known = ", ".join(get_args(ExplorationMode))
        raise UserError(f"Unknown exploration mode {mode!r}; choose one of {known}.")
    distance_BB = np.asarray(distance_BB, dtype=np.float64)
    score_B = np.asarray(score_B, dtype=np.float64)
    pool_B = np.zeros(len(score_B)) if pool_B is None else np.asarray(pool_B)
    reward_B = np.zeros(len(score_B))
    for pool in np.unique(pool_B):
        members = np.flatnonzero(pool_B == pool)
        within = distance_BB[np.ix_(members, members)]
        if mode == "literal":
            reward_B[members] = _outside(within, score_B[members], margin, cap)
        elif len(members) > 1:
            reward_B[members] = np.maximum(0.0, _to_others(within, mode) - margin)
    if eligible_B is not None:
        reward_B[~np.asarray(eligible_B, dtype=bool)] = 0.0
    return reward_B


def cross_model(
    distance_BB: npt.ArrayLike,
    exploit_B: npt.ArrayLike,
    role_B: npt.ArrayLike,
    round_B: npt.ArrayLike,
    *,
    threshold: float,
    margin: float,
    requires_correct_B: npt.ArrayLike | None = None,
) -> npt.NDArray[np.float64]:
    """(B,) unweighted ``q_j max(0, min d - margin)`` over the traces of partner ``j`` in the same
    round, where ``q_j`` is 1 if the best of them earned an exploitation reward of at least
    ``threshold`` (CoRe, arXiv:2601.21600, eq. 6); with several partners their mean.

    A partner without a trace in the round is no partner there.

    Args:
        distance_BB: of all traces of a question.
        exploit_B: the exploitation reward.
        role_B: the role that wrote each trace.
        round_B: the round of each trace.
        threshold: exploitation reward from which a partner's traces count.
        margin: distance that earns nothing.
        requires_correct_B: correctness; if given, wrong traces earn 0. The published form pays
            them too.
    """
    distance_BB = np.asarray(distance_BB, dtype=np.float64)
    exploit_B = np.asarray(exploit_B, dtype=np.float64)
    role_B, round_B = np.asarray(role_B), np.asarray(round_B)
    reward_B = np.zeros(len(exploit_B))
    partners_B = np.zeros(len(exploit_B))
    for a_round in np.unique(round_B):
        for partner in np.unique(role_B[round_B == a_round]):
            theirs = np.flatnonzero((round_B == a_round) & (role_B == partner))
            ours = np.flatnonzero((round_B == a_round) & (role_B != partner))
            partners_B[ours] += 1
            if exploit_B[theirs].max() >= threshold:
                nearest = distance_BB[np.ix_(ours, theirs)].min(axis=1)
                reward_B[ours] += np.maximum(0.0, nearest - margin)
    reward_B /= np.maximum(partners_B, 1)
    if requires_correct_B is not None:
        reward_B[~np.asarray(requires_correct_B, dtype=bool)] = 0.0
    return reward_B


def strategy_ratio(distance_SS: npt.ArrayLike, *, margin: float, cap: int) -> float:
    """Share of a trace's strategies in their greedy set, which starts with the first; 0 with fewer
    than two (older research code of CoRe, arXiv:2601.21600)."""
    distance_SS = np.asarray(distance_SS, dtype=np.float64)
    count = len(distance_SS)
    if count < 2:
        return 0.0
    chosen, _ = greedy_set(distance_SS, np.zeros(count), margin=margin, cap=cap)
    return len(chosen) / count


def _outside(
    distance_BB: npt.NDArray[np.float64],
    score_B: npt.NDArray[np.float64],
    margin: float,
    cap: int,
) -> npt.NDArray[np.float64]:
    chosen, _ = greedy_set(distance_BB, score_B, margin=margin, cap=cap)
    # Members are at distance 0 from the set, so they earn nothing.
    return np.maximum(0.0, distance_BB[:, chosen].min(axis=1) - margin)


def _to_others(
    distance_BB: npt.NDArray[np.float64], mode: ExplorationMode
) -> npt.NDArray[np.float64]:
    others_BB = ~np.eye(len(distance_BB), dtype=bool)
    if mode == "leave-one-out":
        return distance_BB.min(axis=1, where=others_BB, initial=np.inf)
    return distance_BB.mean(axis=1, where=others_BB)
