"""Roles that a script, a server or a pool plays."""

import asyncio
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from coterie.agents.team.graders import Judge
from coterie.agents.team.players import build_player, check_players, local_models, player_counters
from coterie.agents.team.settings import AgentSettings
from coterie.agents.team.team import PlayerCodec
from coterie.datatypes import Problem, Prompt, Sampling, UserError
from coterie.envs.bytes_codec import BytesCodec
from coterie.experts import ExpertPool, ScriptedPolicy, ServerPolicy, TranslatedPolicy

CODEC = BytesCodec()


def test_what_has_to_be_loaded() -> None:
    agents = {
        "policy": AgentSettings("tiny:policy"),
        "expert": AgentSettings("pool:tiny:expert|scripted:useless|tiny:carol", trained=False),
        "other": AgentSettings("scripted:silent", trained=False),
    }
    check_players(agents)
    models = {name: agent.model for name, agent in local_models(agents).items()}
    assert models == {
        "policy": "tiny:policy",
        "expert|0": "tiny:expert",
        "expert|2": "tiny:carol",
    }


def test_the_key_of_a_server_is_read_before_models_are_loaded(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    name = "pool:tiny:expert|server:http://h/v1?model=x&api_key_env=EXPERT_KEY"
    agents = {"expert": AgentSettings(name, trained=False)}
    monkeypatch.delenv("EXPERT_KEY", raising=False)
    with pytest.raises(UserError, match="EXPERT_KEY, which is not set"):
        check_players(agents)
    monkeypatch.setenv("EXPERT_KEY", "key")
    check_players(agents)


def test_players_answer_in_the_vocabulary_of_the_role() -> None:
    local: Any = {"expert|1": (ScriptedPolicy.__new__(ScriptedPolicy), CODEC)}

    def build(name: str) -> Any:
        return build_player("expert", name, CODEC, codec_name="utf-8", local=local)

    script = build("scripted:gold-hint?hint_template=It%20is%20{answer}")
    problem = Problem("p", "1 + 1 =", "2")
    prompt = Prompt(np.array([1]), "q", "expert_0", 0, problem)
    reply = asyncio.run(script(prompt, Sampling(50)))
    assert CODEC.decode(reply.tokens) == "It is 2"
    assert player_counters({"expert": script})["player/expert/answered"] == 1.0
    assert isinstance(build("server:http://127.0.0.1:1/v1?model=x"), ServerPolicy)
    pool = build("pool:scripted:useless|tiny:expert")
    assert isinstance(pool, ExpertPool)
    assert isinstance(pool.experts["1"], TranslatedPolicy)
    assert "player/expert/0/calls" in player_counters({"expert": pool})
    assert player_counters({"policy": object()}) == {}  # type: ignore[dict-item]


def test_a_cached_server_counts_its_calls_and_those_of_its_cache(tmp_path: Path) -> None:
    name, local = f"server:http://127.0.0.1:1/v1?model=x&cache_dir={tmp_path}", {}
    for expert, seat in ((name, ""), (f"pool:{name}|scripted:useless", "0/")):
        policy = build_player("expert", expert, CODEC, codec_name="utf-8", local=local)
        counters = player_counters({"expert": policy})
        assert counters[f"player/expert/{seat}calls"] == 0.0
        assert counters[f"player/expert/{seat}cache/hits"] == 0.0


def test_a_server_gets_the_role_s_system_message_with_every_request() -> None:
    name, local = "server:http://127.0.0.1:1/v1?model=x", {}
    server: Any = build_player(
        "expert", name, CODEC, codec_name="", local=local, system="Be brief."
    )
    prompt = Prompt(np.array([1]), "why", "expert_0", 0)
    assert server.request(prompt, Sampling(5))["messages"] == [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "why"},
    ]


def test_players_share_a_model_s_codec_without_its_system_message(load_role: Any) -> None:
    told, plain = load_role("qwen3", system="Be brief."), load_role("qwen3")
    assert PlayerCodec(told.codec).open("why") == plain.codec.open("why")


def test_a_local_model_judges_and_a_silent_one_grades_nothing() -> None:
    judge = Judge("tiny:alice", max_new_tokens=4)
    (reply,) = judge(["Question: 1 + 1 =\nLet's solve this step by step:"])
    assert isinstance(reply, str)
    judge.close()
    # Four bytes count as a token.
    wordy = Judge("scripted:useless?useless_text=Certainly correct!", max_new_tokens=4)
    assert wordy(["x"]) == ["Certainly correc"]
    wordy.close()
    silent = Judge("scripted:silent", max_new_tokens=4)
    assert silent(["a", "b"]) == [None, None]
    silent.close()
