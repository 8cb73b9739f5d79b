"""Packages that bring environments, installed as pip leaves them: a module and its dist-info."""

import warnings
from collections.abc import Callable
from pathlib import Path

import pytest

from coterie import envs
from coterie.cli.command_line import parse
from coterie.datatypes import UserError
from coterie.train import main

from .sources import WHOLE

GOOD = f"""{WHOLE}
class Nobody(Whole):
    def __init__(self): pass



class Failing(Whole):
    def __init__(self): self.words = open("/nowhere/words.txt")

class Board:
    pass

class Spaceless(Whole):
    def action_space(self, agent): return {{"text": str}}

def raw(): return Whole()
"""
SPECS = """
from dataclasses import dataclass
from coterie.envs import EnvSpec
SPEC = EnvSpec(name="lonely", version=1, factory="good_one:Whole", roles=("me",))
@dataclass
class Soft:
    rounds: int = 2

SOFT = EnvSpec(name="broken", version=1, factory="good_one:Whole", roles=("me",), settings=Soft)
LOST = EnvSpec(name="lost", version=1, factory="good_one:Nothing", roles=("me",))
LOOSE = EnvSpec(name="broken", version=1, factory="good_one:Whole", roles=("me",), settings=dict)
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
    install("good-pkg", {"good_one": GOOD, "good_specs": SPECS}, lonely="good_specs:SPEC")


@pytest.mark.usefixtures("good")
def test_an_installed_package_adds_a_name() -> None:
    assert "lonely" in envs.names()
    assert envs.spec("lonely").version == 1
    assert envs.make("lonely").possible_agents == ["me_0", "me_1"]


@pytest.mark.usefixtures("good")
@pytest.mark.parametrize("value", ["good_one:Whole", "good_one:raw"])
def test_a_package_that_imports_nothing_of_ours_names_a_class_or_a_function(
    install: Install, value: str
) -> None:
    install("plain-pkg", plain_one=value)
    spec = envs.spec("plain-one")
    assert (spec.name, spec.roles, spec.settings) == ("plain-one", ("me",), None)
    observations, _ = envs.make("plain-one").reset(seed=7)
    assert observations["me_0"]["tokens"].tolist() == list(b"say 7")
    assert parse(["--env", "plain-one", "--agents.me.model", "tiny:alice"]).choice.roles == ("me",)


TOLD = """
from dataclasses import dataclass
from coterie.envs import ConversationEnv, EnvSpec, Outcome

@dataclass(frozen=True)
class Settings:
    rounds: int = 2

class Plain(ConversationEnv):
    default_roles = ("alice", "bob")
    more_roles = True
    def conversation(self, problem, options, random):
        yield dict.fromkeys(self.possible_agents, problem.question)
        return Outcome({})

class Told(Plain):
    settings_class = Settings

class Bare(Told):
    def __init__(self): super().__init__()

SPEC = EnvSpec("told_one:SPEC", 0, Plain, roles=Plain.default_roles)
"""


@pytest.mark.parametrize("name", ["told_one:Plain", "told_one:Told", "told_one:SPEC"])
def test_roles_reach_a_conversation_with_and_without_settings(install: Install, name: str) -> None:
    install("told-pkg", {"told_one": TOLD})
    models = [f"--agents.{role}.model=tiny:alice" for role in ("alice", "bob", "carol")]
    settings = parse(["--env", name, "--roles", "alice", "bob", "carol", *models])
    assert settings.make_env().possible_agents == ["alice_0", "bob_0", "carol_0"]


def test_a_conversation_named_by_its_class_has_its_settings_as_flags(install: Install) -> None:
    install("told-pkg", {"told_one": TOLD})
    models = [f"--agents.{role}.model=tiny:alice" for role in ("alice", "bob")]
    settings = parse(["--env", "told_one:Told", "--env.rounds", "3", *models])
    assert settings.make_env(view="text").settings.rounds == 3
    # Its constructor decides whether there is anything to choose.
    assert envs.spec("told_one:Bare").settings is None


BROKEN = [
    ("nothing_there:Env", "cannot be loaded: ModuleNotFoundError: No module named 'nothing_there'"),
    ("no_python:Env", "cannot be loaded: SyntaxError: "),
    ("leaves:Env", "cannot be loaded: SystemExit: 3"),
    ("good_one:Nothing", "cannot be loaded: AttributeError: module 'good_one' has no attribute"),
    ("good_one", "is a module; it must be a coterie.EnvSpec, a PettingZoo environment class or a"),
    ("good_one:Failing", "cannot be built: FileNotFoundError: .*words.txt"),
    ("good_one:Board", "makes a Board, which is neither a pettingzoo.ParallelEnv nor a"),
    ("good_one:Nobody", "possible_agents of Nobody is None; list the names"),
    ("good_specs:SPEC", "is an EnvSpec named 'lonely'; give both one name"),
    ("good_specs:LOOSE", r"EnvSpec\.settings must be a frozen dataclass, each field a flag"),
    ("good_specs:SOFT", r"EnvSpec\.settings must be a frozen dataclass, each field a flag"),
    ("good_one.Whole", r"ModuleNotFound.* Is a colon missing\? It is written module:attribute\."),
    ("wordy:Env", "cannot be loaded: ImportError: first second xxx"),
]


@pytest.mark.usefixtures("good")
@pytest.mark.parametrize(("value", "cause"), BROKEN)
def test_a_broken_registration_names_package_entry_point_and_cause(
    install: Install, value: str, cause: str, capsys: pytest.CaptureFixture[str]
) -> None:
    modules = {
        "no_python": "def (",
        "leaves": "import sys; sys.exit(3)",
        "wordy": "raise ImportError('first\\n\\nsecond ' + 'x' * 10**6)",
    }
    install("broken-pkg", modules, broken=value)
    sentence = rf"env 'broken' \(entry point {value} of package broken-pkg\)(:| ).*{cause}"
    with pytest.raises(UserError, match=sentence) as caught:
        envs.spec("broken")
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 500
    # On the command line: that sentence and exit code 2. Nobody else is in its way.
    assert main(["--env", "broken"]) == 2
    assert capsys.readouterr().err == f"train.py: {caught.value}\n"
    assert "broken" in envs.names()
    assert parse(["--env", "core-teaching"]).choice.env == "core-teaching"
    assert envs.make("lonely").possible_agents == ["me_0", "me_1"]


@pytest.mark.usefixtures("good")
def test_what_shows_when_it_is_made(install: Install) -> None:
    install("more-pkg", lost="good_specs:LOST")
    with pytest.raises(UserError, match=r"good_specs:LOST of package more-pkg\) cannot be loaded"):
        envs.make("lost")
    with pytest.raises(UserError, match=r"Spaceless: action_space\('me_0'\) is a dict, not a gym"):
        envs.make("good_one:Spaceless")


@pytest.mark.usefixtures("good")
def test_one_name_of_two_packages_is_nobodys(install: Install) -> None:
    install("second-pkg", lonely="good_one:Whole")
    with pytest.raises(
        UserError,
        match=r"env 'lonely' is registered 2 times: entry point good_one:Whole of package "
        r"second-pkg; entry point good_specs:SPEC of package good-pkg\. Uninstall all but one",
    ):
        envs.spec("lonely")
    assert envs.make("good_one:Whole").possible_agents == ["me_0", "me_1"]


@pytest.mark.usefixtures("good")
def test_a_name_of_ours_stays_ours(install: Install) -> None:
    install("greedy-pkg", core_teaching="good_one:Whole")
    with pytest.warns(
        UserWarning,
        match="'core-teaching' is built in, so entry point good_one:Whole of package greedy-pkg is "
        "ignored.* --env good_one:Whole",
    ):
        assert envs.spec("core-teaching").roles == ("alice", "bob")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert "alice_0" in envs.make("core-teaching").possible_agents


@pytest.mark.usefixtures("good")
@pytest.mark.parametrize("text", [b"[coterie.environments]\nlost\n", b"\xff\xfe\x00["])
def test_a_file_that_cannot_be_read_hurts_nobody(install: Install, text: bytes) -> None:
    (file,) = install("malformed-pkg").glob("*.dist-info/entry_points.txt")
    file.write_bytes(text)
    assert envs.make("lonely").possible_agents == ["me_0", "me_1"]
    assert parse(["--env", "core-teaching"]).choice.env == "core-teaching"
    with pytest.raises(UserError, match=r"unknown env 'lost'; known: .* pkg\.module:NAME\.$"):
        envs.spec("lost")


@pytest.mark.usefixtures("good")
@pytest.mark.parametrize("value", ["good_one : Whole", "good_one:Whole [extra]"])
def test_entry_points_may_be_written_with_spaces_and_extras(install: Install, value: str) -> None:
    install("spaced-pkg", spaced=value)
    assert envs.make("spaced").possible_agents == ["me_0", "me_1"]
