"""Teams: who learns, who answers in which vocabulary, and what is imported for them."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from transformers import AutoModelForCausalLM, AutoTokenizer

from coterie.agents.sampling.policy import LocalPolicy
from coterie.agents.team import AgentSettings, LearningSetup, Team, build_team
from coterie.algorithms import LearnerSettings, get
from coterie.datatypes import PolicyFailure, Prompt, Sampling
from coterie.envs.bytes_codec import BytesCodec
from coterie.experts import ExpertPool, TranslatedPolicy

LEARNING = LearningSetup(get("gspo"), LearnerSettings(), temperature=1.0, total_steps=2)
USELESS = "scripted:useless?useless_text=hm"
MIXED = {
    "carol": AgentSettings(USELESS, trained=False),
    "alice": AgentSettings("tiny:alice"),
    "pool": AgentSettings(f"pool:tiny:bob|{USELESS}", trained=False),
}


async def said(team: Team, role: str, codec: Any = None) -> str:
    codec = codec or team.codecs[role]
    prompt = Prompt(np.array(codec.open("7 + 8 =")), "7 + 8 =", f"{role}_0", 1)
    answer = await team.interpreter(role, codec)(prompt, Sampling(8))
    return codec.decode(answer.tokens)


async def test_players_speak_the_vocabulary_of_the_first_role_with_a_model() -> None:
    team = build_team(MIXED, learning=LEARNING)
    assert set(team.trained) == set(team.loaded) == {"alice"}
    assert len({tuple(codec.open("7 + 8 =")) for codec in team.codecs.values()}) == 1
    assert isinstance(team.policies["alice"], LocalPolicy)
    assert isinstance(team.policies["pool"], ExpertPool)
    assert isinstance(team.policies["pool"].experts["0"], TranslatedPolicy)
    assert await said(team, "carol") == "hm"
    assert await said(team, "pool") != ""
    await team.aclose()


async def test_apart_players_speak_bytes_and_are_translated() -> None:
    team = build_team(MIXED, together=False)
    alice = team.codecs["alice"]
    assert isinstance(team.codecs["carol"], BytesCodec)
    assert isinstance(team.codecs["pool"], BytesCodec)
    assert not isinstance(alice, BytesCodec)
    async with team.open():
        assert await said(team, "carol") == await said(team, "carol", alice) == "hm"
        assert team.interpreter("alice", alice) is team.policies["alice"]


async def test_without_learning_nobody_learns() -> None:
    team = build_team({"alice": AgentSettings("tiny:alice"), "bob": AgentSettings("tiny:bob")})
    assert team.trained == {}
    weights = [w for role in team.loaded.values() for w in role.handle.module.parameters()]
    assert weights
    assert not any(weight.requires_grad for weight in weights)
    async with team.open():
        assert await said(team, "alice") != ""


async def test_a_trained_role_is_written_to_a_folder_named_by_text(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    team = build_team({"alice": AgentSettings("tiny:alice")}, learning=LEARNING)
    trained = team.trained["alice"]
    plain = trained.save("kept/alice")
    trained.load("kept/alice", plain)
    trained.export("for-others")
    assert (tmp_path / "kept" / "alice" / "optimizer.safetensors").is_file()
    assert (tmp_path / "for-others" / "model.safetensors").is_file()
    assert not (tmp_path / "for-others" / "optimizer.safetensors").exists()
    # Nothing is left where nothing can be written.
    (tmp_path / "file").touch()
    before = sorted(tmp_path.rglob("*"))
    for wrong, error in ((3, TypeError), (None, TypeError), ("file", OSError), ("file/x", OSError)):
        for write in (trained.save, trained.export):
            with pytest.raises(error):
                write(wrong)  # type: ignore[arg-type]
    monkeypatch.setattr(trained, "state_dict", lambda: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        trained.save("half")
    assert sorted(tmp_path.rglob("*")) == before
    await team.aclose()


async def test_an_exported_adapter_loads_like_a_whole_model(tmp_path: Path) -> None:
    agents = {"alice": AgentSettings("tiny:alice", tuning="lora")}
    team = build_team(agents, learning=LEARNING)
    team.trained["alice"].export(tmp_path / "for-others")
    tokenizer = AutoTokenizer.from_pretrained(tmp_path / "for-others")
    assert tokenizer.encode("7 + 8 =") == team.loaded["alice"].tokenizer.encode("7 + 8 =")
    model = AutoModelForCausalLM.from_pretrained(tmp_path / "for-others")
    assert any("lora_A" in name for name, _ in model.named_parameters())
    team.trained["alice"].save(tmp_path / "checkpoint")
    assert not list((tmp_path / "checkpoint").glob("tokenizer*"))
    await team.aclose()


async def test_any_part_of_a_team_may_be_frozen_on_engines_too(file_engine: Any) -> None:
    from coterie.agents.vllm.settings import VllmSettings

    agents = {"alice": AgentSettings("tiny:alice"), "bob": AgentSettings("tiny:bob", trained=False)}
    team = build_team(agents, learning=LEARNING, vllm=VllmSettings())
    here = build_team(agents)
    async with team.open(), here.open():
        assert set(team.trained) == {"alice"}
        for role in agents:
            assert await said(team, role) == await said(here, role)
    assert file_engine.started
    assert all(engine.closed for engine in file_engine.started)


async def test_the_silent_script_fails_whoever_asks() -> None:
    team = build_team({"nobody": AgentSettings("scripted:silent")})
    with pytest.raises(PolicyFailure, match="silent"):
        await said(team, "nobody")


def test_scripts_and_servers_need_no_torch() -> None:
    code = """
import sys
from coterie.agents.team import AgentSettings, build_team

names = {"a": "scripted:oracle", "b": "server:http://127.0.0.1:1/v1?model=x", "c": "pool:scripted:silent"}
team = build_team({role: AgentSettings(name) for role, name in names.items()})
assert set(team.policies) == set("abc")
heavy = {"torch", "transformers", "peft"} & set(sys.modules)
assert not heavy, heavy
"""  # noqa: E501
    subprocess.run([sys.executable, "-c", code], check=True)
