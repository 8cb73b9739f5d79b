"""Reductions, divergences, mismatch, schedules, batches: numbers derived by hand."""

import dataclasses
import math

import numpy as np
import pytest
import torch

from coterie.algorithms import Algorithm, informative_groups, with_overlong_penalty
from coterie.algorithms.batched_model import BatchedModel
from coterie.algorithms.batching import micro_batches, split_evenly
from coterie.algorithms.objective import divergence, effective_share, importance, token_weights
from coterie.algorithms.overlong import overlong_penalty
from coterie.algorithms.settings import lr_factor, warmup_steps
from coterie.algorithms.surrogates import token_ratio
from coterie.datatypes import Trajectory

MASK = torch.tensor([[True, False, True, True], [True, False, False, False]])


@pytest.mark.parametrize(
    ("reduction", "expected"),
    [
        ("sequence-mean", [[1 / 6, 0, 1 / 6, 1 / 6], [1 / 2, 0, 0, 0]]),
        ("token-mean", [[1 / 4, 0, 1 / 4, 1 / 4], [1 / 4, 0, 0, 0]]),
        ("constant-length", [[1 / 20, 0, 1 / 20, 1 / 20], [1 / 20, 0, 0, 0]]),
    ],
)
def test_reductions(reduction, expected):
    got = token_weights(MASK, reduction, agents=2, tokens=4, length=10)
    torch.testing.assert_close(got, torch.tensor(expected))


@pytest.mark.parametrize(
    ("reduction", "expected"),
    [
        # Agent 1 has 3 + 1 tokens in two rows, agent 2 has 2 in one: 1/2 of the loss each.
        ("sequence-mean", [[1 / 8, 0, 1 / 8, 1 / 8], [1 / 8, 0, 0, 0], [0, 1 / 4, 1 / 4, 0]]),
        ("token-mean", [[1 / 6, 0, 1 / 6, 1 / 6], [1 / 6, 0, 0, 0], [0, 1 / 6, 1 / 6, 0]]),
        # 1 / (2 agents x 10)
        ("constant-length", [[0.05, 0, 0.05, 0.05], [0.05, 0, 0, 0], [0, 0.05, 0.05, 0]]),
    ],
)
def test_the_rows_of_an_agent_count_as_one(reduction, expected):
    mask = torch.cat([MASK, torch.tensor([[False, True, True, False]])])
    own = torch.tensor([4.0, 4.0, 2.0])
    got = token_weights(mask, reduction, agents=2, tokens=6, length=10, agent_tokens_B=own)
    torch.testing.assert_close(got, torch.tensor(expected))


def test_divergences():
    # d = ln 2: k1 = .6931, k2 = .2402, k3 = 1/2 - 1 + .6931 = .1931
    logp, ref = torch.tensor([[-1.0]]), torch.tensor([[-1.0 - math.log(2)]])
    got = [float(divergence(logp, ref, name)) for name in ("k1", "k2", "k3")]
    assert got == pytest.approx([0.693147, 0.240227, 0.193147], abs=1e-6)


def test_importance():
    # rho = 4, 1/2, unknown, masked; the row's product is 2
    old = torch.tensor([[math.log(4), -math.log(2), -1.0, 5.0]])
    sampler = torch.tensor([[0.0, 0.0, math.nan, 0.0]])
    mask = torch.tensor([[True, True, True, False]])
    weights = {
        "none": [1, 1, 1],
        "token-truncate": [2, 0.5, 1],
        "token-mask": [0, 0.5, 1],
        "sequence-truncate": [1.5, 1.5, 1.5],
        "sequence-mask": [0, 0, 0],
    }
    for correction, expected in weights.items():
        cap = 1.5 if "sequence" in correction else 2.0
        got = importance(old, sampler, mask, correction, cap)  # type: ignore[arg-type]
        assert got.weight_BT[0, :3].tolist() == pytest.approx(expected), correction
        assert got.delta_BT[0].tolist() == pytest.approx([math.log(4), -math.log(2), 0, 0])
    assert got.capped_BT.tolist() == [[True, True, True, False]]


def test_effective_share():
    # rho = 1, 3: (1 + 3)^2 / (2 (1 + 9))
    assert effective_share(4, 10, 2) == pytest.approx(0.8)


def test_overlong_penalty():
    got = [overlong_penalty(n, limit=100, buffer=20) for n in (0, 80, 85, 95, 100, 130)]
    assert got == pytest.approx([0, 0, -0.25, -0.75, -1, -1])


def test_overlong_penalty_is_a_reward_term(make_rows):
    row = make_rows(1)[0]
    row = dataclasses.replace(row, reward=1.0, reward_terms={"right": 1.0})
    sampled = int(row.mask.sum())  # not the length of the context
    algorithm = Algorithm(overlong_limit=sampled + 1, overlong_buffer=2, overlong_factor=0.5)
    got = with_overlong_penalty(row, algorithm)
    assert got.reward_terms == {"right": 1.0, "overlong": -0.25}
    assert got.reward == 0.75
    assert with_overlong_penalty(row, Algorithm()) is row


def test_informative_groups(make_rows):
    rows = make_rows(6)
    rewards = [0.3, 1.0, 0.1 + 0.2, 2.0, 9.0, 1.0]  # groups p0 p1 p0 p1 p0 p1
    rows = [dataclasses.replace(r, reward=x) for r, x in zip(rows, rewards)]
    rows[4] = dataclasses.replace(rows[4], status="timeout")
    assert informative_groups(rows, "problem") == {"p1"}
    # One agent's rows are not compared with each other.
    alone = [dataclasses.replace(r, member="e/a_1") for r in rows]
    assert informative_groups(alone, "problem") == set()


def rows_behind(*prompts_and_answers):
    """Rows of (token that the prompt repeats, its length, length of the answer)."""
    rows = []
    for i, (token, prompt, answer) in enumerate(prompts_and_answers):
        tokens = np.array([token] * prompt + list(range(answer)))
        mask = np.arange(prompt + answer) >= prompt
        rows.append(Trajectory(f"a_{i}", "a", tokens, mask, mask * 0.0, 0.0, {}, {}))
    return rows


def test_micro_batches_of_padded_rows():
    rows = rows_behind(*((0, 1, n - 1) for n in (5, 9, 2, 9, 5, 5, 1)))
    # longest first; 2 rows of 9 fit 20 tokens, then 3 of 5, then 1
    assert micro_batches(rows, 20) == [[1, 3], [0, 4, 5, 2], [6]]
    assert micro_batches(rows_behind((0, 1, 49), (0, 1, 1)), 20) == [[0], [1]]
    assert micro_batches([], 20) == []


def test_micro_batches_of_rows_end_to_end():
    rows = rows_behind((1, 16, 5), (2, 16, 9), (1, 16, 7), (2, 16, 3), (3, 4, 3))
    # The last token of a row is scored and not read. Prompt 2 with its answers takes 16 + 8 + 2 =
    # 26; prompt 1 16 + 6 + 4 = 26; the last row 4 + 2. Padded, each row of 25 would be alone.
    assert micro_batches(rows, 26, shares_from=16) == [[1, 3], [2, 0], [4]]
    assert micro_batches(rows, 32, shares_from=16) == [[1, 3], [2, 0, 4]]
    # One token less splits the second of a pair off, which needs the prompt once more.
    assert micro_batches(rows, 25, shares_from=16) == [[1], [3], [2], [0], [4]]
    # A start below what is shared counts each time: 24 + 18 + 22 + 20 + 6 = 90.
    assert micro_batches(rows, 89, shares_from=17) == [[1, 2, 0, 3], [4]]
    assert micro_batches(rows, 90, shares_from=17) == [[1, 2, 0, 3, 4]]
    # All in one batch stand as padded rows do.
    assert micro_batches(rows, 1000, shares_from=16) == micro_batches(rows, 1000)
    assert micro_batches([], 20, shares_from=16) == []


def test_a_model_that_keeps_activations_of_few_tokens_gets_small_micro_batches(make_rows, tiny):
    model, rows = tiny(), make_rows(6)
    longest = max(len(row.tokens) for row in rows)

    def sizes(keeps: int | None) -> list[int]:
        model.uncheckpointed_tokens = keeps
        return [
            len(group) for group in BatchedModel(model, 1000, 1.0).micro_batches(rows, range(6))
        ]

    assert sizes(None) == [6]
    assert sizes(4 * longest) == [2, 2, 2]  # half of what it keeps
    # The longest row still fits without recomputation.
    assert sizes(longest) == [len(group) for group in micro_batches(rows, longest)]
    # A row that is longer is computed twice anyway: all rows beside it.
    assert sizes(longest - 1) == [6]


def test_split_evenly():
    assert [list(p) for p in split_evenly(5, 2)] == [[0, 1], [2, 3, 4]]
    assert [list(p) for p in split_evenly(2, 4)] == [[0], [1]]
    assert split_evenly(0, 3) == []


@pytest.mark.parametrize(
    ("estimator", "weighted", "exact"),
    [
        ("k1", True, True),
        ("k2", False, True),
        ("k3", True, True),
        ("k2", True, False),
        ("k1", False, False),
    ],
)
def test_expected_gradients_of_divergences(estimator, weighted: bool, exact: bool):
    """Over all tokens of a small vocabulary, weighted by their probabilities."""
    logits_V = torch.tensor([0.3, -0.4, 1.1, 0.0], dtype=torch.float64, requires_grad=True)
    ref_V = torch.tensor([1.0, 0.2, -0.5, 0.1], dtype=torch.float64).log_softmax(0)
    logp_V = logits_V.log_softmax(0)
    (wanted_V,) = torch.autograd.grad(
        (logp_V.exp() * (logp_V - ref_V)).sum(), logits_V, retain_graph=True
    )
    each_V = divergence(logp_V, ref_V, estimator)
    if weighted:
        each_V = each_V * token_ratio(logp_V, logp_V.detach())
    (got_V,) = torch.autograd.grad((logp_V.exp().detach() * each_V).sum(), logits_V)
    assert torch.allclose(got_V, wanted_V, atol=1e-12) == exact


def test_schedules():
    linear = [lr_factor(k, "linear", warmup=2, total=6) for k in range(6)]
    assert linear == pytest.approx([0.5, 1, 1, 0.75, 0.5, 0.25])
    cosine = [lr_factor(k, "cosine", warmup=0, total=4) for k in range(5)]
    assert cosine == pytest.approx([1, 0.853553, 0.5, 0.146447, 0], abs=1e-6)
    assert lr_factor(99, "constant", warmup=2, total=None) == 1
    # a warm-up over the whole run ends at the peak
    rising = [lr_factor(k, "linear", warmup=4, total=4) for k in range(4)]
    assert rising == pytest.approx([0.25, 0.5, 0.75, 1])
    # two optimizer steps in a training step
    halves = [lr_factor(k / 2, "constant", warmup=2, total=None, step=0.5) for k in range(5)]
    assert halves == pytest.approx([0.25, 0.5, 0.75, 1, 1])
    assert (warmup_steps(0.1, 50), warmup_steps(10, None)) == (5, 10)
