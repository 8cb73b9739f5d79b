"""What trackers beside TensorBoard are told, and that no failure of theirs ends a run."""

import io
import json
import sys
from types import ModuleType, SimpleNamespace

import pytest
from rich.console import Console

from coterie import train
from coterie.datatypes import UserError
from coterie.extras.ops.trackers import Trackers, check_trackers, episode_rows
from coterie.training.run.directory import RunDirectory
from coterie.training.run.log import Logbook

ROW = SimpleNamespace(agent="alice_0", status="ok", reward=0.5, texts=["?"], member="")
EPISODE = SimpleNamespace(problem_id="p1", gold="7", trajectories=[ROW])


class Library(ModuleType):
    """Stands in for wandb and trackio; what ``broken`` names raises."""

    def __init__(self, name, broken=""):
        super().__init__(name)
        self.broken, self.logged, self.begun = broken, [], []
        self.Settings = dict
        self.login = lambda prompt: False

    def fail(self, what):
        print(f"chatter of {self.__name__}")
        if what == self.broken:
            raise RuntimeError(f"no {what}\ntoday")

    def init(self, **options):
        self.fail("init")
        self.begun.append(options)
        return self

    def Table(self, columns, data):
        self.fail("Table")
        return [dict(zip(columns, row)) for row in data]

    def log(self, content, step):
        self.fail("log")
        self.logged.append((step, content))

    def finish(self):
        self.fail("finish")


@pytest.fixture
def run(tmp_path):
    directory = RunDirectory.create(tmp_path / "run", {"run": {"seed": 3}})
    yield directory
    directory.close()


def logged(run, monkeypatch, *libraries):
    for library in libraries:
        monkeypatch.setitem(sys.modules, library.__name__, library)
    messages = []
    trackers = Trackers([library.__name__ for library in libraries], run, messages.append)
    console = Console(file=io.StringIO())
    with Logbook(run, console, first=1, last=2, headline=(), sinks=[trackers]) as book:
        book.step(1, {"reward/alice": 0.5})
        book.episodes(1, [EPISODE], {})
        book.evaluation(1, {"eval/pass@1": 0.25})
        book.step(2, {"reward/alice": 0.75})
    return messages


EVERYTHING = [
    (1, {"reward/alice": 0.5}),
    (1, {"episodes": [{"problem": "p1", "gold": "7", "agent": "alice_0", "status": "ok",
                       "reward": 0.5, "advantage": None, "text": "?"}]}),
    (1, {"eval/pass@1": 0.25}),
    (2, {"reward/alice": 0.75}),
]  # fmt: skip


def test_both_get_what_tensorboard_gets_and_episodes_as_a_table(run, monkeypatch, capsys):
    wandb, trackio = Library("wandb"), Library("trackio")
    assert logged(run, monkeypatch, wandb, trackio) == []
    assert wandb.logged == trackio.logged == EVERYTHING
    assert capsys.readouterr().out == ""
    (begun,) = wandb.begun
    assert (begun["mode"], begun["dir"]) == ("offline", str(run.path))
    assert begun["config"] == {"run": {"seed": 3}}
    # A run that is resumed goes on where it logged.
    logged(run, monkeypatch, wandb, trackio)
    for library in (wandb, trackio):
        assert library.begun[0] == library.begun[1]
        assert library.begun[0]["resume"] == "allow"


def test_a_login_and_wandb_mode_decide_where_it_goes(run, monkeypatch):
    wandb = Library("wandb")
    monkeypatch.setenv("WANDB_MODE", "disabled")
    logged(run, monkeypatch, wandb)
    monkeypatch.delenv("WANDB_MODE")
    wandb.login = lambda prompt: True
    logged(run, monkeypatch, wandb)
    assert [begun["mode"] for begun in wandb.begun] == [None, None]


def test_a_wandb_whose_login_would_ask_is_not_asked(run, monkeypatch):
    """Those before 0.30."""
    wandb = Library("wandb")
    wandb.login = lambda key=None, relogin=None: pytest.fail("it asks")
    for key in ("", "of-forty-letters"):
        wandb.api = SimpleNamespace(api_key=key)
        assert logged(run, monkeypatch, wandb) == []
    assert [begun["mode"] for begun in wandb.begun] == ["offline", None]


@pytest.mark.parametrize("broken", ["init", "log", "Table", "finish"])
def test_one_that_fails_is_told_of_once_and_the_other_goes_on(run, monkeypatch, broken):
    wandb, trackio = Library("wandb", broken), Library("trackio")
    (message,) = logged(run, monkeypatch, wandb, trackio)
    assert message == (
        f"wandb failed and is switched off (RuntimeError: no {broken} today); the run continues"
    )
    assert trackio.logged == EVERYTHING
    assert len((run.path / "metrics.jsonl").read_text().splitlines()) == 2


def test_rows_hold_what_was_read_and_written_as_unicode():
    texts = ["7 + 4 =", " 11\ud800"]
    row = SimpleNamespace(agent="a_0", status="ok", reward=1, texts=texts, member="")
    episode = SimpleNamespace(problem_id="p", gold="11", trajectories=[row])
    expected = ["p", "11", "a_0", "ok", 1.0, 0.25, "7 + 4 = 11?"]
    assert episode_rows([episode], {id(row): 0.25}) == [expected]
    assert episode_rows([episode], {})[0][5] is None


def test_an_agent_with_two_contexts_is_one_row_of_the_table():
    # A penalty on length tells the rewards of its contexts apart; only one of them was learned.
    first, second = (
        SimpleNamespace(agent="a_0", status="ok", reward=reward, texts=["?"], member="e/a_0")
        for reward in (1.0, 0.5)
    )
    episode = SimpleNamespace(problem_id="p", gold="11", trajectories=[first, second])
    expected = ["p", "11", "a_0", "ok", 0.75, 0.25, "?"]
    assert episode_rows([episode], {id(second): 0.25}) == [expected]


def test_what_is_not_installed_is_refused_before_models_load(monkeypatch, capsys, tmp_path):
    monkeypatch.setattr("coterie.extras.ops.trackers.find_spec", lambda name: None)
    with pytest.raises(UserError, match="pip install 'coterie"):
        check_trackers(["wandb"])
    assert train.main(["--track", "trackio", "--run-dir", str(tmp_path / "run")]) == 2
    assert "--track trackio: it is not installed" in capsys.readouterr().err
    assert not (tmp_path / "run").exists()


@pytest.mark.slow
@pytest.mark.parametrize("name", ["wandb", "trackio"])
def test_the_library_itself_takes_a_whole_run(name, tmp_path):
    """In a process of its own: both leave threads and handlers behind."""
    pytest.importorskip(name)
    import os
    import subprocess

    run = tmp_path / "run"
    flags = ["--steps", "2", "--rollout.problems-per-step", "2", "--eval.no-enabled"]
    flags += ["--transcripts-every", "1", "--track", name, "--run-dir", str(run)]
    surroundings = {key: text for key, text in os.environ.items() if "WANDB" not in key}
    surroundings |= {"TRACKIO_DIR": str(tmp_path / "trackio"), "HOME": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-m", "coterie", "train", *flags],
        env=surroundings, capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert "left out" not in done.stdout
    assert name not in done.stdout + done.stderr
    steps = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    if name == "wandb":
        (folder,) = (run / "wandb").glob("offline-run-*")
        assert len(list(folder.glob("files/media/table/episodes_*.json"))) == 2
        stored = next(folder.glob("run-*.wandb")).read_bytes()
    else:
        stored = (tmp_path / "trackio" / "coterie.db").read_bytes()
    # The reward of the second step, as it was logged.
    assert json.dumps(steps[1]["reward/alice"])[:12].encode() in stored
