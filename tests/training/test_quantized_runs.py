"""A run on a base in 4 or 8 bits: killed and taken up again it ends as if nothing had happened."""

import signal
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from peft import PeftModel
from safetensors.torch import load_file
from transformers import AutoModelForCausalLM, AutoTokenizer, Qwen2Config, Qwen2ForCausalLM

from coterie import train
from coterie.agents.models.locate import TINY
from coterie.agents.models.number_format import native_int8

from .test_resume import start, wait_for_step, without_timings

# Every answer is paid for its length, so rewards of random weights differ.
ENVIRONMENT = """
from coterie.envs import Ask, ConversationEnv, Outcome


class Talk(ConversationEnv):
    default_roles = ("alice", "bob")

    def conversation(self, problem, options, random):
        ask = Ask(problem.question, max_new_tokens=6)
        agents = ("alice_0", "bob_0")
        answers = yield dict.fromkeys(agents, ask)
        terms = {agent: {"odd": float(len(answers.get(agent, "")) % 2)} for agent in agents}
        return Outcome(terms=terms)
"""
STEPS = 5


@pytest.fixture(params=["nf4", "int8"])
def dtype(request: pytest.FixtureRequest) -> str:
    if request.param == "nf4":
        pytest.importorskip("bitsandbytes", reason="not run: bitsandbytes is not installed")
    elif native_int8() is None:
        pytest.skip("not run: no avx512_vnni or avx_vnni")
    return request.param


@pytest.fixture
def flags(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, dtype: str) -> list[str]:
    """Two roles on one small Qwen2 of random weights."""
    (tmp_path / "talk_in_codes.py").write_text(ENVIRONMENT)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path), prepend=":")
    tokenizer = AutoTokenizer.from_pretrained(TINY / "alice")
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        config = Qwen2Config(
            vocab_size=len(tokenizer),
            hidden_size=128,
            intermediate_size=256,
            num_hidden_layers=2,
            num_attention_heads=4,
            num_key_value_heads=2,
            max_position_embeddings=256,
            eos_token_id=tokenizer.eos_token_id,
            bos_token_id=None,
        )
        Qwen2ForCausalLM(config).save_pretrained(tmp_path / "model")
    tokenizer.save_pretrained(tmp_path / "model")
    flags = ["--env", "talk_in_codes:Talk", "--steps", str(STEPS), "--threads", "1"]
    flags += ["--rollout.problems-per-step", "4", "--eval.no-enabled"]
    for role in ("alice", "bob"):
        flags += [f"--agents.{role}.model", str(tmp_path / "model"), f"--agents.{role}.tuning"]
        flags += ["lora", f"--agents.{role}.dtype", dtype]
    return flags


def test_full_weights_are_refused_with_a_sentence(
    flags: list[str], refused: Callable[..., str], tmp_path: Path, dtype: str
) -> None:
    full = [word if word != "lora" else "full" for word in flags]
    sentence = refused(train.main, *full, "--run-dir", tmp_path / "run")
    assert f"--agents.alice.dtype {dtype} freezes the weights" in sentence
    assert not (tmp_path / "run").exists()


@pytest.mark.slow
def test_a_killed_run_resumes_bit_for_bit_and_its_adapters_fit_the_model(
    flags: list[str], tmp_path: Path
) -> None:
    whole, broken = tmp_path / "whole", tmp_path / "broken"
    assert train.main([*flags, "--run-dir", str(whole)]) == 0
    process = start(*flags, "--run-dir", str(broken))
    wait_for_step(process, broken, 2)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    assert train.main(["--resume", str(broken)]) == 0
    assert without_timings(whole) == without_timings(broken)
    assert (whole / "episodes.jsonl").read_bytes() == (broken / "episodes.jsonl").read_bytes()
    norms = [line["learner/alice/grad_norm"] for line in without_timings(whole)]
    assert all(isinstance(norm, float) and norm > 0 for norm in norms)
    for role in ("alice", "bob"):
        folder = whole / "final" / role
        ours, theirs = (
            load_file(run / "final" / role / "adapter_model.safetensors") for run in (whole, broken)
        )
        assert all(torch.equal(weight, theirs[name]) for name, weight in ours.items())
        plain = AutoModelForCausalLM.from_pretrained(tmp_path / "model")
        loaded = PeftModel.from_pretrained(plain, str(folder)).state_dict()
        for name, weight in ours.items():
            assert torch.equal(weight, loaded[name.replace(".weight", ".default.weight")])
