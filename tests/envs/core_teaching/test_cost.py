"""CoRe's cost model, equations 13 to 19 (arXiv:2601.21600, appendix A.2), term by term by hand."""

import dataclasses
from typing import Any

import pytest

from coterie.envs import settings_of
from coterie.envs.core_teaching.cost import describe_cost, step_cost
from coterie.envs.core_teaching.scoring import texts_to_embed
from coterie.envs.core_teaching.settings import weights_at

from .scripted import RESCUE, Played

# N = 3 models, K = 4, K' = 2, L = 100 tokens, L_c = 50, s_max = 7, and the three costs 2, 3 and 5.
LARGE: dict[str, Any] = {
    "roles": 3,
    "cold": 4,
    "hinted": 2,
    "length": 100,
    "hint": 50,
    "cap": 7,
    "token": 2,
    "attention": 3,
    "embedding": 5,
}
# The paper's: N = 2, K = 2, K' = 1, traces of 3,072 tokens, L_c = 1536, s_max = 10.
PAPER: dict[str, Any] = {
    "roles": 2,
    "cold": 2,
    "hinted": 1,
    "length": 3072,
    "hint": 1536,
    "cap": 10,
}


@pytest.mark.parametrize(
    ("term", "large", "paper"),
    [
        # (13) N (K + K') L C_gen: 3 * 6 * 100 * 2, and 2 * 3 * 3072.
        ("decode", 3600, 18_432),
        # (13) N K' L_c C_attn: 3 * 2 * 50 * 3, and 2 * 1 * 1536.
        ("attend", 900, 3072),
        # (14) N K: 3 * 4, and 2 * 2.
        ("select", 12, 4),
        # (15) L.
        ("context", 100, 3072),
        # (16) M C_emb with M = N (K + K'): 18 * 5, and 6.
        ("embed", 90, 6),
        # (17) M s_max: 18 * 7, and 6 * 10.
        ("explore", 126, 60),
        # (18) N K_r^2 over both rounds: 3 * 16 + 3 * 4, and 2 * 4 + 2 * 1.
        ("cross", 60, 10),
        # (19) N (K + K') L C_gen + M C_emb + M s_max + N K + L, which has neither the second term
        # of (13) nor (18): 3600 + 90 + 126 + 12 + 100, and 18432 + 6 + 60 + 4 + 3072.
        ("total", 3928, 21_574),
    ],
)
def test_a_term_by_hand(term: str, large: float, paper: float) -> None:
    assert getattr(step_cost(**LARGE), term) == large
    assert getattr(step_cost(**PAPER), term) == paper


def test_an_episode_does_what_the_model_counts(make: Any) -> None:
    """Two roles, K = 2, K' = 1: six traces are written and embedded, and four may teach."""
    cost = step_cost(2, 2, 1, length=1, hint=1, cap=10)
    env = make(lambda_cm=(0.1,), w_explore=(0.2,))
    first, second = Played(env, RESCUE).rounds
    assert (len(first) + len(second), len(first)) == (cost.decode, cost.select) == (6, 4)
    texts = [RESCUE[agent] for agent in (*first, *second)]
    assert len(texts_to_embed(texts, env.settings, weights_at(env.settings, 1))) == cost.embed == 6


def _lines(preset: str, **changed: Any) -> list[str]:
    settings = dataclasses.replace(settings_of("core-teaching", preset=preset), **changed)
    return list(describe_cost(settings, ("alice", "bob")))


def test_a_plan_tells_it() -> None:
    assert _lines("core-qwen-gsm8k")[1:] == [
        "  18,432 tokens written and 3,072 of hints read, a teacher of 4 traces,",
        "  6 embeddings, 70 distances",
    ]
    # Without the exploration term: partners alone; without both, nothing is embedded.
    assert _lines("core-qwen-gsm8k", w_explore=(0.0,))[-1] == "  6 embeddings, 10 distances"
    none = _lines("core-qwen-gsm8k", w_explore=(0.0,), lambda_cm=(0.0,))
    assert none[-1] == "  0 embeddings, 0 distances"
    # By leave-one-out each of six traces is compared with five others.
    assert _lines("core-tiny")[-1] == "  6 embeddings, 40 distances"
    # Rereading is not in the paper's model.
    assert _lines("core-reread") == []
