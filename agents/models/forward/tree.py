"""Rows as paths in a tree of contexts, so that shared prefixes are computed once.

Legend: B rows that differ from all others, T positions, S nodes (distinct contexts), Q queries of
one row, M chosen nodes, N scored positions of all rows.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class Queries:
    """Nodes with queries, each assigned to one row whose path contains it."""

    node_M: Ints
    slot_M: Ints
    """Flattened index into (B, Q) of each node's query."""
    index_BQ: Ints
    """The inverse: index into M of each slot; 0 for empty slots."""
    position_BQ: Ints
    """Position of each query, the last one that it sees; 0 for empty slots."""


@dataclass(frozen=True)
class Tree:
    """Example::

    rows      5 6 7        nodes   0:5  1:6  2:7  3:8
              5 6 8        paths   0 1 2
                                   0 1 3
    """

    ids_S: Ints
    position_S: Ints
    path_BT: Ints
    """Nodes of each row; 0 past its end."""
    every: Queries
    """All nodes."""
    scored: Queries
    """Nodes whose next token is scored in some row."""
    scored_N: Ints
    """Index into ``scored.node_M`` of each scored position, row by row."""


def build(ids_BT: Ints, mask_BT: Bools) -> Tree:
    """Build the tree of rows (B, T), each up to its last scored position.

    ``mask_BT`` (B, T - 1) is true where the token after a position is scored, at least once.
    """
    columns_T = np.arange(mask_BT.shape[1])
    length_B = np.where(mask_BT, columns_T + 1, 0).max(1)
    within_BT = columns_T < length_B[:, None]
    # -1 past a row's end equals no token of another row.
    rows_BT = np.where(within_BT, ids_BT[:, :-1], -1)
    order_B = np.lexsort(rows_BT.T[::-1])
    rows_BT, within_BT = rows_BT[order_B], within_BT[order_B]
    # In sorted order a row shares most with its predecessor; nodes from their first difference on
    # are new.
    new_BT = within_BT.copy()
    new_BT[1:] &= np.logical_or.accumulate(rows_BT[1:] != rows_BT[:-1], axis=1)
    number_BT = np.cumsum(new_BT.ravel()).reshape(new_BT.shape) - 1
    origin_BT = np.maximum.accumulate(np.where(new_BT, np.arange(len(new_BT))[:, None], 0), axis=0)
    path_BT = np.where(within_BT, np.take_along_axis(number_BT, origin_BT, axis=0), 0)

    scored_S = np.zeros(int(new_BT.sum()), np.bool_)
    scored_S[path_BT[mask_BT[order_B]]] = True
    given_BT = np.empty_like(path_BT)
    given_BT[order_B] = path_BT
    scored_N = (np.cumsum(scored_S) - 1)[given_BT[mask_BT]]

    distinct = new_BT.any(1)
    new_BT, path_BT = new_BT[distinct], path_BT[distinct]
    row_S, position_S = np.nonzero(new_BT)
    return Tree(
        ids_S=rows_BT[distinct][row_S, position_S],
        position_S=position_S,
        path_BT=path_BT,
        every=_queries(new_BT, path_BT),
        scored=_queries(new_BT & scored_S[path_BT], path_BT),
        scored_N=scored_N,
    )


def _queries(chosen_BT: Bools, path_BT: Ints) -> Queries:
    width = int(chosen_BT.sum(1).max())
    row_M, position_M = np.nonzero(chosen_BT)
    slot_M = row_M * width + (np.cumsum(chosen_BT, 1) - 1)[row_M, position_M]
    index_BQ = np.zeros((len(chosen_BT), width), np.int64)
    position_BQ = np.zeros_like(index_BQ)
    index_BQ.reshape(-1)[slot_M] = np.arange(len(slot_M))
    position_BQ.reshape(-1)[slot_M] = position_M
    return Queries(path_BT[row_M, position_M], slot_M, index_BQ, position_BQ)
