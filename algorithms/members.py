"""Who is compared: an agent of an episode, however many rows it has.

An agent whose context began anew has one row a context, each with its whole reward. It is one
member of its group; counted once a row, it would weigh the more the more often it began anew.

Legend: N rows, M members.
"""

from collections.abc import Hashable, Iterable, Sequence

import numpy as np
import numpy.typing as npt

from vocabulary import Trajectory

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.intp]


def numbered(names: Iterable[Hashable]) -> Ints:
    """The names as numbers from 0, in order of appearance."""
    number: dict[Hashable, int] = {}
    return np.array([number.setdefault(name, len(number)) for name in names], np.intp)


def members(rows: Sequence[Trajectory], key: str) -> Ints:
    """(N,) which member of its group under ``key`` each row is, in order of appearance."""
    return numbered((row.groups[key], row.member or place) for place, row in enumerate(rows))


def first_rows(member_N: Ints) -> Ints:
    """(M,) where each member's first row is."""
    return np.unique(member_N, return_index=True)[1]


def mean_by_member(value_N: Floats, member_N: Ints) -> Floats:
    """(M, ...) means over each member's rows, whose rewards a penalty on length may tell apart."""
    count_M = np.bincount(member_N)
    total_M = np.zeros((len(count_M), *value_N.shape[1:]))
    np.add.at(total_M, member_N, value_N)
    return (total_M.T / count_M).T
