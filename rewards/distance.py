"""How different two traces are: by meaning and by the operations that they use."""

import re
from collections.abc import Sequence
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from coterie.datatypes import UserError

# B traces of one question (or any texts), D dimensions of the embedding, C classes of operations


# Equal texts must tie exactly wherever they stand in the batch; matrix products round differently
# by position, far below this many decimals.
_DECIMALS = 9

TABLE_VERSION = 1
"""Rises with every change of the table: distances under two versions are not comparable."""

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


def hybrid_distance(
    embeddings_BD: npt.ArrayLike | None,
    signatures_BC: npt.ArrayLike,
    *,
    semantic: float = 0.6,
    structural: float = 0.4,
) -> npt.NDArray[np.float64]:
    """(B, B) ``semantic (1 - cos) + structural (1 - Jaccard)`` (CoRe, arXiv:2601.21600, eq. 12).

    Symmetric, zero on the diagonal, within [0, 2 semantic + structural] because a cosine can be
    negative: [0, 1.6] under the defaults. Rows need not be unit vectors; where both rows
    are zero vectors (or both signatures empty) that part is 0, where exactly one is, it is 1.

    ``embeddings_BD`` may be None only where ``semantic`` is 0.
    """
    signatures_BC = np.asarray(signatures_BC, dtype=bool)
    distance_BB = structural * _jaccard_distance(signatures_BC)
    if semantic:
        if embeddings_BD is None:
            raise UserError(
                f"A distance with semantic weight {semantic} needs embeddings: choose an encoder "
                "or set the semantic weight to 0."
            )
        embeddings_BD = np.asarray(embeddings_BD, dtype=np.float64)
        if len(embeddings_BD) != len(signatures_BC):
            raise ValueError(f"{len(embeddings_BD)} embeddings, {len(signatures_BC)} signatures")
        distance_BB += semantic * _cosine_distance(embeddings_BD)
    distance_BB = np.round((distance_BB + distance_BB.T) / 2, _DECIMALS)
    np.fill_diagonal(distance_BB, 0.0)
    return distance_BB


def signatures(texts: Sequence[str]) -> npt.NDArray[np.bool_]:
    """(B, 18) which classes of :data:`OPERATIONS` occur in each text, in the table's order.

    XML tags are no part of a text's operations. Time is linear in the length of the texts.
    """
    return np.array([_signature(text) for text in texts], dtype=bool).reshape(-1, len(_COMPILED))


def _cosine_distance(embeddings_BD: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    norm_B = np.linalg.norm(embeddings_BD, axis=1)
    zero_B = norm_B == 0
    unit_BD = embeddings_BD / np.where(zero_B, 1.0, norm_B)[:, None]
    distance_BB = 1.0 - np.clip(unit_BD @ unit_BD.T, -1.0, 1.0)
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
