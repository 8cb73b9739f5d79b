"""People in benchmarks: whom they play, what is kept, and how they leave."""

import os
import pty
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from coterie import train
from coterie.experts import human

ROOT = Path(__file__).parents[4]
MODULE = '''
from coterie.envs import ConversationEnv, EnvSpec, Outcome

class Boast(ConversationEnv):
    """Who alone says "I win" has won."""
    title = "boast"
    metadata = {**ConversationEnv.metadata, "name": "boast_v0"}
    default_roles = ("first", "second")

    def conversation(self, problem, options, random):
        one, two = self.possible_agents
        answers = yield {one: f"{problem.question} One?", two: f"{problem.question} Two?"}
        lead = ("I win" in answers.get(one, "")) - ("I win" in answers.get(two, ""))
        named = {1: "win", 0: "draw", -1: "loss"}
        told = {one: {"outcome": named[lead]}, two: {"outcome": named[-lead]}}
        return Outcome({one: {"lead": float(lead)}, two: {"lead": float(-lead)}}, told)

SPEC = EnvSpec("boast", 0, "boasts:Boast", None, ("first", "second"))
'''
FLAGS = (
    "--cross-play", "me=human:", "bob=tiny:bob", "--suite", "boasts:SPEC",
    "--problems", "chains?min_length=3&max_length=3", "--questions", "2", "--samples", "1",
)  # fmt: skip


@pytest.fixture(autouse=True)
def boasts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "boasts.py").write_text(MODULE)
    monkeypatch.syspath_prepend(tmp_path)


@pytest.fixture
def types(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str], None]]:
    """Make a text standard input, which ends after it."""
    opened = []

    def give(text: str) -> None:
        end, start = os.pipe()
        os.write(start, text.encode())
        os.close(start)
        opened.append(os.fdopen(end))
        monkeypatch.setattr("sys.stdin", opened[-1])
        monkeypatch.setattr(human, "TERMINAL", human.Terminal())

    yield give
    for file in opened:
        file.close()


def test_a_person_plays_a_tiny_model(run: Any, types: Callable[[str], None]) -> None:
    keys = ("I win", "no", "I win", "I win")  # both seats: a win and a draw of the first one
    keys += ("I win", "no")  # first against bob, who never says it: a win, a draw
    keys += ("no", "I win")  # second against bob: a draw, and a loss of the first one
    types("\n".join(keys) + "\n")
    (matrix,) = run(*FLAGS)[0]["cross-play"].values()
    cells = {name: cell["score"]["value"] for name, cell in matrix["pairings"].items()}
    assert cells == {"me + me": 0.75, "me + bob": 0.75, "bob + me": 0.25, "bob + bob": 0.5}


def test_what_was_answered_is_kept(run: Any, types: Callable[[str], None], tmp_path: Path) -> None:
    types("I win\nno\nI win\n")
    assert "standard input has ended" in run(*FLAGS, code=2)
    [stored] = tmp_path.glob("out/completions/*/*/me+me.jsonl")
    # The head and the one episode whose two seats have answered.
    assert len(stored.read_text().splitlines()) == 2
    types("I win\nI win\nI win\nno\nno\nI win\n")
    (matrix,) = run(*FLAGS)[0]["cross-play"].values()
    assert matrix["pairings"]["me + me"]["score"]["value"] == 0.75


def test_nobody_is_there(
    run: Any, types: Callable[[str], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    def load(*_: Any) -> None:
        raise AssertionError("a model is loaded")

    types("")
    monkeypatch.setattr("coterie.agents.team.local_backend.LocalBackend.load", load)
    assert "nobody answers" in run(*FLAGS, code=2)
    assert "write human: alone" in run("--policies", "a=human:me", code=2)
    judge = ("--policies", "a=tiny:alice", "--scoring.judge", "human:")
    assert "does not grade; name a model" in run(*judge, code=2)


def test_nobody_plays_in_training(capsys: pytest.CaptureFixture[str]) -> None:
    for trained in ("--agents.bob.no-trained", "--agents.bob.trained"):
        assert train.main(["--agents.bob.model", "human:", trained]) == 2
        shown = capsys.readouterr()
        assert "bob is played by human:, but a person cannot play in training" in shown.err
        assert "benchmark.py --cross-play" in shown.err
        assert shown.err.count("\n") == 1


@pytest.mark.parametrize("key", [b"\x03", b"\x04"])
def test_a_person_leaves(key: bytes, tmp_path: Path) -> None:
    """Ctrl-C and Ctrl-D, at a terminal that controls the program."""
    code = "import sys; from coterie import benchmark; sys.exit(benchmark.main(sys.argv[1:]))"
    child, master = pty.fork()
    if child == 0:
        os.environ["PYTHONPATH"] = f"{ROOT}:{tmp_path}"
        os.chdir(tmp_path)
        os.execv(sys.executable, [sys.executable, "-c", code, *FLAGS, "--out", "out"])
    shown = b""
    answered = False
    try:
        while part := os.read(master, 1 << 16):
            shown += part
            if not answered and shown.endswith(b"first_0> "):
                os.write(master, key)
                answered = True
    except OSError:  # the end of a pseudo-terminal
        pass
    finally:
        os.close(master)
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == 130, shown.decode()
    assert b"the same command continues from the stored results" in shown
    assert b"Traceback" not in shown
    assert not list(tmp_path.glob("out/results.json"))
