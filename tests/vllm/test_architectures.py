"""The engine column of docs/models.md: tiny random architectures in a real engine, weights handed
over. Each engine takes ten seconds and more to start: five kinds start in CI, all of them
with ``-m "slow or not slow"``."""

import re
from pathlib import Path

import pytest

from coterie.agents.models.spec import LoraSpec, ModelSpec
from coterie.agents.vllm.fleet import Fleet, Seat
from coterie.agents.vllm.settings import VllmSettings
from coterie.datatypes import Sampling

ROWS = re.findall(
    r"^\| ([\w .-]+?) \| (?:yes|no) \| (?:yes|no) \|.*\| ([^|]+) \|$",
    (Path(__file__).parents[2] / "docs" / "models.md").read_text(),
    re.MULTILINE,
)
# What the table calls architectures -> what tests/conftest.py does.
NUMBERED = ("Phi-3", "Gemma 2", "Gemma 3", "Phi-2", "GPT-2")
NAMES = {name: name.lower().replace(" ", "").replace("-", "") for name in NUMBERED}
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
    ("gemma3", "full"): "a tied head that the engine packs once",
    ("gpt2", "full"): "a tied head, and an embedding of another name",
    ("opt", "LoRA"): "an adapter on no Llama",
}


def test_the_table_was_read() -> None:
    assert len(ROWS) == 14
    assert set(KINDS) < set(CASES)


@pytest.mark.parametrize(
    ("name", "tuning"),
    [pytest.param(*case, marks=() if case in KINDS else pytest.mark.slow) for case in CASES],
)
async def test_an_engine_takes_the_weights_of(
    write_shaped, load_role, shake, ask, mismatch, tmp_path: Path, name: str, tuning: str
) -> None:
    folder = write_shaped(tmp_path / name, name, spread=0.15, **SHAPE)
    lora = LoraSpec(rank=4) if tuning == "LoRA" else None
    role, spec = load_role(folder, lora=lora), ModelSpec(str(folder), device="cpu", lora=lora)
    fleet = Fleet([Seat("a", role, spec, True, "cpu")], VllmSettings())
    try:
        await fleet.start()
        await fleet.refresh()
        assert mismatch(role, await ask(fleet.policies["a"], role, Sampling(12), 4)) < 1e-4
        shake(role.handle, size=0.05)
        # What was not handed over is seen.
        assert mismatch(role, await ask(fleet.policies["a"], role, Sampling(12), 4)) > 1e-2
        await fleet.refresh()
        assert mismatch(role, await ask(fleet.policies["a"], role, Sampling(12), 4)) < 1e-4
    finally:
        fleet.close()
