"""A tiny random model, rows for it, and the two in one."""

from collections.abc import Callable
from contextlib import contextmanager

import numpy as np
import pytest
import torch
from transformers import Qwen3Config, Qwen3ForCausalLM

from coterie.agents.models.shards import Ranks
from coterie.datatypes import Trajectory

VOCABULARY = 40


class TinyModel:
    """A TrainableModel over a transformers model, full weights, one of them frozen on request."""

    def __init__(self, module: Qwen3ForCausalLM, frozen: str = "") -> None:
        self.module = module
        self.version = 0
        self.device = torch.device("cpu")
        self.frozen = frozen
        self.context = 64
        self.shares_from = None
        self.uncheckpointed_tokens = None
        self.ranks = Ranks()
        self.head_learns = True

    def parameters(self):
        named = self.module.named_parameters()
        return {n: p for n, p in named if not (self.frozen and self.frozen in n)}

    def weights(self) -> dict[str, torch.Tensor]:
        """Copies of all weights, frozen ones too."""
        return {name: p.detach().clone() for name, p in self.module.named_parameters()}

    def scored_states(self, ids_BT, mask_BT):
        return self.module.model(input_ids=ids_BT).last_hidden_state[:, :-1][mask_BT]

    def head(self, hidden):
        return self.module.lm_head(hidden)

    @contextmanager
    def active(self):
        yield

    @contextmanager
    def reference(self):
        raise NotImplementedError("full weights")
        yield


def build_module(seed: int = 0) -> Qwen3ForCausalLM:
    torch.manual_seed(seed)
    config = Qwen3Config(
        vocab_size=VOCABULARY,
        hidden_size=64,
        intermediate_size=64,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        head_dim=16,
        tie_word_embeddings=True,
        initializer_range=0.12,
    )
    return Qwen3ForCausalLM(config).eval()


@pytest.fixture
def make_rows() -> Callable[..., list[Trajectory]]:
    def make(count: int = 8, seed: int = 0, **fields) -> list[Trajectory]:
        """Unequal lengths, holes in the masks, two groups, plausible log-probabilities."""
        rng = np.random.default_rng(seed)
        rows = []
        for i in range(count):
            prompt, sampled = int(rng.integers(2, 6)), int(rng.integers(3, 14))
            mask = np.array([False] * prompt + [True] * sampled)
            if sampled > 6:
                mask[prompt + 2 : prompt + 4] = False
            rows.append(
                Trajectory(
                    agent=f"a_{i}",
                    role="a",
                    tokens=rng.integers(0, VOCABULARY, len(mask)),
                    mask=mask,
                    logprobs=np.where(mask, -3.7, 0).astype(np.float32),
                    reward=float(rng.normal()),
                    reward_terms={},
                    groups={"problem": f"p{i % 2}"},
                    **fields,
                )
            )
        return rows

    return make


@pytest.fixture
def tiny() -> Callable[..., TinyModel]:
    return lambda seed=0, frozen="": TinyModel(build_module(seed), frozen)
