"""``coterie check`` on environments that somebody else broke."""

import re
import textwrap
from pathlib import Path

import pytest

from coterie.envs.check.__main__ import main

from .sources import WHOLE

# What an author got wrong, and what the check says; exit code 1 is the contract's, 2 PettingZoo's.
# The rules about infos, rewards and metadata are in test_guarded.py.
BROKEN = [
    ("def infos(self): return None", 2, "Broken: reset() must give 2 dictionaries by agent: obs"),
    ("def reset(self, seed=None): pass", 2, "reset() raised TypeError: .*unexpected keyword"),
    ("def step(self, actions): return {}, {}, {}, {}", 2, "step() must give 5 dictionaries by"),
    ("def paid(self, actions): return {'me_0': 1.0}", 1, "me_1 was alive and has no reward"),
    ("def action_space(self, agent): return self.actions", 2, "action_space('me_0') raised Attrib"),
    ("def told(self, text): return super().told('é')", 1,
     "me_0 observes 'é', which is not in its observation space Text"),
    ("""
    def paid(self, actions):
        if "strategy" in actions["me_0"]: raise ZeroDivisionError("tags")
        return super().paid(actions)""", 1,
     "with unclosed tags and braces as actions: Broken: step() raised ZeroDivisionError: tags"),
]  # fmt: skip


@pytest.fixture
def author(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(__import__("sys").modules, "of_an_author", raising=False)
    return tmp_path / "of_an_author.py"


def test_a_whole_one(author: Path, capsys: pytest.CaptureFixture[str]) -> None:
    author.write_text(WHOLE)
    assert main(["of_an_author:Whole"]) == 0
    # Each is paid the length of its answer.
    verdict, report = capsys.readouterr().out.splitlines()
    assert verdict == "of_an_author:Whole keeps the contract. Its roles: me."
    assert re.fullmatch(
        r"16 episodes with random answers: mean reward me \d+\.\d{3}; with 100% of the seeds two "
        r"sets of answers got different rewards\.",
        report,
    )


@pytest.mark.parametrize(("fault", "code", "sentence"), BROKEN)
def test_a_broken_one(
    author: Path, capsys: pytest.CaptureFixture[str], fault: str, code: int, sentence: str
) -> None:
    body = textwrap.indent(textwrap.dedent(fault), "    ")
    author.write_text(f"{WHOLE}\nclass Broken(Whole):\n{body}\n")
    assert main(["of_an_author:Broken"]) == code
    *_, last = capsys.readouterr().err.splitlines()
    assert last.startswith("coterie check: ")
    start, _, rest = sentence.partition(".*")
    assert start in last
    assert rest in last


def test_an_error_of_the_authors_own_code_has_its_line(
    author: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    author.write_text(f"{WHOLE}\nclass Broken(Whole):\n    def infos(self): return 1 / 0\n")
    assert main(["of_an_author:Broken"]) == 2
    place, line, *_, said = capsys.readouterr().err.splitlines()
    assert "of_an_author.py" in place
    assert line.strip() == "def infos(self): return 1 / 0"
    assert "Broken: reset() raised ZeroDivisionError: division by zero" in said


TOLD = """
from dataclasses import dataclass
from coterie.envs import ConversationEnv, Outcome

@dataclass(frozen=True)
class Settings:
    max_new_tokens: {kind}

class Told(ConversationEnv):
    title = "told"
    metadata = {{**ConversationEnv.metadata, "name": "told_v0"}}
    settings_class = Settings
    default_roles = ("me",)
    def conversation(self, problem, options, random):
        yield {{"me_0": problem.question}}
        {end}
"""


@pytest.mark.parametrize(
    ("kind", "end", "code", "sentence"),
    [
        ("int = 5", "return Outcome({'me_0': {'x': 1.0}})", 0, ""),
        ("int = 5", "return Outcome({'me': {'x': 1.0}})", 2, "told: conversation() ended with the"),
        ("int = 5", "return 1 / 0", 2, "of_an_author:Told raised ZeroDivisionError: divisi"),
        # No wait for 2^40 numbers to be compared with a string.
        ("str = 'x'", "return Outcome({})", 1, "max_new_tokens of me_0 is 'x': it must be an int"),
    ],
)  # fmt: skip
def test_a_conversation(
    author: Path, capsys: pytest.CaptureFixture[str], kind: str, end: str, code: int, sentence: str
) -> None:
    author.write_text(TOLD.format(kind=kind, end=end))
    assert main(["of_an_author:Told"]) == code
    errors = capsys.readouterr().err
    assert sentence in errors
    assert ("return 1 / 0" in errors) == ("1 / 0" in end)


def test_roles_that_are_not_those_of_the_agents(
    author: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    spec = (
        "from coterie.envs import EnvSpec\nSPEC = EnvSpec('author', 0, 'of_an_author:Whole', None"
    )
    author.write_text(f"{WHOLE}\n{spec}, ('me', 'you'))\n")
    assert main(["of_an_author:SPEC"]) == 1
    sentence = "its agents have the roles me, not me, you: name the former in its EnvSpec"
    assert sentence in capsys.readouterr().err


def test_the_same_every_time_may_be_meant(author: Path, capsys: pytest.CaptureFixture[str]) -> None:
    fault = "def told(self, text): return super().told('7' if 'say' in str(text) else text)"
    author.write_text(f"{WHOLE}\nclass Broken(Whole):\n    {fault}\n")
    assert main(["of_an_author:Broken"]) == 1
    assert "8 seeds give the same episode: reset() ignores its seed" in capsys.readouterr().err
    assert main(["of_an_author:Broken", "--same-every-time"]) == 0


FORGETFUL = """
from dataclasses import dataclass
from coterie.envs import ConversationEnv, Outcome

@dataclass(frozen=True)
class Settings:
    max_new_tokens: int = 8

class Forgetful(ConversationEnv):
    title = "forgetful"
    metadata = {**ConversationEnv.metadata, "name": "forgetful_v0"}
    settings_class = Settings
    default_roles = ("planner", "solver")
    def conversation(self, problem, options, random):
        yield {"planner_0": problem.question}
        {"solver_0": problem.question}
        return Outcome({"planner_0": {"length": 0.0}})
"""


def test_a_forgotten_yield(author: Path, capsys: pytest.CaptureFixture[str]) -> None:
    author.write_text(FORGETFUL)
    assert main(["of_an_author:Forgetful"]) == 1
    sentence = "breaks the contract: solver is never asked in 16 episodes: is a yield missing?"
    assert sentence in capsys.readouterr().err
    # Said to be meant, it is reported; and nobody is paid for anything here.
    assert main(["of_an_author:Forgetful", "--unasked", "solver"]) == 0
    report = capsys.readouterr().out.splitlines()[1]
    assert "mean reward planner 0.000, solver 0.000; with 0% of the seeds two" in report
    assert report.endswith("Never asked: solver.")
