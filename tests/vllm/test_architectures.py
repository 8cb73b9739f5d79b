"""The engine column of docs/models.md: tiny random architectures in a real engine, weights handed
over. Each engine takes ten seconds and more to start: four kinds start in CI, all of them
with ``-m "slow or not slow"``."""

import asyncio
import re
from pathlib import Path

import numpy as np
import pytest
import torch

from coterie.agents.engine.fleet import Fleet, Seat
from coterie.agents.engine.policy import VllmPolicy
from coterie.agents.engine.settings import VllmSettings
from coterie.datatypes import Completion, Prompt, Sampling
from coterie.models.loading import LoadedRole, load_team
from coterie.models.spec import LoraSpec, ModelSpec

ROWS = re.findall(
    r"^\| ([\w .-]+?) \| (?:yes|no) \| (?:yes|no) \|.*\| ([^|]+) \|$",
    (Path(__file__).parents[2] / "docs" / "models.md").read_text(),
    re.MULTILINE,
)
# What the table calls architectures -> what tests/conftest.py does.
NAMES = {"Phi-3": "phi3", "Gemma 2": "gemma2", "Phi-2": "phi2", "GPT-2": "gpt2"}
# Heads of 32 dimensions, which an engine on a CPU has kernels for. vLLM knows no Qwen2 whose window
# is for some layers only.
SHAPE = {
    "hidden_size": 64,
    "num_attention_heads": 2,
    "num_key_value_heads": 2,
    "head_dim": 32,
    "use_sliding_window": False,
}
CASES = [
    (NAMES.get(name, name.lower()), tuning)
    for name, cell in ROWS
    for tuning in ("full", "LoRA")
    if tuning in cell
]
KINDS = {
    ("phi3", "full"): "fused projections",
    ("gemma2", "full"): "no head but the embedding",
    ("gpt2", "full"): "a tied head, and an embedding of another name",
    ("opt", "LoRA"): "an adapter on no Llama",
}


def test_the_table_was_read() -> None:
    assert len(ROWS) == 13
    assert set(KINDS) < set(CASES)


async def ask(policy: VllmPolicy, role: LoadedRole) -> list[Completion]:
    ids = np.array(role.codec.open("7 + 8 - 3 ="))
    prompts = (Prompt(ids, "", f"a_{i}", 100 + i) for i in range(4))
    return list(await asyncio.gather(*(policy(prompt, Sampling(12)) for prompt in prompts)))


def mismatch(role: LoadedRole, answers: list[Completion]) -> float:
    """Mean |engine's log-probability - the learner's|."""
    prompt = role.codec.open("7 + 8 - 3 =")
    gaps = []
    for answer in answers:
        ids = torch.tensor([prompt + answer.tokens.tolist()])
        with torch.no_grad(), role.handle.active():
            hidden = role.handle.backbone(
                ids, torch.ones_like(ids), torch.arange(ids.shape[1])[None]
            )
            logp = role.handle.head(hidden)[0, len(prompt) - 1 : -1].float().log_softmax(-1)
        own = logp.gather(1, ids[0, len(prompt) :, None])[:, 0].numpy()
        gaps.append(np.abs(own - answer.logprobs))
    return float(np.concatenate(gaps).mean())


@pytest.mark.parametrize(
    ("name", "tuning"),
    [pytest.param(*case, marks=() if case in KINDS else pytest.mark.slow) for case in CASES],
)
async def test_an_engine_takes_the_weights_of(write_shaped, tmp_path: Path, name, tuning) -> None:
    folder = write_shaped(tmp_path / name, name, spread=0.15, **SHAPE)
    spec = ModelSpec(str(folder), device="cpu", lora=LoraSpec(rank=4) if tuning == "LoRA" else None)
    role = load_team({"a": spec}, {"a"})["a"]
    fleet = Fleet([Seat("a", role, spec, True, "cpu")], VllmSettings())
    try:
        await fleet.start()
        await fleet.refresh()
        assert mismatch(role, await ask(fleet.policies["a"], role)) < 1e-4
        with torch.no_grad():
            for weight in role.handle.parameters().values():
                weight += 0.05 * torch.randn_like(weight)
        role.handle.version += 1
        # What was not handed over is seen.
        assert mismatch(role, await ask(fleet.policies["a"], role)) > 1e-2
        await fleet.refresh()
        assert mismatch(role, await ask(fleet.policies["a"], role)) < 1e-4
    finally:
        fleet.close()
