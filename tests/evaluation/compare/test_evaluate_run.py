"""A run's evaluation once more: the same numbers, others where other things are asked for."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from coterie import train
from coterie.agents.models.locate import TINY

RUN = (
    "--steps", "1", "--rollout.problems-per-step", "2", "--rollout.replicas", "2",
    "--problems.held-out", "6", "--eval.resamples", "20", "--eval.temperature", "0.7",
    "--env", "examples.debate:SPEC", "--env.rounds", "1", "--train-role", "alice", "--threads", "1",
)  # fmt: skip


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("runs") / "run"
    assert train.main([*RUN, "--run-dir", str(path)]) == 0
    return path


def again(run: Path, *flags: str) -> dict[str, Any]:
    out = run.parent / "again.json"
    assert train.main(["--evaluate", str(run), *flags, "--out", str(out)]) == 0
    return json.loads(out.read_text())


def test_by_itself_it_is_what_the_run_measured(
    run: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    stored = json.loads((run / "evaluation" / "after.json").read_text())
    summary = json.loads((run / "summary.json").read_text())
    result = again(run)
    assert result["outcomes"] == [stored]
    assert {name: metric["value"] for name, metric in result["metrics"].items()} == summary["after"]
    assert "Reward alice" in capsys.readouterr().out
    assert train.main(["--evaluate", str(run)]) == 0
    assert (run / "evaluation" / "again.json").is_file()


def test_a_run_on_a_server_of_others_is_evaluated_here(run: Path, tmp_path: Path) -> None:
    there = shutil.copytree(run, tmp_path / "run")
    config = json.loads((there / "config.json").read_text())
    config["run"]["engine"], config["tinker"]["url"] = "tinker", "http://127.0.0.1:9"
    (there / "config.json").write_text(json.dumps(config))
    stored = json.loads((run / "evaluation" / "after.json").read_text())
    assert again(there)["outcomes"] == [stored]


def test_it_says_how_many_answers_were_cut_off(
    run: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    # Two debaters and a judge on 6 problems, 3 times.
    again(run, "--samples", "3", "--env.max-new-tokens", "1", "--eval.temperature", "1")
    sentence = "54 of 54 answers broke off at 1 tokens: --env.max-new-tokens 256 gives them room"
    assert sentence in capsys.readouterr().out


def test_more_samples_are_averaged_problem_by_problem(run: Path) -> None:
    result = again(run, "--samples", "3")
    first, *others = result["outcomes"]
    assert first == json.loads((run / "evaluation" / "after.json").read_text())
    assert len(others) == 2
    columns = [sample["measured"]["reward/alice"] for sample in result["outcomes"]]
    assert columns[1] != columns[2]
    mean = sum(sum(column) / len(column) for column in columns) / 3
    assert result["metrics"]["reward/alice"]["value"] == pytest.approx(mean, abs=1e-6)
    # The interval is that of the problems' means: narrower than one sample's where luck has a part.
    low, high = result["metrics"]["reward/alice"]["interval"]
    assert low <= mean <= high


def test_other_problems_settings_and_players(run: Path) -> None:
    result = again(run, "--problems.eval", "chains?min_length=2&max_length=2", "--seed", "3")
    assert result["outcomes"][0]["problems"] != again(run)["outcomes"][0]["problems"]
    silent = again(run, "--agents.judge.model", "scripted:useless", "--env.own", "0")
    assert silent["metrics"]["reward/team"]["value"] == 0


def test_what_only_training_needs_is_not_checked(run: Path, tmp_path: Path) -> None:
    """A run on a set that holds all of its training problems has nothing left to train on."""
    config = json.loads((run / "config.json").read_text())
    config["problems"] |= {"order": "adaptive", "limit": 4, "epoch_size": 2}
    (tmp_path / "config.json").write_text(json.dumps(config))
    (tmp_path / "final").symlink_to(run / "final")
    train_file, larger = tmp_path / "a.jsonl", tmp_path / "b.jsonl"
    lines = [json.dumps({"question": f"{n} + 0 =", "answer": str(n)}) for n in range(9)]
    train_file.write_text("\n".join(lines[:3]))
    larger.write_text("\n".join(lines))
    words = ("--problems.train", str(train_file), "--problems.eval", str(larger))
    assert len(again(tmp_path, *words)["outcomes"][0]["problems"]) == 6  # --problems.held-out


def save(path: Path, numbers: range, sign: str = "+") -> str:
    rows = [{"question": f"{n} {sign} 0 =", "answer": str(n)} for n in numbers]
    path.write_text("\n".join(map(json.dumps, rows)))
    return str(path)


@pytest.fixture
def on_files(tmp_path: Path) -> tuple[Path, str, str]:
    """A run, its file of training and its file of evaluation."""
    path, mine = tmp_path / "run", save(tmp_path / "mine.jsonl", range(9))
    yours = save(tmp_path / "yours.jsonl", range(9), "-")
    words = ("--env", "solo", "--steps", "1", "--rollout.problems-per-step", "2", "--threads", "1")
    words += ("--rollout.replicas", "2", "--eval.resamples", "5", "--run-dir", str(path))
    words += ("--problems.held-out", "4")
    assert train.main([*words, "--problems.train", mine, "--problems.eval", yours, "chains"]) == 0
    return path, mine, yours


def test_problems_that_have_changed_are_told(
    on_files: tuple[Path, str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    run, mine, yours = on_files
    changed = f"have changed since the run {run} began"

    def said(*flags: str) -> str:
        capsys.readouterr()
        again(run, *flags)
        return capsys.readouterr().out

    # Other seeds of generators and other readings of columns are what the user asks for.
    for flags in ((), ("--problems.eval", mine), ("--seed", "5"), ("--problems.eval", "recall")):
        assert "changed" not in said(*flags)
    save(Path(yours), range(9), "*")
    sentence = f"the problems of {yours} {changed}: these figures are not comparable with its own"
    assert sentence in said()
    assert sentence in said("--seed", "5")
    assert sentence in said("--problems.eval", yours)
    assert "changed" not in said("--problems.eval", mine)
    # The run learned from this file, so what is held out of it now may be what it learned.
    save(Path(mine), range(1, 10))
    sentence = (
        f"the problems of {mine} {changed}, so that it may have trained on those held out now"
    )
    assert sentence in said("--problems.eval", mine)
    reading = ("--problems.eval", yours, "--problems.answer-kind", "text")
    assert "changed" not in said(*reading)
    both = said("--problems.eval", mine, yours)
    assert both.count("have changed since") == 2
    for damage in ("", "[]", '{"problems": 3}'):
        (run / "environment.json").write_text(damage)
        assert "changed" not in said()
    (run / "environment.json").unlink()
    assert "changed" not in said()


def test_a_training_file_that_is_gone_matters_for_its_own_problems_only(
    on_files: tuple[Path, str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    run, mine, yours = on_files
    Path(mine).unlink()
    assert len(again(run)["outcomes"][0]["problems"]) == 8
    assert len(again(run, "--problems.eval", yours)["outcomes"][0]["problems"]) == 4
    for flags in (("--problems.eval", mine), ("--problems.eval", yours, mine)):
        assert train.main(["--evaluate", str(run), *flags]) == 2
        assert f"there is no problem file {mine}" in capsys.readouterr().err


def test_another_environment(run: Path) -> None:
    result = again(run, "--env", "coterie.envs.solo:SoloEnv", "--problems.held-out", "4")
    assert "reward/solver" in result["metrics"]
    assert len(result["outcomes"][0]["problems"]) == 4
    assert result["config"]["agents"]["solver"]["model"] == str(run / "final" / "alice")


@pytest.mark.parametrize(
    ("flags", "sentence"),
    [
        (["--steps", "3", "--learner.lr", "1"], "trains nothing; leave out --learner.lr --steps"),
        (["--no-episodes-log"], "leave out --no-episodes-log"),
        (["--algo", "grpo", "--train-role", "bob"], "leave out --algo --train-role"),
        (["--problems.order", "adaptive"], "trains nothing; leave out --problems.order"),
        (
            ["--problems.epoch_size=3", "--problems.limit", "2", "--problems.no-decontaminate"],
            "leave out --problems.epoch_size --problems.limit --problems.no-decontaminate",
        ),
        (["--eval.no-enabled", "--eval.every", "2"], "leave out --eval.every --eval.no-enabled"),
        (["--samples", "0"], "--samples is 0; it must be at least 1"),
        (["--problems.eval", "nope"], "unknown problems"),
        (["--engine", "local", "--env.rounds", "0"], "--env.rounds"),
        (["--out", "/proc/x/x.json"], "--out: /proc/x/x.json cannot be written: /proc is not"),
    ],
)
def test_refusals(run: Path, flags: list[str], sentence: str, refused: Any) -> None:
    assert sentence in refused(train.main, "--evaluate", run, *flags)


def test_what_is_no_finished_run(run: Path, tmp_path: Path, refused: Any) -> None:
    words = ("--evaluate", tmp_path)
    assert "has not written its settings yet" in refused(train.main, *words)
    (tmp_path / "config.json").write_text((run / "config.json").read_text())
    way_out = f"has not ended: python train.py --resume {tmp_path}"
    assert way_out in refused(train.main, *words)


def test_a_role_that_nobody_plays(tmp_path: Path, refused: Any, run: Path) -> None:
    config = json.loads((run / "config.json").read_text())
    config["agents"]["bob"]["trained"] = True
    (tmp_path / "config.json").write_text(json.dumps(config))
    for role in ("alice", "bob"):
        (tmp_path / "final" / role).mkdir(parents=True)
    said = refused(train.main, "--evaluate", tmp_path, "--env", "corea-deferral")
    assert "no model for the role small of corea-deferral" in said


@pytest.mark.filterwarnings("ignore:Could not find a config file")
def test_an_adapter_of_named_layers_is_evaluated_on_the_commit_of_its_base(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also after the hub's branch has moved on to another model."""
    commits, repository = ("1" * 40, "2" * 40), tmp_path / "cache" / "models--some--model"
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")  # peft reads the variable
    for commit, model in zip(commits, ("alice", "bob")):
        shutil.copytree(TINY / model, repository / "snapshots" / commit)
    (repository / "refs").mkdir()
    (repository / "refs" / "main").write_text(commits[0])
    base = ("--agents.alice.model", "some/model", "--agents.alice.tuning", "lora")
    path = tmp_path / "run"
    flags = (*base, "--agents.alice.lora-targets", "q_proj", "--run-dir", str(path))
    assert train.main([*RUN, *flags]) == 0
    (repository / "refs" / "main").write_text(commits[1])
    result = again(path)
    assert result["outcomes"] == [json.loads((path / "evaluation" / "after.json").read_text())]
    assert result["config"]["agents"]["alice"]["revision"] == commits[0]
    # The commit is not one of another model.
    other = again(path, "--agents.alice.model", "tiny:alice")
    assert other["config"]["agents"]["alice"]["revision"] is None
