"""The sampling loop and its parts: streams, choice, stops, ends."""

from itertools import pairwise

import numpy as np
import pytest
import torch
from scipy import stats

from coterie.agents.sampling import Sampler, SamplingRequest, sample
from coterie.agents.sampling.batches import BatchLimits, partition
from coterie.agents.sampling.choose import _WIDE, Rules, choose, invert, uniforms
from coterie.agents.sampling.stops import StopFinder
from coterie.cli.progress import ANSWERED
from coterie.datatypes import Sampling

NEUTRAL = Rules(None, None, None, None, None)


@pytest.fixture(scope="module")
def role(load_role):
    return load_role("qwen3")


def row(length: int, seed: int, max_new_tokens: int = 12, **settings) -> SamplingRequest:
    tokens = np.random.default_rng(length).integers(2, 300, size=length)
    return SamplingRequest(tokens, seed, Sampling(max_new_tokens, **settings))


def test_streams_are_the_published_splitmix64() -> None:
    # SplitMix64 from state s gives mix(s + g), mix(s + 2g), ...; our state is mix(seed).
    def mix(z: int) -> int:
        z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) % 2**64
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) % 2**64
        return z ^ (z >> 31)

    # Known answer of the generator: from state 0 the first output is 0xE220A8397B1DCDAF.
    assert mix(0x9E3779B97F4A7C15) == 0xE220A8397B1DCDAF
    seeds = [0, 1, 12345, 2**63 - 1]
    want = [
        [mix((mix(s) + (t + 1) * 0x9E3779B97F4A7C15) % 2**64) >> 40 for t in range(5)]
        for s in seeds
    ]
    got = uniforms(np.array(seeds, np.uint64), 0, 5)
    assert (got * 2**24).astype(np.int64).tolist() == want
    assert uniforms(np.array(seeds, np.uint64), 3, 2).tolist() == got[:, 3:].tolist()


@pytest.mark.parametrize(
    ("settings", "want"),
    [
        # softmax(log p) = p
        ({}, [0.5, 0.25, 0.125, 0.125]),
        # T = 1/2 squares: 1/4, 1/16, 1/64, 1/64 over 22/64
        ({"temperature": 0.5}, [16 / 22, 4 / 22, 1 / 22, 1 / 22]),
        # top-2: .5, .25 over .75
        ({"top_k": 2}, [2 / 3, 1 / 3, 0, 0]),
        # top-p .7: .5 < .7, so the second enters; .75 >= .7, so the third does not
        ({"top_p": 0.7}, [2 / 3, 1 / 3, 0, 0]),
        # top-3 leaves 4/7, 2/7, 1/7; top-p .8 of these: 4/7 < .8, 6/7 >= .8
        ({"top_k": 3, "top_p": 0.8}, [2 / 3, 1 / 3, 0, 0]),
    ],
)
def test_tokens_follow_their_distribution(settings, want) -> None:
    n = 40000
    rules = Rules.of([Sampling(1, **settings)] * n, 4, torch.device("cpu"))
    logits = torch.tensor([0.5, 0.25, 0.125, 0.125]).log()[[2, 0, 3, 1]].expand(n, 4)
    u = torch.from_numpy(uniforms(np.arange(n, dtype=np.uint64), 9, 1)[:, 0])
    tokens, logp = choose(logits, u, rules)
    counts = np.bincount(tokens.numpy(), minlength=4)[[1, 3, 0, 2]]
    inside = np.array(want) > 0
    assert counts[~inside].sum() == 0
    assert stats.chisquare(counts[inside], n * np.array(want)[inside]).pvalue > 0.01
    # Log-probabilities are after temperature and before the filters.
    base = [0.5, 0.25, 0.125, 0.125] if rules.temperature_B is None else want
    expected = np.log(base)[np.array([2, 0, 3, 1])[tokens.numpy()]]
    np.testing.assert_allclose(logp.numpy(), expected, atol=1e-6)


def test_extreme_uniforms_never_choose_what_has_no_probability() -> None:
    logits = torch.tensor([[-torch.inf, 0.0, -torch.inf, 1.0, -torch.inf]]).expand(2, 5)
    tokens, _ = choose(logits, torch.tensor([0.0, 1 - 2.0**-24]), NEUTRAL)
    assert tokens.tolist() == [1, 3]


def test_greedy_rows_report_temperature_one() -> None:
    logits = torch.tensor([[0.25, 0.5, 0.25], [0.7, 0.1, 0.2]]).log()
    rules = Rules(torch.tensor([1.0, 1.0]), torch.tensor([True, False]), None, None, None)
    tokens, logp = choose(logits, torch.tensor([0.99, 0.75]), rules)
    assert tokens.tolist() == [1, 1]
    np.testing.assert_allclose(logp, np.log([0.5, 0.1]), atol=1e-6)


def test_diverged_weights_are_reported() -> None:
    with pytest.raises(FloatingPointError, match="diverged"):
        choose(torch.tensor([[0.0, torch.nan]]), torch.tensor([0.5]), NEUTRAL)


class Table:
    """A :class:`coterie.agents.sampling.decoder.Decoder`: logits by the newest token alone, exact,
    so that rows of a batch have the same ones as a row alone."""

    logits_VV = torch.randn(320, 320, generator=torch.Generator().manual_seed(0)) * 3

    def prefill(self, prompts: list[list[int]], fork_B: list[int], room: int) -> torch.Tensor:
        return self.step(torch.tensor([prompts[fork][-1] for fork in fork_B]))

    def step(self, tokens_B: torch.Tensor) -> torch.Tensor:
        return self.logits_VV[tokens_B]

    def drop(self, *places: object) -> None: ...


def test_a_row_does_not_depend_on_its_batch(role, near, monkeypatch) -> None:
    monkeypatch.setattr(Sampler, "_decoder", lambda self: Table())
    sampler = Sampler(role.handle, role.codec.decode, role.codec.eos_ids)
    rows = [
        row(9, 1),
        row(9, 2),
        row(2, 3, temperature=0.5),
        row(17, 4, 20, top_p=0.8),
        row(5, 5, temperature=0.0),
        row(9, 6, 3, top_k=5, stop=("a",)),
    ]
    together = sampler.sample(rows)
    split = Sampler(
        role.handle,
        role.codec.decode,
        role.codec.eos_ids,
        limits=BatchLimits(2, 10**6),
    ).sample(rows)
    for mine, other, single in zip(together, split, rows, strict=True):
        alone = sampler.sample([single])[0]
        assert mine.tokens.tolist() == alone.tokens.tolist() == other.tokens.tolist()
        assert mine.finish_reason == alone.finish_reason == other.finish_reason
        near(mine.logprobs, alone.logprobs)
    # Same prompt, another seed: another answer.
    assert together[0].tokens.tolist() != together[1].tokens.tolist()


def test_the_head_never_reads_a_slice(role) -> None:
    # A product with one copies the weights for every row: 40 GB for a batch of Gemma 3.
    slices = []
    head = role.handle.causal_lm.get_output_embeddings()
    hook = head.register_forward_pre_hook(
        lambda _, given: slices.append(not given[0].is_contiguous())
    )
    sampler = Sampler(role.handle, role.codec.decode, role.codec.eos_ids, fused=False)
    sampler.sample([row(9, 1, 3), row(2, 3, 3)])
    hook.remove()
    assert len(slices) > 1
    assert not any(slices)


def test_ends(role, without_ties, near) -> None:
    rows = [row(4, seed, 30) for seed in range(40)]
    free = Sampler(role.handle, role.codec.decode, ()).sample(rows)
    assert {c.finish_reason for c in free} == {"length"}
    eos = [int(free[0].tokens[6]), int(free[1].tokens[3])]
    ended = Sampler(role.handle, role.codec.decode, eos).sample(rows)
    reasons = set()
    for before, after in zip(free, ended, strict=True):
        hits = [i for i, t in enumerate(before.tokens.tolist()) if t in eos]
        want = before.tokens[: hits[0] + 1] if hits else before.tokens
        # The end is kept, and nothing before it changes when neighbours leave the batch.
        assert after.tokens.tolist() == want.tolist()
        assert after.finish_reason == ("eos" if hits else "length")
        near(after.logprobs, before.logprobs[: len(want)])
        reasons.add(after.finish_reason)
    assert reasons == {"eos", "length"}


def test_stop_strings_end_with_the_token_that_completes_them(role, without_ties) -> None:
    decode = role.codec.decode
    rows = [row(4, seed, 30) for seed in range(40)]
    free = Sampler(role.handle, decode, ()).sample(rows)
    # Strings that straddle a token boundary, taken from what is sampled.
    stop: list[str] = []
    for c in free:
        pieces = [decode([t]) for t in c.tokens]
        seams = [a[-1:] + b[:1] for a, b in pairwise(pieces)]
        stop += [s for s in seams if len(s) == 2 and s.isascii()][:1]
    stop = stop[:3]
    assert len(stop) == 3
    stopped_rows = [SamplingRequest(r.tokens, r.seed, Sampling(30, stop=tuple(stop))) for r in rows]
    stopped = Sampler(role.handle, decode, ()).sample(stopped_rows)
    for before, after in zip(free, stopped, strict=True):
        want = next(
            (n for n in range(1, 31) if any(s in decode(before.tokens[:n]) for s in stop)), None
        )
        assert len(after.tokens) == (want or 30)
        assert after.finish_reason == ("stop" if want else "length")
    assert sum(c.finish_reason == "stop" for c in stopped) >= 3


def test_stop_finder_decodes_little() -> None:
    pieces = ["</", "final", "_answer", ">", " x", "> y", "a</final_answer>b", ""]
    decoded = []

    def decode(ids) -> str:
        decoded.append(len(ids))
        return "".join(pieces[i] for i in ids)

    finder = StopFinder(("</final_answer>",), decode, len(pieces))
    # Only tokens that can hold the closing bracket, and those whose text is hidden.
    assert finder.suspects(np.arange(8)).tolist() == [3, 5, 6, 7]
    text = np.array([4] * 5000 + [0, 1, 2, 3])
    decoded.clear()
    assert finder.completes(text)
    assert not finder.completes(text[:-1])
    assert finder.completes(np.array([0, 1, 2, 7, 7, 5]))
    assert finder.completes(np.array([6]))
    assert not finder.completes(np.array([0, 1, 3]))
    # "</final_answer>" has 15 characters: a tail of at most 2 * 20 of these tokens.
    assert max(decoded) <= 40


def test_batches_keep_equal_prompts_together_within_limits() -> None:
    rows = [row(n, i, 4) for i, n in enumerate((3, 8, 3, 8, 3))]
    # 3 + 4 = 7 tokens a row: three rows have 21; a fourth would have 4 * 12.
    assert list(partition(rows, BatchLimits(10, 24))) == [[0, 2, 4], [1, 3]]
    assert list(partition(rows, BatchLimits(2, 1000))) == [[0, 2], [4, 1], [3]]
    # A row beyond the limit goes alone.
    assert list(partition(rows, BatchLimits(10, 1))) == [[0], [2], [4], [1], [3]]


def test_an_empty_prompt_is_refused(role) -> None:
    with pytest.raises(ValueError, match="no tokens"):
        Sampler(role.handle, role.codec.decode, ()).sample([row(0, 1)])


def test_a_large_vocabulary_is_sampled_as_its_running_sum_says() -> None:
    """In blocks; zeros are never chosen, and the end of [0, 1) is the last index with weight."""
    generator = torch.Generator().manual_seed(0)
    size = _WIDE + 100  # a last block that is not full
    weight = torch.rand(6, size, generator=generator, dtype=torch.float64)
    weight[:, ::3] = 0
    weight[4, 300:] = 0
    weight[5] = 0
    weight[5, size - 7] = 1
    for u in (0.0, 0.25, 0.5, 0.999, 1 - 2.0**-24):
        u_B = torch.full((6,), u, dtype=torch.float64)
        cdf = weight.cumsum(-1)
        wanted = torch.searchsorted(cdf, (u_B * cdf[:, -1])[:, None], right=True)[:, 0]
        assert torch.equal(invert(weight, u_B), wanted)
    narrow = invert(weight.float(), torch.full((6,), 1 - 2.0**-24))
    assert (weight.gather(1, narrow[:, None]) > 0).all()
    weight[2, 7] = torch.nan
    with pytest.raises(FloatingPointError):
        invert(weight, u_B)


def test_how_far_it_is_can_be_read_meanwhile(role, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[float] = []
    before = ANSWERED.done
    step = sample.choose

    def watched(*args):
        seen.append(ANSWERED.done - before)
        return step(*args)

    monkeypatch.setattr(sample, "choose", watched)
    sampler = Sampler(
        role.handle, role.codec.decode, (), limits=BatchLimits(rows=2, tokens=1 << 20)
    )
    sampler.sample([row(5, seed, max_new_tokens=4) for seed in range(4)])
    # Two batches of two answers, four tokens each: half an answer more with every token.
    assert seen == [0.0, 0.5, 1.0, 1.5, 2.0, 2.5, 3.0, 3.5]
    assert ANSWERED.done - before == 4


def test_tokens_are_told_as_they_are_sampled(role) -> None:
    sampler = Sampler(role.handle, role.codec.decode, role.codec.eos_ids)
    requests = [row(5, 1), row(9, 2, max_new_tokens=4)]
    told: list[list[int]] = []
    one = sampler.sample(requests[:1], lambda new_B: told.append(new_B.tolist()))
    assert [[token] for token in one[0].tokens] == told
    told.clear()
    both = sampler.sample(requests, lambda new_B: told.append(new_B.tolist()))
    assert sum(map(len, told)) == sum(len(each.tokens) for each in both)
    for quiet, loud in zip(sampler.sample(requests), both, strict=True):
        assert quiet.tokens.tolist() == loud.tokens.tolist()
