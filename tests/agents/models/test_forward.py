"""The learner's forward pass over a tree of contexts equals the model's own, gradients too.

The reference is the model's own forward pass over padded rows, in float64.
"""

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.autograd import gradcheck

from coterie.agents.models.forward import tree
from coterie.agents.models.forward.functions import norm, rotate, swiglu
from coterie.agents.models.handle import ModelHandle
from coterie.agents.models.spec import LoraSpec


def test_rows_that_start_alike_share_nodes() -> None:
    # The second row is the start of the first, the fourth equals the third; 9 is never read: the
    # last token of a row has no successor. Sorted: 5 6 | 5 6 7 | 5 8 | 5 8.
    ids = np.array([[5, 6, 7, 9], [5, 6, 9, 0], [5, 8, 9, 0], [5, 8, 9, 0]])
    mask = np.array([[0, 0, 1], [1, 1, 0], [0, 1, 0], [0, 1, 0]], bool)
    rows = tree.build(ids, mask)
    assert rows.ids_S.tolist() == [5, 6, 7, 8]
    assert rows.position_S.tolist() == [0, 1, 2, 1]
    assert rows.path_BT.tolist() == [[0, 1, 0], [0, 1, 2], [0, 3, 0]]
    # The rows bring in two nodes, one and one, so there are two slots a row.
    assert rows.every.slot_M.tolist() == [0, 1, 2, 4]
    assert rows.every.position_BQ.tolist() == [[0, 1], [2, 0], [1, 0]]
    assert rows.scored.node_M.tolist() == [0, 1, 2, 3]
    # In the order of the mask: 7; 5, 6; 8; 8.
    assert rows.scored_N.tolist() == [2, 0, 1, 3, 3]


def test_padding_is_not_mistaken_for_a_token() -> None:
    ids = np.array([[5, 0, 7, 1], [5, 1, 0, 0]])
    rows = tree.build(ids, np.array([[0, 0, 1], [1, 0, 0]], bool))
    assert rows.ids_S.tolist() == [5, 0, 7]
    assert rows.scored_N.tolist() == [1, 0]


def ragged() -> tuple[Tensor, Tensor]:
    """Ten rows: some share a start, two are equal, masks have holes."""
    generator = torch.Generator().manual_seed(0)
    ids = torch.randint(0, 300, (10, 23), generator=generator)
    ids[5:, :14] = ids[0, :14]
    ids[3] = ids[2]
    mask = torch.zeros(10, 22, dtype=torch.bool)
    for row in range(10):
        mask[row, 5 + row % 3 : 9 + row] = True
        mask[row, 12] = False
        ids[row, 10 + row :] = 0
    return ids, mask


def results(handle: ModelHandle) -> tuple[Tensor, dict[str, Tensor]]:
    """Log-probabilities of the scored tokens, and a gradient that tells them apart."""
    ids, mask = ragged()
    parameters = handle.parameters()
    logp = handle.head(handle.scored_states(ids, mask)).log_softmax(-1)
    logp = logp.gather(1, ids[:, 1:][mask][:, None])[:, 0]
    loss = (logp * torch.linspace(-1, 1, len(logp))).sum()
    gradients = torch.autograd.grad(loss, list(parameters.values()))
    return logp.detach(), dict(zip(parameters, gradients, strict=True))


@pytest.mark.parametrize("lora", [None, LoraSpec(rank=4)], ids=["full", "lora"])
@pytest.mark.parametrize("name", ["qwen3", "qwen2", "llama", "mistral"])
def test_it_agrees_with_the_generic_pass(
    load_role, shake, near, monkeypatch, name: str, lora
) -> None:
    handle = load_role(name, lora=lora).handle
    shake(handle, size=0.2, only="lora_B")
    assert handle.tree_forward is not None
    logp, gradients = results(handle)
    # Without rounding to speak of: float64.
    monkeypatch.setattr(handle, "tree_forward", None)
    handle.causal_lm.double()
    expected_logp, expected = results(handle)
    assert expected_logp.dtype == torch.float64
    near(logp.double(), expected_logp)
    near({name: gradient.double() for name, gradient in gradients.items()}, expected, passes=2)


@pytest.mark.parametrize("name", ["phi3", "gemma2"])
def test_other_models_take_the_generic_pass(load_role, name: str) -> None:
    assert load_role(name).handle.tree_forward is None


def test_long_rows_take_the_generic_pass(load_role) -> None:
    forward = load_role("qwen3").handle.tree_forward
    assert forward is not None
    # 2 layers x 4 heads x 8 rows x 1024^2 = 2^26 attention weights; one token more is too long.
    assert forward.fits(torch.zeros(8, 1024))
    assert not forward.fits(torch.zeros(8, 1025))


def test_functions_are_differentiated_right() -> None:
    generator = torch.Generator().manual_seed(0)

    def random(*shape: int) -> Tensor:
        return torch.randn(shape, generator=generator, dtype=torch.float64, requires_grad=True)

    assert gradcheck(lambda x, w: norm(x, w, 1e-6), (random(3, 2, 4), random(4)))
    assert gradcheck(swiglu, (random(3, 4), random(3, 4)))
    angle = random(3, 1, 2).detach()
    # The last of five features does not turn.
    assert gradcheck(lambda x: rotate(x, angle.cos(), angle.sin()), (random(3, 2, 5),))


def test_rotation_of_one_pair() -> None:
    # (3, 4) rotate by a right angle is (-4, 3).
    x = torch.tensor([[[3.0, 4.0]]])
    quarter = rotate(x, torch.zeros(1, 1, 1), torch.ones(1, 1, 1))
    assert quarter.tolist() == [[[-4.0, 3.0]]]
