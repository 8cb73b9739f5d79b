"""Runs in which a role learns from the probabilities of a teacher."""

import json
import shutil
from pathlib import Path

import pytest

from coterie.agents.models.loading import load_team
from coterie.agents.models.spec import ModelSpec
from coterie.cli.command_line import parse
from coterie.cli.progress import READ
from coterie.datatypes import UserError
from coterie.train import main
from coterie.training.config import preflight

PROBLEMS = "chains?mix=0.5,0.5,0&min_length=3&max_length=3"
FLAGS = (
    *("--env", "solo", "--agents.solver.model", "tiny:alice", "--rollout.problems-per-step", "4"),
    *("--problems.train", PROBLEMS, "--eval.no-enabled", "--checkpoint-every", "1"),
    *("--algo.distillation.beta", "1", "--algo.distillation.no-rewards"),
)


@pytest.fixture(scope="module")
def teacher(tmp_path_factory: pytest.TempPathFactory) -> str:
    """tiny:alice, a little changed."""
    folder = tmp_path_factory.mktemp("teacher")
    handle = load_team({"alice": ModelSpec("tiny:alice")}, {"alice"})["alice"].handle
    for number, p in enumerate(handle.parameters().values()):
        p.data.mul_(1.2 if number % 2 else 0.9)
    handle.save(folder)
    return str(folder)


def metrics(run: Path) -> list[dict]:
    return [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]


def test_the_role_comes_closer_to_its_teacher(teacher: str, tmp_path: Path) -> None:
    flags = (*FLAGS, "--algo.distillation.teacher", teacher, "--algo.distillation.bound", "20")
    run, already = tmp_path / "run", READ.done
    assert main([*flags, "--steps", "12", "--run-dir", str(run)]) == 0
    assert READ.done - already == 12 * 4 * 8
    steps = metrics(run)
    # The mean of log teacher - log pi over sampled tokens, an estimate of - KL(pi || teacher).
    far = [-step["learner/solver/distillation/mean"] for step in steps]
    assert sum(far[-3:]) < 0.5 * sum(far[:3])
    for step in steps:
        assert step["credit/teacher_tokens"] == step["learner/solver/tokens"]
        assert step["learner/solver/distillation/rows"] == 1


def test_a_teacher_of_one_role_leaves_the_other_its_steps(tmp_path: Path) -> None:
    """DAPO, in which alice has a teacher in the first half of the run."""
    flags = (
        *("--env", "core-teaching", "--algo", "dapo", "--rollout.problems-per-step", "3"),
        *("--problems.train", PROBLEMS, "--eval.no-enabled", "--env.k-hinted", "0"),
        *("--env.reread", "none", "--algo.distillation.beta", "0", "--steps", "4"),
    )
    own = {"beta": "1", "teacher": "tiny:alice", "fade": "0.5", "likeliest": "8"}
    for name, value in own.items():
        flags += (f"--agents.alice.algo.distillation.{name}", value)
    assert main([*flags, "--run-dir", str(tmp_path / "run")]) == 0
    steps = metrics(tmp_path / "run")
    assert any(step["rollout/rounds"] < 10 for step in steps)
    for step in steps:
        rows = [step.get(f"learner/{role}/rows", 0) for role in ("alice", "bob")]
        filled = step["rollout/rounds"] < 10
        if step["step"] <= 2:
            # Three problems, three traces of a role each.
            assert rows[0] == 9
            assert rows[1] == 9 or not filled
            assert (step["credit/teacher_unread"], step["credit/teacher_tokens"] > 0) == (0, True)
        else:
            assert "credit/teacher_tokens" not in step
            # A problem counts whichever role it informs.
            assert len(problems_of(tmp_path / "run", step["step"])) == 3 or not filled


def problems_of(run: Path, step: int) -> set[str]:
    """The problems on which a step trained."""
    episodes = map(json.loads, (run / "episodes.jsonl").read_text().splitlines())
    return {
        episode["problem"]
        for episode in episodes
        if episode["step"] == step
        and any(row["advantage"] is not None for row in episode["trajectories"])
    }


def test_a_teacher_that_has_changed_is_not_resumed(
    teacher: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    own, run = tmp_path / "teacher", tmp_path / "run"
    shutil.copytree(teacher, own)
    flags = (*FLAGS, "--algo.distillation.teacher", str(own))
    assert main([*flags, "--steps", "1", "--run-dir", str(run)]) == 0
    text = (own / "config.json").read_text()
    (own / "config.json").write_text(text + "\n")
    assert main(["--resume", str(run), "--steps", "2"]) == 2
    assert "config.json of solver|teacher's model has changed" in capfd.readouterr().err


def test_the_device_of_a_teacher_in_another_process_is_not_looked_for_here(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("torch.cuda.device_count", lambda: 0)
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    flags = (*FLAGS, "--algo.distillation.teacher", "tiny:alice", "--agents.solver.device", "cuda")
    preflight.preflight(parse([*flags, "--agents.solver.engine-replicas", "1"]))
    with pytest.raises(UserError, match="there is no device 'cuda' here"):
        preflight.preflight(parse(flags))


@pytest.mark.parametrize(
    ("flags", "why"),
    [
        (
            (
                *("--algo.distillation.teacher", "tiny:alice", "--engine", "vllm"),
                *("--rollout.learner-temperature", "0.7"),
            ),
            "a teacher in vLLM scores at temperature 1",
        ),
        (
            ("--algo.distillation.teacher", "tiny:alice", "--algo.kl-in-reward", "0.1"),
            "kl-coefficient",
        ),
    ],
)
def test_what_cannot_work_is_refused(
    flags: tuple[str, ...],
    why: str,
    capfd: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(preflight, "check_engines", lambda *args, **kwargs: None)
    assert main([*FLAGS, *flags]) == 2
    assert why in capfd.readouterr().err
