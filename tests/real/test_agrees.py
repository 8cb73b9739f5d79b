"""On real weights: the prompts, tokens, losses and gradients of transformers and TRL."""

import importlib.util
from pathlib import Path

import numpy as np
import pytest
import torch
from transformers import AutoModelForCausalLM

from coterie.agents.models.gguf import converted
from coterie.agents.models.loading import LoadedRole
from coterie.agents.sampling import Sampler, SamplingRequest
from coterie.algorithms import LearnerSettings, get
from coterie.algorithms.credit import advantages
from coterie.algorithms.learner import Learner
from coterie.datatypes import Sampling, Trajectory

pytestmark = pytest.mark.real

QUESTIONS = ("Jane has 3 apples and buys 12.\n\n2. How many?", "What is 7 + 8?")
TOKENS = 12


def test_a_prompt_is_what_transformers_makes_of_it(real: tuple[str, LoadedRole]) -> None:
    _, role = real
    for question in QUESTIONS:
        if role.tokenizer.chat_template:
            turn = [{"role": "user", "content": question}]
            expected = role.tokenizer.apply_chat_template(
                turn, add_generation_prompt=True, return_dict=False
            )
        else:
            expected = role.tokenizer(question).input_ids
        assert role.codec.open(question) == expected
    assert role.codec.open("7")[0] == role.tokenizer.bos_token_id


# By the rules of llama.cpp: SmolLM2's digits stand alone, and so does the white space before them;
# of Gemma's pieces the best is joined first.
KNOWN = {
    "smollm2": ["The", "Ġanswer", "Ġ", "1", "9", "9", "8", "ĊĊ", "2", ".", "ĠYes"],
    "gemma3": ["The", "▁answer", "▁", "1", "9", "9", "8", "\n\n", "2", ".", "▁Yes"],
}


def test_text_is_cut_as_the_model_learned_it(real: tuple[str, LoadedRole]) -> None:
    name, role = real
    assert role.tokenizer.tokenize("The answer 1998\n\n2. Yes") == KNOWN[name]


def test_greedy_tokens_are_those_of_generate(real: tuple[str, LoadedRole], weights) -> None:
    name, role = real
    sampler = Sampler(role.handle, role.codec.decode, ())
    rows = [
        SamplingRequest(
            np.array(role.codec.open(question)), seed, Sampling(TOKENS, temperature=0.0)
        )
        for seed, question in enumerate(QUESTIONS)
    ]
    plain = AutoModelForCausalLM.from_pretrained(converted(weights(name)), dtype=torch.float32)
    for row, out in zip(rows, sampler.sample(rows)):
        ids = torch.from_numpy(row.tokens)[None]
        expected = plain.generate(
            ids, attention_mask=torch.ones_like(ids), max_new_tokens=TOKENS, do_sample=False,
            eos_token_id=[],
        )  # fmt: skip
        assert out.tokens.tolist() == expected[0, ids.shape[1] :].tolist()


def test_gemma_reads_what_begins_with_a_bos(real: tuple[str, LoadedRole]) -> None:
    name, role = real
    if name != "gemma3":
        pytest.skip("SmolLM2's file asks for no BOS")
    ids = torch.tensor([role.codec.open("The capital of France is")])
    with torch.no_grad():
        model = role.handle.causal_lm
        with_bos = float(model(input_ids=ids, labels=ids).loss)
        without = float(model(input_ids=ids[:, 1:], labels=ids[:, 1:]).loss)
    assert with_bos == pytest.approx(3.99, abs=0.05)
    assert without == pytest.approx(9.75, abs=0.05)


def trl():
    """What compares with TRL on a tiny model."""
    path = Path(__file__).parents[1] / "algorithms/test_trl.py"
    spec = importlib.util.spec_from_file_location("trl_reference", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def rows_of(role: LoadedRole) -> list[Trajectory]:
    rows = []
    for number in range(4):
        prompt = role.codec.open(QUESTIONS[number // 2])
        answer = role.codec.extend(f" The answer is {number * 7}.")[: 5 + number]
        mask = np.array([False] * len(prompt) + [True] * len(answer))
        rows.append(
            Trajectory(
                agent=f"a_{number}",
                role="a",
                tokens=np.array(prompt + answer),
                mask=mask,
                logprobs=np.where(mask, -2, 0).astype(np.float32),
                reward=0.0,
                reward_terms={},
                groups={},
            )
        )
    return rows


@pytest.mark.parametrize("algo", ["grpo", "gspo"])
def test_losses_and_gradients_are_those_of_trl(
    real: tuple[str, LoadedRole], weights, algo: str
) -> None:
    name, role = real
    theirs, handle, rows = trl(), role.handle, rows_of(role)
    algorithm = get(algo)
    advantage_B = advantages(np.array([1.0, 0.0, 0.0, 1.0]), np.arange(4) // 2, algorithm)
    learner = Learner(
        handle,
        algorithm,
        LearnerSettings(importance_correction="none", skip_idle_rows=False),
    )
    # Old probabilities are those of the file; then both models move away in the same way.
    plain = AutoModelForCausalLM.from_pretrained(converted(weights(name)), dtype=torch.float32)
    theirs.add_fused_lm_head(plain, outputs=("log_probs", "entropy"))
    trainer, inputs = theirs.trl_trainer(**theirs.TRL[algo]), theirs.trl_inputs(rows, advantage_B)
    inputs["old_per_token_logps"] = theirs.trl_logps(trainer, plain, inputs)
    start = {name: p.detach().clone() for name, p in handle.parameters().items()}
    old = learner._snapshot(rows)
    generator = torch.Generator().manual_seed(5)
    try:
        with torch.no_grad():
            for p in handle.parameters().values():
                p += 0.002 * p.std().nan_to_num() * torch.randn(p.shape, generator=generator)
        plain.load_state_dict(handle.causal_lm.state_dict())
        loss, *_ = learner._gradient(rows, advantage_B, old, None, range(4))
        expected = trainer._compute_loss(plain, inputs)
        expected.backward()
        assert loss == pytest.approx(float(expected.detach()), rel=1e-4, abs=1e-6)
        other = {name: p.grad for name, p in plain.named_parameters()}
        worst = 0.0
        for key, p in handle.parameters().items():
            scale = max(float(other[key].abs().max()), 1e-6)
            worst = max(worst, float((p.grad - other[key]).abs().max()) / scale)
        assert worst < 1e-3
        assert sum(float(p.grad.norm()) for p in handle.parameters().values()) > 0.01
    finally:
        with torch.no_grad():
            for key, p in handle.parameters().items():
                p.copy_(start[key])
                p.grad = None
