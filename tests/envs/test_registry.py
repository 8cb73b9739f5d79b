import subprocess
import sys
import types
from pathlib import Path
from typing import Any

import pettingzoo
import pytest

from coterie import envs
from coterie.datatypes import UserError
from coterie.envs.core_teaching import CoreTeachingEnv, CoreTeachingSettings
from coterie.envs.padded_view import PaddedView
from coterie.envs.registry import ask
from coterie.envs.token_view import TokenView

from .sources import WHOLE

PLUGIN = f"""{WHOLE}
from dataclasses import dataclass, replace
from coterie.envs import EnvSpec
from coterie.envs.preset import Preset, Setting

SPEC = EnvSpec(name="solo", version=1, factory="plugin_of_a_test:Whole", roles=("me",))
@dataclass(frozen=True)
class Loudness:
    words: int = 2
    cap: int = 9

class Loud(Whole):
    def __init__(self, settings=None):
        super().__init__()
        Loud.made_with = settings

HALF = Preset("", "plugin_of_a_test:LOUD", "grpo", {{}}, {{"env.words": Setting(1, "a test")}})
LOUD = EnvSpec(
    name="plugin_of_a_test:LOUD", version=0, factory=Loud, settings=Loudness, roles=("me",),
    defaults={{"env": {{"words": 5}}}}, presets="plugin_of_a_test:PRESETS",
)
LONGER = replace(HALF, settings={{"env.max_new_tokens": Setting(9, "ours")}})
PRESETS = {{"half": HALF, "longer": LONGER}}
ODD = EnvSpec(
    name="odd", version=0, factory=Loud, settings=Loudness, defaults={{"env": {{"volume": 5}}}}
)
"""


@pytest.fixture
def plugin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "plugin_of_a_test.py").write_text(PLUGIN)
    monkeypatch.syspath_prepend(str(tmp_path))


def test_views() -> None:
    assert isinstance(envs.make("core-teaching"), TokenView)
    assert isinstance(envs.make("core-teaching", view="text"), CoreTeachingEnv)
    assert isinstance(envs.make("core-teaching", view="padded"), PaddedView)
    with pytest.raises(UserError, match="choose token, text or padded"):
        envs.make("core-teaching", view="pixels")  # type: ignore[arg-type]


def test_settings_and_roles_reach_the_environment() -> None:
    env: Any = envs.make(
        "core-teaching", settings=CoreTeachingSettings(k_cold=1, k_hinted=0), roles=("x", "y", "z")
    )
    assert env.possible_agents == ["x_0", "y_0", "z_0"]
    spec = envs.spec("core-teaching")
    assert spec.settings is CoreTeachingSettings
    assert (spec.id, spec.roles) == ("core-teaching-v0", ("alice", "bob"))


@pytest.mark.parametrize("call", [envs.make, envs.spec])
def test_unknown_names_say_what_is_known(call: Any) -> None:
    with pytest.raises(
        UserError, match=r"unknown env 'x'; known: .*core-teaching.*; or use pkg\.module:NAME"
    ):
        call("x")


@pytest.mark.usefixtures("plugin")
def test_environments_by_path() -> None:
    env = envs.make("plugin_of_a_test:Whole")
    observations, _ = env.reset(seed=7)
    assert observations["me_0"]["tokens"].tolist() == list(b"say 7")
    assert envs.make("plugin_of_a_test:SPEC").possible_agents == ["me_0", "me_1"]
    assert envs.spec("plugin_of_a_test:Whole").roles == ("me",)
    assert envs.spec("plugin_of_a_test:SPEC").version == 1


@pytest.mark.usefixtures("plugin")
def test_an_environment_of_ones_own_plays_its_defaults_and_presets_from_python() -> None:
    def made(**options: Any) -> Any:
        envs.make("plugin_of_a_test:LOUD", **options)
        return sys.modules["plugin_of_a_test"].Loud.made_with

    assert (made().words, made().cap) == (5, 9)
    assert (made(preset="half").words, made(preset="half").cap) == (1, 9)
    assert made() == envs.settings_of("plugin_of_a_test:LOUD")
    with pytest.raises(UserError, match="preset longer sets max_new_tokens, which"):
        made(preset="longer")


@pytest.mark.usefixtures("plugin")
@pytest.mark.parametrize(
    ("path", "arguments", "sentence"),
    [
        (":Env", {}, "cannot be loaded"),
        ("plugin_of_a_test:Whole", {"roles": ("a",)}, "takes no roles; leave it out"),
        ("plugin_of_a_test:Whole", {"settings": 1}, "takes no settings"),
        ("plugin_of_a_test:ODD", {}, "EnvSpec.defaults names env.volume, which Loudness does not"),
    ],
)
def test_paths_that_lead_nowhere(path: str, arguments: dict[str, Any], sentence: str) -> None:
    with pytest.raises(UserError, match=sentence):
        envs.make(path, **arguments)


@pytest.mark.parametrize(
    ("field", "value", "sentence"),
    [
        ("roles", "alice", r'EnvSpec\.roles is a text; write \("alice",\)'),
        ("defaults", [1], r"EnvSpec\.defaults is \[1\]; it must be an object"),
        ("learns", ("alice",), r"EnvSpec\.learns is \('alice',\); it must be a function"),
    ],
)
def test_fields_of_the_wrong_kind(
    field: str, value: Any, sentence: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    module: Any = types.ModuleType("odd_plugin_of_a_test")
    module.SPEC = envs.EnvSpec("odd_plugin_of_a_test:SPEC", 0, dict, **{field: value})
    monkeypatch.setitem(sys.modules, "odd_plugin_of_a_test", module)
    with pytest.raises(UserError, match=sentence):
        envs.spec("odd_plugin_of_a_test:SPEC")


def test_functions_of_a_spec_have_to_return_what_they_say() -> None:
    wrong: Any = {"learns": lambda settings: None, "learning": lambda roles: 3}
    spec = envs.EnvSpec("odd", 0, dict, **wrong)
    for name in ("learns", "learning"):
        with pytest.raises(UserError, match=rf"EnvSpec\.{name} failed: TypeError"):
            ask(spec, name, ())


def test_a_name_is_taken_once() -> None:
    spec = envs.spec("core-teaching")
    envs.register(spec)
    with pytest.raises(ValueError, match="registered already"):
        envs.register(envs.EnvSpec(name="core-teaching", version=9, factory="a:b"))


def test_pettingzoo_knows_it_after_a_cheap_import() -> None:
    code = (
        "import sys, coterie.envs, pettingzoo;"
        "env = pettingzoo.make('parallel', 'core-teaching-v0');"
        "assert env.possible_agents[0] == 'alice_0';"
        "print(sorted({'torch', 'transformers', 'datasets'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
    assert pettingzoo.make("parallel", "core-teaching-v0", view="text").possible_agents


def test_an_environment_that_speaks_tokens_itself_is_left_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Tokens(TokenView):
        speaks_tokens = True

    own = Tokens(envs.make("core-teaching", view="text"))
    module = types.ModuleType("own_tokens")
    module.make = lambda: own  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "own_tokens", module)
    assert envs.make("own_tokens:make") is own
    with pytest.raises(UserError, match="speaks in token ids"):
        envs.make("own_tokens:make", view="text")
