"""What a run began with is what it goes on with, or it does not go on."""

import json
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest
from safetensors.torch import load_file, save_file

from coterie.cli.command_line import parse
from coterie.datatypes import UserError
from coterie.training.config.preflight import preflight
from coterie.training.run.directory import RunDirectory
from coterie.training.session import Session, open_session

FLAGS = (
    *("--steps", "1", "--rollout.problems-per-step", "4", "--eval.no-enabled"),
    # What the base was has no part in the reward.
    *("--agents.alice.tuning", "lora", "--agents.alice.chat", "plain"),
)
COMMITS = ("a" * 40, "b" * 40)


def opened(argv: list[str]) -> Session:
    settings = parse(argv)
    return open_session(settings, preflight(settings))


@pytest.fixture
def base(checkpoint: Callable[[str], Path], tmp_path: Path) -> Path:
    """A folder that something else writes to."""
    return Path(shutil.copytree(checkpoint("qwen3"), tmp_path / "base"))


@pytest.fixture
def resume(tmp_path: Path) -> Callable[..., Session]:
    """Begins a run with further flags, ends it, and takes it up again as often as asked."""
    run = tmp_path / "run"

    def go(*flags: str) -> Session:
        begins = ["--run-dir", str(run), *FLAGS, *flags]
        session = opened(begins if flags else ["--resume", str(run)])
        session.__exit__()
        return session

    return go


def shake(folder: Path) -> None:
    weights = load_file(folder / "model.safetensors")
    name = min(weights)
    save_file(weights | {name: weights[name] * 1.01}, folder / "model.safetensors",
              metadata={"format": "pt"})  # fmt: skip


def test_a_base_that_changes_is_told(base: Path, resume: Callable[..., Session]) -> None:
    resume("--agents.alice.model", str(base))
    resume()
    shake(base)
    with pytest.raises(UserError, match=r"^model.safetensors of alice's model has changed since"):
        resume()


def test_so_is_a_frozen_role_and_what_describes_a_model(
    base: Path, resume: Callable[..., Session]
) -> None:
    resume("--agents.bob.model", str(base), "--agents.bob.no-trained", "--agents.bob.chat=plain")
    template = base / "chat_template.jinja"
    before = template.read_text()
    template.write_text(before + " ")
    with pytest.raises(UserError, match=r"^chat_template.jinja of bob's model has changed since"):
        resume()
    template.write_text(before)
    resume()
    (base / "README.md").write_text("not read")
    resume()
    shake(base)
    with pytest.raises(UserError, match=r"safetensors of bob's model .* restore it, or start"):
        resume()


def test_weights_that_a_checkpoint_holds_may_change(
    base: Path, resume: Callable[..., Session]
) -> None:
    resume("--agents.bob.model", str(base), "--agents.bob.tuning=full", "--agents.bob.chat=plain")
    shake(base)
    resume()


def test_problems_that_change_are_told(tmp_path: Path, resume: Callable[..., Session]) -> None:
    file = tmp_path / "problems.jsonl"
    rows = [json.dumps({"question": f"{i} + 1", "answer": str(i + 1)}) for i in range(99)]
    file.write_text("\n".join(rows))
    resume("--problems.train", str(file), "--problems.held-out", "9")
    resume()
    file.write_text("\n".join(reversed(rows)))
    with pytest.raises(UserError, match=r"^what --problems.train names has changed since"):
        resume()


@pytest.mark.parametrize("content", ["", '{"models": {"alice": 5}}'])
def test_notes_that_are_damaged(
    base: Path, tmp_path: Path, resume: Callable[..., Session], content: str
) -> None:
    resume("--agents.alice.model", str(base))
    notes = tmp_path / "run" / "environment.json"
    whole = notes.read_text()
    assert {"at", "command"} <= json.loads(whole)["begun"].keys()
    notes.write_text(content)
    with pytest.raises(UserError, match=r"environment.json is damaged; delete it to continue"):
        resume()
    notes.unlink()
    resume()
    assert json.loads(notes.read_text())["models"] == json.loads(whole)["models"]


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of downloads from the hub, which cannot be reached."""
    folder = tmp_path / "cache"
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(folder))
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    return folder


def publish(cache: Path, base: Path, commit: str) -> Path:
    """Have the hub's branch name ``commit``, as a download would."""
    repository = cache / "models--some--model"
    folder = Path(shutil.copytree(base, repository / "snapshots" / commit))
    (repository / "refs").mkdir(exist_ok=True)
    (repository / "refs" / "main").write_text(commit)
    return folder


def test_a_model_of_the_hub_that_moves_on_is_held_at_its_commit(
    base: Path, cache: Path, tmp_path: Path, resume: Callable[..., Session]
) -> None:
    publish(cache, base, COMMITS[0])
    first = resume("--agents.alice.model", "some/model")
    weights = first.team.loaded["alice"].handle.causal_lm.model.embed_tokens.weight.clone()
    config = RunDirectory.reopen(tmp_path / "run").config()
    assert config["agents"]["alice"]["revision"] == COMMITS[0]
    shake(base)
    newest = publish(cache, base, COMMITS[1])
    again = resume().team.loaded["alice"].handle.causal_lm.model.embed_tokens.weight
    assert again.equal(weights)
    flags = ("--agents.alice.model", "some/model")
    other = opened(["--run-dir", str(tmp_path / "other"), *FLAGS, *flags])
    assert other.run.config()["agents"]["alice"]["revision"] == newest.name
    assert not other.team.loaded["alice"].handle.causal_lm.model.embed_tokens.weight.equal(weights)
    other.__exit__()
    # Files in the cache that are another's now.
    shake(cache / "models--some--model" / "snapshots" / COMMITS[0])
    with pytest.raises(UserError, match="safetensors of alice's model has changed since"):
        resume()


def test_a_teacher_of_the_hub_is_held_at_its_commit_beside_the_role_that_plays_it(
    base: Path, cache: Path, tmp_path: Path, resume: Callable[..., Session]
) -> None:
    publish(cache, base, COMMITS[0])
    taught = "--agents.alice.algo.distillation.teacher"
    pupil = str(shutil.copytree(base, tmp_path / "pupil"))
    flags = ("--agents.alice.model", pupil, "--agents.bob.model", "some/model")
    flags += ("--train-role", "alice", "--agents.bob.chat", "plain", taught, "some/model")
    first = resume(*flags)
    config = RunDirectory.reopen(tmp_path / "run").config()
    distillation = config["agents"]["alice"]["algo"]["distillation"]
    assert distillation["teacher_revision"] == COMMITS[0]
    # Both are of one commit, so that bob's model teaches.
    assert first.team.teachers == {"alice": "bob"}
    shake(base)
    publish(cache, base, COMMITS[1])
    again = resume()
    assert again.team.teachers == {"alice": "bob"}
    # A teacher of another commit is a model of its own.
    other = [*flags, f"{taught}-revision", COMMITS[1], "--agents.bob.revision", COMMITS[0]]
    other_run = opened(["--run-dir", str(tmp_path / "other"), *FLAGS, *other])
    assert other_run.team.teachers == {"alice": "alice|teacher"}
    other_run.__exit__()


PLUGIN = """
from dataclasses import dataclass
from coterie.envs import ConversationEnv, Outcome
from prices_beside import PRICE

class Shop(ConversationEnv):
    default_roles = ("seller",)

    def conversation(self, problem, options, random):
        yield {"seller_0": problem.question}
        return Outcome(terms={agent: {"sold": PRICE} for agent in self.agents})
"""


def test_a_reward_whose_source_changes_is_told_and_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    folder, run = tmp_path / "mine", tmp_path / "run"
    folder.mkdir()
    (folder / "shop_to_change.py").write_text(PLUGIN)
    (folder / "prices_beside.py").write_text("PRICE = 1.0\n")
    monkeypatch.syspath_prepend(folder)
    monkeypatch.chdir(folder)
    # As torch has it: no module, and its file is not there.
    monkeypatch.setitem(sys.modules, "nowhere.classes", SimpleNamespace(__file__="_nowhere.py"))
    flags = ["--env", "shop_to_change:Shop", "--agents.seller.model", "tiny:alice", "--steps", "1"]
    flags += ["--eval.no-enabled", "--rollout.problems-per-step", "2", "--run-dir", str(run)]
    opened(flags).__exit__()
    noted = json.loads((run / "environment.json").read_text())["plugins"]
    assert {"shop_to_change", "prices_beside"} <= noted.keys()
    assert all(len(digest) == 64 for digest in noted.values())
    capsys.readouterr()
    opened(["--resume", str(run)]).__exit__()
    assert "has changed" not in capsys.readouterr().out
    (folder / "prices_beside.py").write_text("PRICE = 2.0\n")
    opened(["--resume", str(run)]).__exit__()
    said = [line for line in capsys.readouterr().out.splitlines() if "changed" in line]
    assert said == [
        f"prices_beside has changed since the run {run} began: from here on it learns by the new "
        "source"
    ]
    # A run of shipped parts alone has none.
    other = tmp_path / "shipped"
    opened(["--run-dir", str(other), *FLAGS]).__exit__()
    shipped = json.loads((other / "environment.json").read_text())["plugins"]
    assert not any(name.startswith("coterie") for name in shipped)
