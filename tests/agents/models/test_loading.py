"""Sharing, freezing, saving and restoring; what cannot be loaded is told in one sentence."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from peft import PeftModel
from transformers import AutoModelForCausalLM, AutoTokenizer

from coterie.agents.models.loading import load_team
from coterie.agents.models.locate import check_model, named_adapter
from coterie.agents.models.lora import resolve_targets
from coterie.agents.models.papers import CONFIGS
from coterie.agents.models.spec import LoraSpec, ModelSpec
from coterie.agents.sampling import Sampler, SamplingRequest
from coterie.datatypes import Sampling, UserError
from miniatures.shapes import build

IDS = torch.tensor([[5, 9, 77, 12, 3, 44]])


def logits(handle) -> torch.Tensor:
    with torch.no_grad(), handle.active():
        return handle.head(handle.backbone(IDS))


@pytest.fixture
def lora_pair(checkpoint):
    """Two roles with adapters of their own on one base, by the base's name."""

    def load(name: str):
        lora = LoraSpec(rank=4), LoraSpec(rank=2, targets=("o_proj", "down_proj"))
        specs = {
            role: ModelSpec(str(checkpoint(name)), device="cpu", lora=own)
            for role, own in zip(("alice", "bob"), lora)
        }
        team = load_team(specs, set(specs))
        return team["alice"].handle, team["bob"].handle

    return load


def test_lora_roles_share_one_base(lora_pair, load_role) -> None:
    alice, bob = lora_pair("qwen3")
    own = {id(p) for h in (alice, bob) for p in h.parameters().values()}
    base = {p.data_ptr() for p in alice.module.parameters() if id(p) not in own}
    assert base == {p.data_ptr() for p in bob.module.parameters() if id(p) not in own}
    assert len(base) == len(list(load_role("qwen3").handle.module.parameters()))
    # 2 layers x 7 projections x (A, B), and 2 x 2 x 2.
    assert (len(alice.parameters()), len(bob.parameters())) == (28, 8)
    assert not any("alice" in name for name in alice.parameters())


def test_frozen_roles_share_one_base(checkpoint) -> None:
    spec = ModelSpec(str(checkpoint("qwen3")), device="cpu")
    other = replace(spec, dtype="bfloat16")
    specs = {"first": spec, "second": spec, "learner": spec, "other": other}
    team = load_team(specs, {"learner"})
    modules = {role: role_.handle.module for role, role_ in team.items()}
    assert modules["first"] is modules["second"]
    assert len({id(module) for module in modules.values()}) == 3
    # The learner has weights of its own.
    assert team["learner"].handle.parameters()
    assert not team["first"].handle.parameters()
    torch.testing.assert_close(logits(team["first"].handle), logits(team["second"].handle))


def test_every_saved_adapter_names_its_base(
    checkpoint, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its place for every working directory, and its commit."""
    base = checkpoint("qwen3")
    monkeypatch.chdir(base.parent)
    spec = ModelSpec(base.name, device="cpu", lora=LoraSpec(rank=4), revision="abc")
    # peft names it for the first adapter on a base only.
    for role, loaded in load_team({"alice": spec, "bob": spec}, set()).items():
        loaded.handle.save(tmp_path / role)
        adapter = named_adapter(str(tmp_path / role))
        assert adapter is not None
        assert (adapter.base, adapter.base_revision) == (str(base), "abc")


def test_each_adapter_acts_alone(lora_pair, shake) -> None:
    alice, bob = lora_pair("llama")
    start = logits(alice)
    torch.testing.assert_close(start, logits(bob), rtol=0, atol=0)
    shake(alice, 1)
    assert (logits(alice) - start).abs().max() > 1e-2
    torch.testing.assert_close(logits(bob), start, rtol=0, atol=0)
    shake(bob, 2)
    mine = logits(alice)
    assert (mine - logits(bob)).abs().max() > 1e-2
    with alice.reference(), torch.no_grad():
        torch.testing.assert_close(alice.head(alice.backbone(IDS)), start)
        with pytest.raises(RuntimeError, match="answers for 'role-alice'"):
            bob.backbone(IDS)
    torch.testing.assert_close(logits(alice), mine, rtol=0, atol=0)


def test_gradients_reach_the_active_adapter_only(lora_pair, shake) -> None:
    alice, bob = lora_pair("mistral")
    shake(alice, 1)
    shake(bob, 2)
    for handle, other in ((alice, bob), (bob, alice), (alice, bob)):
        for p in (*handle.parameters().values(), *other.parameters().values()):
            p.grad = None
        with handle.active():
            handle.head(handle.backbone(IDS)).logsumexp(-1).sum().backward()
        assert all(
            p.grad is not None and p.grad.abs().sum() > 0 for p in handle.parameters().values()
        )
        assert all(p.grad is None for p in other.parameters().values())
    frozen = [p for n, p in alice.module.named_parameters() if "lora_" not in n]
    assert not any(p.requires_grad for p in frozen)


def test_full_weights_are_separate_copies_and_frozen_roles_stay_frozen(checkpoint, shake) -> None:
    spec = ModelSpec(str(checkpoint("qwen3")), device="cpu")
    team = load_team(dict.fromkeys(("alice", "bob", "judge"), spec), {"alice", "bob"})
    alice, bob, judge = (team[r].handle for r in ("alice", "bob", "judge"))
    start = logits(bob)
    shake(alice, 1)
    torch.testing.assert_close(logits(bob), start, rtol=0, atol=0)
    assert not alice.module.training
    assert judge.parameters() == {}
    assert not any(p.requires_grad for p in judge.module.parameters())
    assert all(p.requires_grad for p in alice.parameters().values())
    with pytest.raises(NotImplementedError, match="no copy"), alice.reference():
        pass


@pytest.mark.parametrize("name", ["qwen3", "phi3"])
def test_full_weights_come_back_bit_for_bit(load_role, shake, tmp_path: Path, name: str) -> None:
    role = load_role(name)
    shake(role.handle, 1)
    want = logits(role.handle)
    role.handle.save(tmp_path)
    assert {p.suffix for p in tmp_path.iterdir()} == {".json", ".safetensors", ".jinja"}
    theirs = AutoModelForCausalLM.from_pretrained(tmp_path).eval()
    with torch.no_grad():
        torch.testing.assert_close(theirs(IDS).logits, want, rtol=1e-6, atol=1e-6)
    assert AutoTokenizer.from_pretrained(tmp_path).encode("7 + 8") == role.tokenizer.encode("7 + 8")
    sampler = Sampler(role.handle, role.codec.decode, ())
    rows = [SamplingRequest(np.array([5, 6, 7]), 1, Sampling(8))]
    mine = sampler.sample(rows)[0]
    shake(role.handle, 2)
    assert sampler.sample(rows)[0].logprobs.tolist() != mine.logprobs.tolist()
    role.handle.load_weights(tmp_path)
    torch.testing.assert_close(logits(role.handle), want, rtol=0, atol=0)
    # The sampler follows, though the version is the one that it has seen last.
    assert sampler.sample(rows)[0].logprobs.tolist() == mine.logprobs.tolist()


@pytest.mark.parametrize("name", ["qwen3", "phi3"])
def test_adapters_are_peft_s(checkpoint, load_role, lora_pair, shake, tmp_path: Path, name) -> None:
    alice, bob = lora_pair(name)
    shake(alice, 1)
    shake(bob, 2)
    want = logits(alice)
    alice.save(tmp_path)
    files = {"adapter_config.json", "adapter_model.safetensors"}
    assert {path.name for path in tmp_path.iterdir()} == files
    base = AutoModelForCausalLM.from_pretrained(checkpoint(name))
    theirs = PeftModel.from_pretrained(base, str(tmp_path)).eval()
    with torch.no_grad():
        torch.testing.assert_close(theirs(input_ids=IDS).logits, want, rtol=1e-5, atol=1e-5)
    shake(alice, 3)
    alice.load_weights(tmp_path)
    torch.testing.assert_close(logits(alice), want, rtol=0, atol=0)
    # A later run, and a frozen role, start from the folder.
    given = LoraSpec(adapter=str(tmp_path))
    again = load_role(name, lora=given, trained=False).handle
    torch.testing.assert_close(logits(again), want, rtol=1e-6, atol=1e-6)
    assert not any(p.requires_grad for p in again.module.parameters())
    with pytest.raises(UserError, match="other layers or of another rank"):
        load_role(name, lora=LoraSpec(rank=3)).handle.load_weights(tmp_path)


def test_new_adapters_follow_the_seed(checkpoint) -> None:
    spec = ModelSpec(str(checkpoint("qwen3")), device="cpu", lora=LoraSpec(rank=4))

    def start(role: str, seed: int) -> torch.Tensor:
        handle = load_team({role: spec}, {role}, seed=seed)[role].handle
        return torch.cat([p.detach().flatten() for p in handle.parameters().values()])

    assert torch.equal(start("alice", 1), start("alice", 1))
    assert not torch.equal(start("alice", 1), start("alice", 2))
    assert not torch.equal(start("alice", 1), start("bob", 1))
    # Peft warns of adapters whose name it takes for a part of its own.
    assert len(start("a", 1)) == len(start("lora", 1)) == len(start("dr.x", 1))


def test_fused_layers_take_all_of_their_parts(load_role) -> None:
    phi3 = load_role("phi3").handle.module
    assert sorted(resolve_targets(phi3, LoraSpec().targets)) == [
        "down_proj", "gate_up_proj", "o_proj", "qkv_proj",
    ]  # fmt: skip
    with pytest.raises(UserError, match="fuses q_proj, k_proj, v_proj into qkv_proj"):
        resolve_targets(phi3, ("q_proj", "v_proj"))
    with pytest.raises(UserError, match=r"w1 are not linear layers.*it has down_proj"):
        resolve_targets(phi3, ("w1",))


def test_layers_that_are_not_called_as_in_llama_are_all_taken(load_role) -> None:
    phi2 = load_role("phi2").handle.module
    every = ["dense", "fc1", "fc2", "k_proj", "q_proj", "v_proj"]
    assert resolve_targets(phi2, ()) == resolve_targets(phi2, ("all-linear",)) == every
    assert resolve_targets(phi2, ("q_proj", "fc1")) == ["q_proj", "fc1"]
    qwen3 = load_role("qwen3").handle.module
    assert sorted(resolve_targets(qwen3, ())) == resolve_targets(qwen3, ("all-linear",))


def test_what_cannot_bear_an_adapter_is_refused_with_a_way_out(load_role, monkeypatch) -> None:
    lora = LoraSpec(targets=("out_proj",))
    with pytest.raises(UserError, match=r"out_proj are not linear layers .*; it has in_proj"):
        load_role("mamba", lora=lora)
    monkeypatch.setattr("coterie.agents.models.lora._BYPASSED", {})
    with pytest.raises(UserError, match=r"type 'mamba': .*lora-targets, or .* full \(ValueError"):
        load_role("mamba", lora=lora)


def test_full_weights_that_would_not_learn_are_refused(load_role) -> None:
    with pytest.raises(UserError, match=r"do not learn in float16.*\.a\.dtype bfloat16"):
        load_role("qwen3", dtype="float16")
    frozen = load_role("qwen3", dtype="float16", trained=False)
    assert frozen.handle.causal_lm.dtype == torch.float16


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_adapters_are_float32_on_any_base(load_role, dtype) -> None:
    adapter = load_role("qwen3", dtype=dtype, lora=LoraSpec(rank=2)).handle.parameters()
    assert {tensor.dtype for tensor in adapter.values()} == {torch.float32}


def test_of_a_model_that_also_sees_the_decoder_of_text_is_trained(
    load_role, tmp_path: Path
) -> None:
    """Ministral 3 (CoRe, section 5): its files hold an encoder of pictures too."""
    from transformers import Mistral3ForConditionalGeneration

    folder = build("mistralai/Ministral-3-3B-Reasoning-2512", tmp_path / "whole")
    role = load_role(folder)
    assert role.cut
    ids = torch.arange(20, 60)[None]
    whole = Mistral3ForConditionalGeneration.from_pretrained(folder)
    with torch.no_grad():
        expected = whole(input_ids=ids).logits
        assert torch.equal(role.handle.head(role.handle.backbone(ids)), expected)
    # What is saved is the decoder alone, with the tied head; a run goes on from it.
    role.handle.save(tmp_path / "saved")
    again = load_role(tmp_path / "saved")
    assert not again.cut
    assert set(again.handle.parameters()) == set(role.handle.parameters())
    with torch.no_grad():
        assert torch.equal(again.handle.head(again.handle.backbone(ids)), expected)


@pytest.mark.parametrize(
    ("name", "billions"),
    # As their cards say; Ministral's 3.4 and .4 of its encoder are 3.8.
    [
        ("Qwen/Qwen2.5-1.5B-Instruct", 1.54),
        ("Qwen/Qwen2.5-3B-Instruct", 3.09),
        ("Qwen/Qwen2.5-7B-Instruct", 7.62),
        ("Qwen/Qwen2.5-32B-Instruct", 32.8),
        ("Qwen/Qwen3-4B-Instruct-2507", 4.02),
        ("Qwen/Qwen3-8B", 8.19),
        ("Qwen/QwQ-32B", 32.8),
        ("meta-llama/Llama-3.1-8B-Instruct", 8.03),
        ("deepseek-ai/DeepSeek-R1-Distill-Qwen-7B", 7.62),
        ("deepseek-ai/DeepSeek-R1-Distill-Qwen-14B", 14.8),
        ("microsoft/Phi-4-mini-reasoning", 3.84),
        ("mistralai/Ministral-3-3B-Reasoning-2512", 3.85),
        ("mistralai/Ministral-3-8B-Reasoning-2512", 8.92),
    ],
)
def test_the_papers_models_have_their_sizes(name: str, billions: float) -> None:
    from transformers import CONFIG_MAPPING, AutoModelForCausalLM, AutoModelForImageTextToText

    fields = dict(CONFIGS[name])
    config = CONFIG_MAPPING[fields.pop("model_type")](**fields)
    auto = AutoModelForImageTextToText if "vision_config" in fields else AutoModelForCausalLM
    with torch.device("meta"):
        size = sum(p.numel() for p in auto.from_config(config).parameters()) / 1e9
    assert size == pytest.approx(billions, rel=0.004)


def test_a_missing_library_of_4_bits_is_named(checkpoint, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("coterie.agents.models.locate.find_spec", lambda name: None)
    spec = ModelSpec(str(checkpoint("llama")), lora=LoraSpec(), dtype="nf4")
    with pytest.raises(UserError, match=r'not installed: pip install -e "\.\[nf4\]"'):
        check_model(spec)
