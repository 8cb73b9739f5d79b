"""Tiny models compute with what x86-64 processors have in common, others with all there is."""

import json
import os

import pytest

from coterie.agents.models import instructions
from coterie.agents.models.spec import ModelSpec

NAMES = (*instructions.COMMON, "COTERIE_INSTRUCTIONS")


@pytest.fixture(autouse=True)
def plain(monkeypatch: pytest.MonkeyPatch) -> None:
    """No variable is set; the processor is an x86-64 one with AVX2."""
    for name in NAMES:
        monkeypatch.setenv(name, "")  # so that what a test sets goes away again
        del os.environ[name]
    monkeypatch.setattr(instructions, "has_avx2", lambda: True)


def set_now() -> dict[str, str]:
    return {name: os.environ[name] for name in instructions.COMMON if name in os.environ}


def test_tiny_models_keep_what_is_common(checkpoint) -> None:
    instructions.use_common()
    assert set_now() == {
        "ATEN_CPU_CAPABILITY": "avx2",
        "MKL_CBWR": "COMPATIBLE",
        "ONEDNN_MAX_CPU_ISA": "AVX2",
    }
    instructions.fit_instructions([ModelSpec("tiny:alice"), ModelSpec(str(checkpoint("qwen3")))])
    assert len(set_now()) == 3


def test_one_other_model_takes_all_that_is_ours_back(random_model: str) -> None:
    os.environ["MKL_CBWR"] = "AVX2"
    instructions.use_common()
    assert set_now()["ATEN_CPU_CAPABILITY"] == "avx2"
    instructions.fit_instructions([ModelSpec("tiny:alice"), ModelSpec(random_model)])
    assert set_now() == {"MKL_CBWR": "AVX2"}  # the user's own


def test_a_model_of_the_hub_is_another() -> None:
    instructions.use_common()
    instructions.fit_instructions([ModelSpec("nobody/not-on-this-disk")])
    assert set_now() == {}


@pytest.mark.parametrize(
    ("machine", "flags", "has"),
    [
        ("x86_64", "flags : fpu avx avx2 bmi2", True),
        ("AMD64", "flags : fpu avx avx2", True),
        ("x86_64", "flags : fpu avx", False),
        ("x86_64", "flags : fpu avx512f", False),
        ("aarch64", "flags : asimd avx2", False),
        ("arm64", "", False),
    ],
)
def test_the_processor_is_looked_at(tmp_path, monkeypatch, machine, flags, has) -> None:
    monkeypatch.undo()
    monkeypatch.setattr(instructions, "_CPUINFO", tmp_path / "cpuinfo")
    monkeypatch.setattr(instructions, "processor_flags", instructions.processor_flags.__wrapped__)
    assert not instructions.processor_flags()  # no Linux
    (tmp_path / "cpuinfo").write_text(flags + "\n")
    monkeypatch.setattr("platform.machine", lambda: machine)
    assert instructions.has_avx2() is has


def test_without_avx2_nothing_is_set_and_the_run_says_so(monkeypatch) -> None:
    monkeypatch.setattr(instructions, "has_avx2", lambda: False)
    instructions.use_common()
    assert set_now() == {}
    assert "no x86-64 processor with AVX2" in instructions.described()["why"]


PROGRAM = """
import json, sys
from coterie.train import main
assert main(sys.argv[1:]) == 0
"""


@pytest.mark.slow
def test_a_run_keeps_what_the_user_has_set(python, tmp_path) -> None:
    """A run with nothing set is one of test_start_up.py."""
    user = {"ATEN_CPU_CAPABILITY": "default"}
    if not instructions.has_avx2():
        pytest.skip("the processor has no AVX2")
    small = ("--steps", 1, "--rollout.problems-per-step", 2, "--eval.no-enabled")
    python("-c", PROGRAM, *small, "--run-dir", tmp_path / "run", **user)
    kept = json.loads((tmp_path / "run" / "environment.json").read_text())["instructions"]
    assert kept == {"torch": "DEFAULT", **instructions.COMMON, **user}


CHECKED = """
import sys
from coterie.cli.commands import run_command
from coterie.cli.command_line import parse
from coterie.extras.ops import checks
from coterie.training.config.preflight import preflight

checks._SMALL = 0  # so that the memory of this model is planned

def checked() -> int:
    preflight(parse(sys.argv[1:]))
    import torch
    print(torch.backends.cpu.get_cpu_capability())
    return 0

run_command(checked, program="test", interrupted="")
"""


@pytest.mark.slow
def test_checks_of_a_real_model_leave_it_the_processors_instructions(python, random_model) -> None:
    own = python("-c", "import torch; print(torch.backends.cpu.get_cpu_capability())")
    flags = ("--env", "solo", "--agents.solver.model", random_model, "--problems.train", "chains")
    checked = python("-c", CHECKED, *flags, "--agents.solver.tuning", "lora")
    assert checked.stdout.splitlines()[-1] == own.stdout.strip()
