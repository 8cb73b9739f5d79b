import numpy as np
import pytest
import torch

from coterie.algorithms.batching import pad
from coterie.algorithms.logprobs import batch_logprobs, score


def test_equals_the_models_own_logits(tiny, make_rows):
    rows, model = make_rows(5), tiny()
    batch = pad(rows, np.zeros(5))
    logp_BT, entropy_BT, _ = batch_logprobs(model, batch, temperature=0.7)
    for i, row in enumerate(rows):
        logits = model.module(torch.from_numpy(row.tokens)[None]).logits[0, :-1] / 0.7
        all_logp = logits.log_softmax(-1)
        own = torch.from_numpy(row.mask[1:])
        expected = all_logp[torch.arange(len(own)), torch.from_numpy(row.tokens[1:])]
        n = len(own)
        torch.testing.assert_close(logp_BT[i, :n][own], expected[own], rtol=1e-5, atol=1e-5)
        entropy = torch.distributions.Categorical(logits=logits).entropy()
        torch.testing.assert_close(entropy_BT[i, :n][own], entropy[own], rtol=1e-5, atol=1e-5)
        assert (logp_BT[i, :n][~own] == 0).all()
        assert (logp_BT[i, n:] == 0).all()


def chunks_of(positions: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        "coterie.algorithms.logprobs.positions_at_once", lambda vocab_size, on_cpu: positions
    )


def test_chunks_change_nothing_and_bound_the_head(monkeypatch):
    generator = torch.Generator().manual_seed(0)
    weight = torch.randn(50, 8, generator=generator)
    hidden = torch.randn(23, 8, generator=generator)
    target = torch.randint(50, (23,), generator=generator)
    results, most = [], []
    for at_once in (99, 4):
        chunks_of(at_once, monkeypatch)
        seen = []
        h, w = hidden.clone().requires_grad_(), weight.clone().requires_grad_()

        def head(x, w=w, seen=seen):
            seen.append(len(x))
            return x @ w.T

        logp, entropy, _ = score(h, target, head, temperature=2.0, entropy_gradient=True)
        (logp.sum() + 0.3 * entropy.sum()).backward()
        results.append((logp, entropy, h.grad, w.grad))
        most.append(max(seen))
    assert most == [23, 4]
    for first, second in zip(*results):
        torch.testing.assert_close(first, second, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("at_once", [99, 4])
def test_a_head_that_does_not_learn_computes_logits_once(
    at_once: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In float64, against the path of a head that learns; its logits are not linear."""
    monkeypatch.setattr("coterie.algorithms.logprobs._LOGITS_IN_CACHE", 150)  # three rows
    chunks_of(at_once, monkeypatch)
    generator = torch.Generator().manual_seed(0)
    weight = torch.randn(50, 8, generator=generator, dtype=torch.float64)
    hidden = torch.randn(23, 8, generator=generator, dtype=torch.float64)
    target = torch.randint(50, (23,), generator=generator)
    arrives = torch.randn(23, generator=generator, dtype=torch.float64)
    results, positions = [], []
    for learns in (True, False):
        seen: list[int] = []
        h = hidden.clone().requires_grad_()

        def head(x, seen=seen):
            seen.append(len(x))
            return 3 * torch.tanh(x @ weight.T / 3)

        logp, entropy, _ = score(h, target, head, temperature=0.7, head_learns=learns)
        (logp * arrives).sum().backward()
        results.append((logp, entropy, h.grad))
        positions.append(sum(seen))
    assert positions[1] == 23
    assert positions[0] == (23 if at_once > 4 else 46)
    for learned, frozen in zip(*results):
        torch.testing.assert_close(learned, frozen, rtol=1e-6, atol=1e-6)  # scored in float32
    assert not results[1][1].requires_grad


def test_impossible_tokens_have_no_entropy():
    """Logits of -inf (a model that masks ids): 0 log 0 is 0, in the value and in the gradient."""
    hidden = torch.zeros(1, 2, requires_grad=True)
    bias = torch.tensor([0.0, 0.0, -torch.inf])
    logp, entropy, _ = score(
        hidden,
        torch.tensor([0]),
        lambda h: h.sum(-1, keepdim=True) + bias,
        temperature=1.0,
        entropy_gradient=True,
    )
    torch.testing.assert_close(entropy, torch.tensor([np.log(2)], dtype=torch.float32))
    (logp + entropy).sum().backward()
    assert hidden.grad.isfinite().all()
    again = torch.zeros(1, 2, requires_grad=True)
    frozen = score(
        again,
        torch.tensor([0]),
        lambda h: h.sum(-1, keepdim=True) + bias,
        temperature=1.0,
        head_learns=False,
    )
    torch.testing.assert_close(frozen.entropy_N, entropy.detach())
    frozen.logp_N.sum().backward()
    assert again.grad.isfinite().all()


def test_no_scored_positions():
    logp, entropy, _ = score(
        torch.zeros(0, 4), torch.zeros(0, dtype=torch.long), torch.nn.Linear(4, 9), temperature=1.0
    )
    assert logp.shape == entropy.shape == (0,)
