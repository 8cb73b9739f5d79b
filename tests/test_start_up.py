"""What a command and a run import, and what they do not."""

import json

import pytest

from coterie.agents.models import instructions

HEAVY = (
    "{'torch', 'transformers', 'peft', 'scipy', 'sklearn', 'pandas', 'vllm', "
    "'sentence_transformers'}"
)


@pytest.fixture
def said(python):
    """The lines that code prints, and one of the heavy packages that it has imported."""
    heavy = f"\nimport sys\nprint()\nprint(sorted({HEAVY} & set(sys.modules)))"
    return lambda code: python("-c", code + heavy).stdout.splitlines()


def test_help_and_refusals_import_nothing_heavy(said):
    helped = "[['--help'], ['train', '--help'], ['train', '--env', 'core-teaching', '--help']]"
    code = (
        "import contextlib\nfrom coterie.__main__ import main\n"
        f"for argv in {helped}:\n    with contextlib.suppress(SystemExit): main(argv)\n"
        "assert main(['train', '--steps', '0']) == 2\n"
        "assert main(['train', '--env', 'nowhere']) == 2"
    )
    assert said(code)[-1] == "[]"


@pytest.mark.slow
def test_a_run_with_full_weights_imports_what_it_uses(said, tmp_path, monkeypatch):
    """And tiny models compute with the instructions that processors have in common."""
    for name in (*instructions.COMMON, "COTERIE_INSTRUCTIONS"):
        monkeypatch.delenv(name, raising=False)
    flags = ["--steps", "1", "--rollout.problems-per-step", "2", "--eval.no-enabled"]
    argv = [*flags, "--run-dir", str(tmp_path / "run")]
    code = f"from coterie import train\nassert train.main({argv!r}) == 0"
    lines = said(code)
    assert lines[0].startswith("core-teaching with gspo: training alice, bob; loading torch")
    assert lines[-1] == "['torch', 'transformers']"
    kept = json.loads((tmp_path / "run" / "environment.json").read_text())["instructions"]
    if instructions.has_avx2():
        assert kept == {"torch": "AVX2", **instructions.COMMON}


@pytest.mark.slow
def test_a_host_program_finds_what_transformers_imports_for_it(said):
    """Assisted decoding of scikit-learn, and detectors of objects, of SciPy."""
    code = (
        "import sys, coterie.agents.models.forward.packed\n"
        "from transformers.generation import candidate_generator as generator\n"
        "from transformers.loss import loss_deformable_detr, loss_for_object_detection as loss\n"
        "assert not {'scipy', 'sklearn'} & {*sys.modules}\n"
        "print(generator.roc_curve([0, 1], [0.1, 0.9])[1][-1])\n"
        "for module in (loss, loss_deformable_detr):\n"
        "    print(*module.linear_sum_assignment([[2, 1], [1, 2]])[1])"
    )
    assert said(code)[:3] == ["1.0", "1 0", "1 0"]
