import pytest

from coterie.datatypes import UserError
from coterie.experts.naming import is_human, is_player, pool_members, read_player
from coterie.experts.settings import HumanSettings, ScriptedSettings, ServerSettings


def test_scripts_and_servers_by_name() -> None:
    assert read_player("scripted:") == ScriptedSettings()
    assert read_player("scripted:random") == ScriptedSettings(kind="random")
    assert read_player("scripted:oracle?p_right=0.8&wrong=7,9&delay_s=1") == ScriptedSettings(
        p_right=0.8, wrong=("7", "9"), delay_s=1.0
    )
    address = "http://127.0.0.1:8000/v1"
    assert read_player(
        f"server:{address}?model=expert&max_tokens=99&send_seed=false&system_prompt=be%20brief"
    ) == ServerSettings(address, "expert", max_tokens=99, send_seed=False, system_prompt="be brief")


def test_people() -> None:
    assert read_player("human:") == HumanSettings()
    assert is_player("human:")
    assert is_human("human:")
    assert is_human("pool:tiny:bob|human:")
    assert not is_human("scripted:useless?useless_text=human:")


def test_pools() -> None:
    assert pool_members("pool:tiny:expert| scripted:useless") == ["tiny:expert", "scripted:useless"]
    assert pool_members("tiny:expert") == ["tiny:expert"]
    assert is_player("pool:a|b")
    assert not is_player("tiny:expert")
    assert not is_player("Qwen/QwQ-32B")


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("scripted:orakel", "kind=orakel is not a value"),
        ("scripted:oracle?p=1", "no option 'p'; known: kind, p_right"),
        ("scripted:oracle?p_right=often", "p_right=often is not a value"),
        ("scripted:oracle?p_right=1.5", "p_right is 1.5; it must be 0 to 1"),
        ("server:http://127.0.0.1:8000", "needs a model name"),
        ("server:nowhere?model=x", "an address like"),
        ("server:http://a?model=x&send_seed=maybe", "send_seed=maybe is not a value"),
        ("human:me", "write human: alone"),
        ("pool:", "write pool"),
        ("pool:pool:a|b", "another pool"),
    ],
)
def test_names_that_make_no_sense(name: str, message: str) -> None:
    with pytest.raises(UserError, match=message):
        pool_members(name) if name.startswith("pool:") else read_player(name)


@pytest.mark.parametrize("key", ["api_key=sk-abc", "api_key_env=sk-abc"])
def test_a_key_in_a_name_is_not_shown(key: str) -> None:
    with pytest.raises(UserError, match="api_key") as error:
        read_player(f"server:http://h/v1?model=x&{key}")
    assert "sk-abc" not in str(error.value)
