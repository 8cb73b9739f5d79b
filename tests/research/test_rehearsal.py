"""The tool that plays a paper's preset from the command line to the exported model; what its
commands do is tests/research/test_paper_runs.py.
"""

from pathlib import Path

import pytest

from coterie.cli.command_line import parse
from miniatures import rehearsal
from miniatures.rehearsal import Command


@pytest.mark.slow
def test_a_phase_is_timed_in_a_process_of_its_own(tmp_path: Path) -> None:
    phase = Command("step", "train", ("--steps", "0"))
    code, taken = rehearsal.in_a_process(phase, tmp_path / "log")
    assert "train.py: --steps is 0; it must be" in (tmp_path / "log").read_text()
    assert code == 2
    assert taken["step_s"] > 0
    assert 2**14 > taken["step_mib"] > 8  # a Python is larger than 8 MiB


def _made(folder: Path) -> Path:
    folder.mkdir(parents=True)
    return folder


def test_a_phase_that_fails_names_its_log(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(rehearsal, "in_a_process", lambda phase, log: (2, {}))
    monkeypatch.setattr(rehearsal, "build", lambda name, folder, scale: _made(folder))
    assert rehearsal.main(["eapo-r1-7b", "--folder", str(tmp_path)]) == 1
    log = tmp_path / "eapo-r1-7b" / "step.log"
    assert [path.name for path in (tmp_path / "models-0.0001").iterdir()] == [
        "deepseek-ai--DeepSeek-R1-Distill-Qwen-7B"
    ]
    assert capsys.readouterr().err == f"eapo-r1-7b, step: exit code 2, see {log}\n"


@pytest.mark.parametrize("name", ["core-qwen-gsm8k", "corea-qwen-7b"])
def test_flags_of_a_user_replace_those_of_the_rehearsal(name: str, tmp_path: Path) -> None:
    # As docs/presets.md has it; some environments are cut to another number of problems.
    own = ("--rollout.problems-per-step", "1", "--eval.no-enabled", "--steps", "9")
    models = dict.fromkeys(parse(["--preset", name]).agents, "tiny:alice")
    for phase in rehearsal.phases(name, models, tmp_path, own):
        if phase.name in ("step", "export"):
            settings = parse(phase.arguments)
            assert settings.rollout.problems_per_step == 1
            assert settings.run.steps == 1  # a rehearsal's own
