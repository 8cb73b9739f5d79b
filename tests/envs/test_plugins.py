"""Packages that bring environments, installed as pip leaves them: a module and its dist-info."""

import warnings
from collections.abc import Callable
from pathlib import Path

import pytest

import envs
from launch.command_line import parse
from train import main
from vocabulary import UserError

GOOD = """
from gymnasium import spaces
from pettingzoo import ParallelEnv

class Solo(ParallelEnv):
    metadata = {"name": "solo_v0"}
    render_mode = None
    def __init__(self):
        self.possible_agents = ["me_0"]
        self.space = spaces.Text(9)
    def observation_space(self, agent): return self.space
    def action_space(self, agent): return self.space
    def reset(self, seed=None, options=None):
        self.agents = ["me_0"]
        return {"me_0": "hello"}, {"me_0": {}}

class Nobody(Solo):
    def __init__(self): pass

class Numbered(Solo):
    def __init__(self):
        super().__init__()
        self.possible_agents = [0, 1]

class Failing(Solo):
    def __init__(self): self.words = open("/nowhere/words.txt")

class Board:
    pass

class Spaceless(Solo):
    def action_space(self, agent): return {"text": str}

def raw(): return Solo()
"""
SPECS = """
from envs import EnvSpec
SPEC = EnvSpec(name="solo", version=1, factory="good_one:Solo", roles=("me",))
LOST = EnvSpec(name="lost", version=1, factory="good_one:Nothing", roles=("me",))
LOOSE = EnvSpec(name="loose", version=1, factory="good_one:Solo", roles=("me",), settings=dict)
"""

Install = Callable[..., Path]


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Install:
    """Installs a package of environments: ``install("my-pkg", modules, name="module:Class")``."""

    def put(package: str, modules: dict[str, str] | None = None, **entries: str) -> Path:
        folder = tmp_path / package
        info = folder / f"{package.replace('-', '_')}-1.0.dist-info"
        info.mkdir(parents=True)
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.0\n")
        lines = [f"{name.replace('_', '-')} = {value}" for name, value in entries.items()]
        (info / "entry_points.txt").write_text("\n".join(["[coterie.environments]", *lines, ""]))
        for name, source in (modules or {}).items():
            (folder / f"{name}.py").write_text(source)
        monkeypatch.syspath_prepend(str(folder))
        return folder

    return put


@pytest.fixture
def good(install: Install) -> None:
    install("good-pkg", {"good_one": GOOD, "good_specs": SPECS}, solo="good_specs:SPEC")


@pytest.mark.usefixtures("good")
def test_an_installed_package_adds_a_name() -> None:
    assert "solo" in envs.names()
    assert envs.spec("solo").version == 1
    assert envs.make("solo").possible_agents == ["me_0"]


@pytest.mark.usefixtures("good")
@pytest.mark.parametrize("value", ["good_one:Solo", "good_one:raw"])
def test_a_package_that_imports_nothing_of_ours_names_a_class_or_a_function(
    install: Install, value: str
) -> None:
    install("plain-pkg", plain_one=value)
    found = envs.spec("plain-one")
    assert (found.name, found.roles, found.settings) == ("plain-one", ("me",), None)
    observations, _ = envs.make("plain-one").reset()
    assert observations["me_0"]["tokens"].tolist() == list(b"hello")
    assert parse(["--env", "plain-one", "--agents.me.model", "tiny:alice"]).choice.roles == ("me",)


BROKEN = [
    ("nothing_there:Env", "cannot be loaded: ModuleNotFoundError: No module named 'nothing_there'"),
    ("needs_more:Env", "cannot be loaded: ModuleNotFoundError: No module named 'not_installed'"),
    ("no_python:Env", "cannot be loaded: SyntaxError: "),
    ("leaves:Env", "cannot be loaded: SystemExit: 3"),
    ("good_one:Nothing", "cannot be loaded: AttributeError: module 'good_one' has no attribute"),
    ("good_one", "is a module; it must be an envs.EnvSpec, a PettingZoo environment class or a"),
    ("good_one:Solo.metadata", "is a dict; it must be an envs.EnvSpec, a PettingZoo environment"),
    ("good_one:Failing", "cannot be built: FileNotFoundError: .*words.txt"),
    ("good_one:Board", "makes a Board, which is neither a pettingzoo.ParallelEnv nor a"),
    ("good_one:Nobody", "possible_agents of Nobody is None; list the names"),
    ("good_one:Numbered", r"possible_agents of Numbered is \[0, 1\]; list the names"),
    ("good_specs:SPEC", "is an EnvSpec named 'solo'; give both one name"),
]


@pytest.mark.usefixtures("good")
@pytest.mark.parametrize(("value", "cause"), BROKEN)
def test_a_broken_registration_names_package_entry_point_and_cause(
    install: Install, value: str, cause: str, capsys: pytest.CaptureFixture[str]
) -> None:
    modules = {
        "needs_more": "import not_installed",
        "no_python": "def (",
        "leaves": "import sys; sys.exit(3)",
    }
    install("broken-pkg", modules, broken=value)
    sentence = rf"env 'broken' \(entry point {value} of package broken-pkg\)(:| ).*{cause}"
    with pytest.raises(UserError, match=sentence) as caught:
        envs.spec("broken")
    assert "\n" not in str(caught.value)
    # On the command line: that sentence and exit code 2. Nobody else is in its way.
    assert main(["--env", "broken"]) == 2
    assert capsys.readouterr().err == f"train.py: {caught.value}\n"
    assert "broken" in envs.names()
    assert parse(["--env", "core-teaching"]).choice.env == "core-teaching"
    assert envs.make("solo").possible_agents == ["me_0"]


@pytest.mark.usefixtures("good")
def test_specs_that_lead_nowhere(install: Install) -> None:
    install("more-pkg", lost="good_specs:LOST", loose="good_specs:LOOSE")
    with pytest.raises(UserError, match=r"good_specs:LOST of package more-pkg\) cannot be loaded"):
        envs.make("lost")
    with pytest.raises(
        UserError, match=r"EnvSpec\.settings must be a dataclass, each field a flag"
    ):
        envs.spec("loose")


@pytest.mark.usefixtures("good")
def test_an_environment_without_spaces_is_named() -> None:
    with pytest.raises(UserError, match=r"Spaceless: action_space\('me_0'\) is a dict, not a gym"):
        envs.make("good_one:Spaceless")


@pytest.mark.usefixtures("good")
def test_one_name_of_two_packages_is_nobodys(install: Install) -> None:
    install("second-pkg", solo="good_one:Solo")
    with pytest.raises(
        UserError,
        match=r"env 'solo' is registered 2 times: entry point good_one:Solo of package second-pkg; "
        r"entry point good_specs:SPEC of package good-pkg\. Uninstall all but one",
    ):
        envs.spec("solo")
    assert envs.make("good_one:Solo").possible_agents == ["me_0"]


@pytest.mark.usefixtures("good")
def test_a_name_of_ours_stays_ours(install: Install) -> None:
    install("greedy-pkg", core_teaching="good_one:Solo")
    with pytest.warns(
        UserWarning,
        match="'core-teaching' is one of ours; entry point good_one:Solo of package greedy-pkg is "
        "passed over.* --env good_one:Solo",
    ):
        assert envs.spec("core-teaching").roles == ("alice", "bob")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert "alice_0" in envs.make("core-teaching").possible_agents
