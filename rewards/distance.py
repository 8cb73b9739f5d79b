"""How different two traces are: by meaning and by the operations that they use."""

# B traces of one question, D dimensions of the embedding, C classes of operations

import numpy as np
import numpy.typing as npt

from vocabulary import UserError

# Equal texts must tie exactly wherever they stand in the batch; matrix products round differently
# by position, far below this many decimals.
_DECIMALS = 9


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
