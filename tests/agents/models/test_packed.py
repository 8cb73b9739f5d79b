"""Rows end to end, their starts once: the same numbers as rows side by side."""

import functools
import inspect
from itertools import pairwise

import numpy as np
import pytest
import torch

from coterie.agents.models.forward import packed
from coterie.agents.models.forward.packed import Segment, pack
from coterie.agents.models.handle import ModelHandle
from coterie.agents.models.loading import packing_agrees
from coterie.agents.models.spec import LoraSpec
from coterie.algorithms import Learner, LearnerSettings, get
from coterie.datatypes import Trajectory

DENSE = ["qwen3", "qwen2", "llama", "mistral", "phi3", "phi3-long", "gemma3"]
NAMES = [*DENSE, "mixtral", "qwen3-moe"]


def test_rows_stand_end_to_end_and_starts_once() -> None:
    start = list(range(20, 36))
    rows = [[*start, 1, 2, 0, 0], [*start, 3, 0, 0, 0], [7, 8, 9, 0, *[0] * 16], [5] * 20]
    ids = np.array([row[:20] for row in rows])
    mask = np.zeros((4, 19), bool)
    mask[0, 15:18] = True  # 1, 2 and what follows 2
    mask[1, 15] = True  # 3: nothing behind the start is needed
    mask[2, 1] = True
    packed_rows = pack(ids, mask)
    assert packed_rows.ids_S.tolist() == [*start, 1, 2, 7, 8]
    assert packed_rows.position_S.tolist() == [*range(16), 16, 17, 0, 1]
    assert packed_rows.segments == [
        Segment(range(16)),
        Segment(range(16, 18), range(16)),
        Segment(range(18, 20)),
    ]
    # The first token of both answers is scored at the end of the one start.
    assert packed_rows.scored_N.tolist() == [15, 16, 17, 15, 19]
    assert (packed_rows.segments[1].queries, packed_rows.segments[1].keys) == (2, 18)


def rows_of(seed: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Two groups that share a start, a row of its own, one of which nothing is scored."""
    rng = np.random.default_rng(seed)
    starts = [rng.integers(3, 300, 20), rng.integers(3, 300, 17)]
    ids, mask = np.zeros((8, 48), np.int64), np.zeros((8, 47), bool)
    for row in range(7):
        start = starts[row % 2] if row < 6 else rng.integers(3, 300, 5)
        end = int(rng.integers(len(start) + 1, 48))
        ids[row, :end] = rng.integers(3, 300, end)
        ids[row, : len(start)] = start
        mask[row, len(start) - 1 : end - 1] = True
        mask[row, len(start) + 2 : len(start) + 4] = False
    return torch.from_numpy(ids), torch.from_numpy(mask)


def states_and_gradients(handle: ModelHandle, ids: torch.Tensor, mask: torch.Tensor):
    for weight in handle.parameters().values():
        weight.grad = None
    with handle.active():
        states = handle.scored_states(ids, mask)
        handle.head(states).logsumexp(-1).sum().backward()
    return states.detach(), {n: p.grad.clone() for n, p in handle.parameters().items()}


def near(gradients: dict[str, torch.Tensor], expected: dict[str, torch.Tensor]) -> None:
    for name, grad in expected.items():
        scale = float(grad.abs().max()) or 1.0
        torch.testing.assert_close(gradients[name] / scale, grad / scale, rtol=1e-3, atol=1e-4)


@pytest.fixture
def widths(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many tokens each forward pass computes."""
    computed: list[int] = []
    backbone = ModelHandle.backbone

    def watched(self: ModelHandle, ids: torch.Tensor, *args: object, **more: object):
        computed.append(ids.numel())
        return backbone(self, ids, *args, **more)  # type: ignore[arg-type]

    monkeypatch.setattr(ModelHandle, "backbone", watched)
    return computed


@pytest.mark.parametrize("recompute", ["never", "always"])
@pytest.mark.parametrize("lora", [None, LoraSpec(rank=2)], ids=["full", "lora"])
@pytest.mark.parametrize("name", NAMES)
def test_states_and_gradients_are_those_of_padded_rows(
    load_role, widths: list[int], name: str, lora, recompute
) -> None:
    handle = load_role(name, lora=lora, recompute=recompute).handle
    handle.tree_forward = None
    ids, mask = rows_of(1)
    widths.clear()
    ours, grads = states_and_gradients(handle, ids, mask)
    handle.packs = False
    padded, wanted = states_and_gradients(handle, ids, mask)
    assert widths[0] < 0.5 * widths[1] == 0.5 * ids.numel()
    torch.testing.assert_close(ours, padded, rtol=1e-4, atol=1e-4)
    near(grads, wanted)
    assert handle.causal_lm.config._attn_implementation == "sdpa"


def test_micro_batches_are_as_large_as_what_is_computed(load_role, widths: list[int]) -> None:
    handle = load_role("qwen3").handle
    handle.tree_forward = None
    rng = np.random.default_rng(0)
    start, rows = rng.integers(3, 300, 40), []
    widths.clear()
    for i in range(6):
        tokens = np.concatenate([start, rng.integers(3, 300, 12)])
        mask = np.arange(52) >= 40
        logprobs = np.where(mask, -5.7, 0).astype(np.float32)
        rows.append(Trajectory(f"a_{i}", "a", tokens, mask, logprobs, 0.0, {}, {}))
    learner = Learner(handle, get("grpo"), LearnerSettings(micro_batch_tokens=100))
    gradients = []
    for handle.packs in (True, False):
        learner._gradient(rows, np.linspace(-1, 1, 6), None, None, range(6))
        gradients.append({n: p.grad.clone() for n, p in handle.parameters().items()})
    # 40 + 5 x 11, then 51; the last token of a row is not read. Padded, 52 six times.
    assert widths == [95, 51, *[52] * 6]
    near(*gradients)


def test_a_kernel_that_computes_something_else_is_not_used(load_role, monkeypatch) -> None:
    handle = load_role("qwen3", dtype="bfloat16").handle
    assert packing_agrees(handle)
    monkeypatch.setattr("coterie.agents.models.forward.segments.causal_bias", lambda *_: 0.0)
    assert not packing_agrees(handle)


@pytest.mark.parametrize("window", [None, 8])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_batched_segments_attend_as_each_does_alone(monkeypatch, window, dtype) -> None:
    """Also in several batches, and the gradients of queries, keys and values."""
    ids, mask = rows_of(3)
    rows = pack(ids.numpy(), mask.numpy())
    torch.manual_seed(0)
    shapes = [(1, heads, len(rows.ids_S), 16) for heads in (4, 2, 2)]
    given = [torch.randn(shape).to(dtype).requires_grad_() for shape in shapes]
    results = []
    for at_once in (1 << 21, 4 * 48 * 48, 0):  # one batch, several, each segment alone
        monkeypatch.setattr("coterie.agents.models.forward.segments._SCORES_AT_ONCE", at_once)
        rows.on_cpu.clear()
        out, _ = packed._attend(None, *given, None, packed=rows, sliding_window=window)
        assert out.shape == (1, len(rows.ids_S), 4, 16)
        grads = torch.autograd.grad(out.float().square().sum(), given)
        results.append([tensor.float() for tensor in (out, *grads)])
    rtol, atol = (1e-4, 1e-5) if dtype == torch.float32 else (3e-2, 6e-2)
    for tensor, *others in zip(*results):
        for other in others:
            torch.testing.assert_close(tensor, other, rtol=rtol, atol=atol)


_OF_2_11 = ("query", "key", "value", "cu_seq_q", "cu_seq_k", "max_q", "max_k")
_OF_2_11 += ("return_aux", "scale", "window_size")


@pytest.mark.parametrize("older", [False, True], ids=["here", "torch 2.11"])
@pytest.mark.parametrize("window", [None, 8])
def test_a_gpus_kernel_gets_the_segments_that_the_cpu_computes(
    monkeypatch, window: int | None, older: bool
) -> None:
    """By its own signature, and with an implementation by its documentation: row i's queries are
    the last ones of its keys, and see as far back as the window says. torch 2.11 knows no groups of
    heads."""
    from torch.nn.attention import varlen

    signature = inspect.signature(varlen.varlen_attn)
    if older:
        known = [parameter for name, parameter in signature.parameters.items() if name in _OF_2_11]
        signature = signature.replace(parameters=known)

    def by_the_book(*args: object, **kwargs: object) -> torch.Tensor:
        given = signature.bind(*args, **kwargs).arguments
        groups = given["query"].shape[1] // given["key"].shape[1]
        assert groups == 1 or given["enable_gqa"]
        k, v = (given[name].repeat_interleave(groups, 1) for name in ("key", "value"))
        rows = list(zip(given["cu_seq_q"].tolist(), given["cu_seq_k"].tolist()))
        assert given["max_q"] == max(b[0] - a[0] for a, b in pairwise(rows))
        assert given["max_k"] == max(b[1] - a[1] for a, b in pairwise(rows))
        behind, ahead = given["window_size"]
        assert ahead == 0
        parts = []
        for (q0, k0), (q1, k1) in pairwise(rows):
            place_Q1 = torch.arange(k1 - k0)[-(q1 - q0) :, None]
            back_QK = place_Q1 - torch.arange(k1 - k0)
            seen_QK = (back_QK >= 0) & ((back_QK <= behind) | (behind < 0))
            score = torch.einsum("qhe,khe->hqk", given["query"][q0:q1], k[k0:k1]) * given["scale"]
            weight = score.masked_fill(~seen_QK, -torch.inf).softmax(-1)
            parts.append(torch.einsum("hqk,khe->qhe", weight, v[k0:k1]))
        return torch.cat(parts)

    by_the_book.__signature__ = signature  # type: ignore[attr-defined]
    monkeypatch.setattr(varlen, "varlen_attn", by_the_book)
    ids, mask = rows_of(1)
    rows = pack(ids.numpy(), mask.numpy())
    torch.manual_seed(0)
    q, k, v = (torch.randn(1, heads, len(rows.ids_S), 16) for heads in (4, 2, 2))
    ours, _ = packed._attend(None, q, k, v, None, packed=rows, scaling=0.3, sliding_window=window)
    asked = packed._on_gpu(q, k, v, rows, 0.3, window)
    torch.testing.assert_close(asked, ours, rtol=1e-5, atol=1e-5)


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="not run: there is no GPU")
@pytest.mark.parametrize("name", ["qwen3", "qwen2", "llama"])
def test_the_kernel_of_a_gpu_agrees(load_role, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    from torch.nn.attention import varlen

    kernel, asked = varlen.varlen_attn, []
    # It stays the kernel's own signature.
    spy = functools.wraps(kernel)(lambda *args, **more: asked.append(1) or kernel(*args, **more))
    monkeypatch.setattr(varlen, "varlen_attn", spy)
    ids, mask = (x.cuda() for x in rows_of(1))
    results = []
    for dtype in ("float32", "bfloat16"):
        handle = load_role(name, device="cuda:0", dtype=dtype).handle
        asked.clear()
        results.append(states_and_gradients(handle, ids, mask))
        # Had it not agreed, rows would be padded.
        assert handle.packs
        assert bool(asked) == (dtype == "bfloat16")
    (wide, _), (narrow, grads) = results
    assert torch.cosine_similarity(wide.flatten(), narrow.float().flatten(), dim=0) > 0.99
    assert all(torch.isfinite(grad).all() for grad in grads.values())
