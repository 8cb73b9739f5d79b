"""What is promised of each architecture: the table of docs/models.md, on random weights."""

import re
from pathlib import Path

import numpy as np
import pytest
import torch

from coterie.agents.models.loading import LoadedRole
from coterie.agents.models.spec import LoraSpec
from coterie.agents.sampling import Sampler, SamplingRequest
from coterie.algorithms import Learner, LearnerSettings, get
from coterie.datatypes import Sampling, Trajectory, UserError

DOCS = Path(__file__).parents[3] / "docs" / "models.md"
NAMES = {
    "Llama": "llama",
    "Mistral": "mistral",
    "Qwen2": "qwen2",
    "Qwen3": "qwen3",
    "Phi-3": "phi3",
    "Gemma 2": "gemma2",
    "Gemma 3": "gemma3",
    "Phi-2": "phi2",
    "GPT-NeoX": "gpt-neox",
    "GPT-2": "gpt2",
    "OPT": "opt",
    "Mixtral": "mixtral",
    "Qwen3-MoE": "qwen3-moe",
    "Mamba": "mamba",
}


def table() -> dict[str, list[str]]:
    """Architecture -> full, full in bfloat16, adapted layers, engine."""
    lines = DOCS.read_text().splitlines()
    start = next(i for i, line in enumerate(lines) if line.startswith("| architecture |"))
    rows = {}
    for line in lines[start + 2 :]:
        if not line.startswith("|"):
            break
        name, *cells = (cell.strip() for cell in line.strip("|").split("|"))
        rows[name] = cells
    return rows


def test_the_table_has_every_architecture() -> None:
    assert list(table()) == list(NAMES)


def learn(role: LoadedRole) -> float:
    """Sample, learn from it; how far sampler and learner are apart."""
    prompt = role.codec.open("7 + 8 =")
    sampler = Sampler(role.handle, role.codec.decode, ())
    answers = sampler.sample(
        [SamplingRequest(np.array(prompt), seed, Sampling(10)) for seed in range(4)]
    )
    rows = []
    for i, answer in enumerate(answers):
        tokens = np.concatenate([prompt, answer.tokens])
        logprobs = np.concatenate([np.zeros(len(prompt), np.float32), answer.logprobs])
        mask = np.arange(len(tokens)) >= len(prompt)
        rows.append(Trajectory(f"a_{i}", "a", tokens, mask, logprobs, 0.0, {}, {"problem": "p"}))
    learner = Learner(role.handle, get("grpo"), LearnerSettings(lr=1e-3))
    metrics = learner.update(rows, np.array([1.0, -1.0, 0.5, -0.5]))
    reached = {name for name, where in learner.reached() if where.any()}
    missed = set(role.handle.parameters()) - reached
    # The second factor of an adapter is 0 at first, so the first one has no gradient yet.
    assert not {name for name in missed if "lora_A" not in name}
    return metrics["mismatch/max"]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_full_weights(load_role, tmp_path: Path, name: str, dtype: str) -> None:
    if table()[name][dtype == "bfloat16"] == "no":
        with pytest.raises(UserError, match=f"do not compute in {dtype}"):
            load_role(NAMES[name], dtype=dtype)
        return
    role = load_role(NAMES[name], dtype=dtype)
    assert learn(role) < (1e-3 if dtype == "float32" else 0.5)
    role.handle.save(tmp_path)
    before = {key: value.clone() for key, value in role.handle.module.state_dict().items()}
    with torch.no_grad():
        for weight in role.handle.parameters().values():
            weight.zero_()
    role.handle.load_weights(tmp_path)
    assert all(torch.equal(before[key], v) for key, v in role.handle.module.state_dict().items())


@pytest.mark.parametrize("name", NAMES)
def test_adapters(load_role, tmp_path: Path, name: str) -> None:
    role = load_role(NAMES[name], lora=LoraSpec(rank=2))
    adapted = {n.rsplit(".lora_", 1)[0].rsplit(".", 1)[-1] for n in role.handle.parameters()}
    assert adapted == set(re.findall(r"`(\w+)`", table()[name][2]))
    assert learn(role) < 1e-3
    role.handle.save(tmp_path)
    again = load_role(NAMES[name], lora=LoraSpec(adapter=str(tmp_path)))
    own, other = role.handle.parameters(), again.handle.parameters()
    assert all(torch.equal(own[key], other[key]) for key in own)
