"""How often a row is read again, and that it is told the same whatever else is asked."""

import dataclasses

import numpy as np
import pytest
import torch

from coterie.algorithms import Learner, LearnerSettings, get
from coterie.algorithms.algorithm import Distillation

HINT = np.array([7, 3, 11, 5, 2])


def reread(make_rows):
    """Eight rows, of which three are read again."""
    rows = [dataclasses.replace(row, reread_after=HINT) for row in make_rows(3)]
    return rows + make_rows(8)[3:]


def learner(model, likeliest: int) -> Learner:
    settings = Distillation(1.0, likeliest=likeliest)
    algorithm = dataclasses.replace(get("gspo"), distillation=settings)
    return Learner(model, algorithm, LearnerSettings(), temperature=0.7)


@pytest.mark.parametrize("likeliest", [0, 8])
def test_a_row_is_read_once_behind_each_context(
    tiny, make_rows, monkeypatch, likeliest: int
) -> None:
    model, rows, read = tiny(), reread(make_rows), []
    states = model.scored_states

    def counted(ids_BT, mask_BT):
        read.append(len(ids_BT))
        return states(ids_BT, mask_BT)

    monkeypatch.setattr(model, "scored_states", counted)
    rereader = learner(model, likeliest)
    rereader._rereading(rows, None, 0.0)
    # After the hint, and after its own prompt.
    assert sum(read) == 3 + 3
    old = rereader._snapshot(rows)
    read.clear()
    rereader._rereading(rows, old, 0.0)
    assert sum(read) == 3


def test_the_bonus_of_sampled_tokens_is_the_same_with_and_without_the_likeliest(
    tiny, make_rows
) -> None:
    rows = reread(make_rows)
    bonuses = [learner(tiny(), k)._rereading(rows, None, 0.0)[1] for k in (0, 8)]
    assert bonuses[0].keys() == bonuses[1].keys() == {0, 1, 2}
    for place, value in bonuses[0].items():
        torch.testing.assert_close(value, bonuses[1][place])
        assert float(value.abs().max()) > 0.1
