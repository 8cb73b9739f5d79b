"""Wheels for a machine without an index, and parts that are measured there one after another."""

import importlib
import json
import os
import tomllib
import zipfile
from pathlib import Path
from types import SimpleNamespace

import pytest
from packaging.requirements import Requirement

from coterie.datatypes import UserError

ROOT = Path(__file__).parents[2]
gathering = importlib.import_module("gpu.gather")
running = importlib.import_module("gpu.running")


def test_what_a_machine_has_is_read_from_pip_or_from_names() -> None:
    lines = ["# there", "torch==2.11.0+cu130", "NumPy", "huggingface_hub==1.33.0", "-e .", ""]
    lines.append("mine @ file:///there")
    assert gathering.installed(lines) == {
        "torch": "2.11.0+cu130", "numpy": None, "huggingface-hub": "1.33.0", "mine": None,
    }  # fmt: skip
    for bad in ("torch>=2", "what is this", "torch==new"):
        with pytest.raises(UserError, match=bad.replace(" ", ".")):
            gathering.installed([bad])


def fake_index(packages: dict[str, tuple[str, tuple[str, ...], int]]):
    """Name -> (version, needs, bytes of padding), as something that is fetched from."""
    asked: list[str] = []

    def fetch(requirement: Requirement, folder: Path) -> Path | None:
        asked.append(requirement.name)
        if requirement.name not in packages:
            return None
        version, needs, padding = packages[requirement.name]
        path = folder / f"{requirement.name}-{version}-py3-none-any.whl"
        lines = [
            f"Name: {requirement.name}",
            f"Version: {version}",
            *(f"Requires-Dist: {n}" for n in needs),
        ]
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr(f"{requirement.name}-{version}.dist-info/METADATA", "\n".join(lines))
            archive.writestr("data", os.urandom(padding))
        return path

    return fetch, asked


def test_what_is_missing_comes_with_what_it_needs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = [Requirement(name) for name in ("torch>=2.11", "a[more]>=1", "large", "nowhere")]
    monkeypatch.setattr(gathering, "wanted", lambda: first)
    needs = ("b", "torch>=2", "c; python_version < '3.12'", "d; extra == 'more'", "e; extra == 'x'")
    needs += ("f; sys_platform == 'win32'", "old>=3")
    packages = {
        "a": ("1.5", needs, 0),
        "b": ("2", ("a>=1",), 0),
        "d": ("1", (), 0),
        "old": ("3.1", (), 0),
        "large": ("1", (), 3 << 20),
    }
    fetch, asked = fake_index(packages)
    target = gathering.Target("3.12", {"torch": "2.11.0", "old": "2.0"})
    wheels, left_out = gathering.gather(target, tmp_path, 2, fetch)
    assert asked == ["a", "large", "nowhere", "b", "d", "old"]
    assert sorted(wheels) == ["a", "b", "d", "old"]
    assert left_out == {
        "large": "its wheel has 3 MiB",
        "nowhere": "no wheel of nowhere for Python 3.12 can be had",
    }
    assert {path.name.partition("-")[0] for path in tmp_path.iterdir()} == set(wheels)
    # Two versions of one package cannot both be there.
    packages["b"] = ("2", ("d>=2",), 0)
    with pytest.raises(UserError, match="d 1 was taken, and something needs d>=2"):
        gathering.gather(target, tmp_path, 2, fetch)


def test_all_that_this_project_needs_is_wanted() -> None:
    wanted = {requirement.name for requirement in gathering.wanted()}
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert {Requirement(text).name for text in project["dependencies"]} <= wanted
    tests = {Requirement(text).name for text in project["optional-dependencies"]["test"]}
    # What a conftest imports is among them, whoever adds it.
    assert tests - wanted == gathering.NOT_OF_TESTS


def a_tree(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Parts that write, fail and hang, in the place of ours."""
    folder = root / "tools" / "gpu"
    folder.mkdir(parents=True)
    (folder / "__main__.py").write_text(
        "import json, pathlib, sys, time\n"
        "name, scratch = sys.argv[2], pathlib.Path(sys.argv[4])\n"
        "if name == 'hangs': time.sleep(60)\n"
        "if name == 'fails': print('what went wrong'); sys.exit(3)\n"
        "(scratch / 'result.json').write_text(json.dumps({'argv': sys.argv[5:]}))\n"
    )
    monkeypatch.setattr(running, "ROOT", root)
    monkeypatch.setattr(running, "PARTS", {"fails": 30, "hangs": 6, "a": 30})


@pytest.mark.slow
def test_a_part_that_fails_or_hangs_takes_no_other_along(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    a_tree(tmp_path / "tree", monkeypatch)
    assert running.run(tmp_path / "out", None, None, True) == 1
    figures = json.loads((tmp_path / "out/figures.json").read_text())
    assert figures["small"]
    parts = figures["parts"]
    assert parts["fails"]["error"] == "exit code 3"
    assert parts["fails"]["said"] == ["what went wrong"]
    assert parts["hangs"]["error"] == "ended after 6 s"
    assert parts["hangs"]["seconds"] < 20
    assert parts["a"]["argv"] == ["--small"]
    text = (tmp_path / "out/figures.md").read_text()
    assert "- fails: exit code 3" in text
    assert "- a:" not in text


def test_the_time_is_shared_and_what_is_unknown_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    a_tree(tmp_path / "tree", monkeypatch)
    monkeypatch.setattr(running, "SECONDS", 0.0)
    assert running.run(tmp_path / "out", None, ["a"], True) == 1
    figures = json.loads((tmp_path / "out/figures.json").read_text())
    assert figures["parts"] == {"a": {"error": "no time was left", "seconds": 0.0}}
    with pytest.raises(UserError, match="--parts b: known are fails hangs a"):
        running.run(tmp_path / "out", None, ["b"], True)
    (tmp_path / "file").write_text("")
    with pytest.raises(UserError, match=r"--out .*file/x cannot be written"):
        running.run(tmp_path / "file" / "x", None, None, True)
    with pytest.raises(UserError, match="holds no wheels"):
        running.run(tmp_path / "out", tmp_path, None, True)


@pytest.mark.slow
def test_each_tests_outcome_is_kept_as_it_comes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tests = importlib.import_module("gpu.tests")
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests/test_none.py").write_text("import nothing_like_it")
    (tmp_path / "tests/test_some.py").write_text(
        "import time, pytest\npytestmark = pytest.mark.gpu\n"
        "def test_a(): pass\n"
        "def test_b(): assert 1 == 2\n"
        "@pytest.mark.skip(reason='not run: there is no GPU')\ndef test_c(): pass\n"
        "def test_d(): time.sleep(60)\n"
    )
    (tmp_path / "pytest.ini").write_text("[pytest]\nmarkers =\n    gpu: needs one\n")
    monkeypatch.setattr(tests, "ROOT", tmp_path)
    monkeypatch.setattr(tests, "SECONDS", 10.0)
    monkeypatch.setenv("PYTHONPATH", f"{ROOT}:{ROOT / 'tools'}")
    outcomes = tests.measure(tmp_path)
    assert outcomes["passed"] == 1
    assert [failure["test"] for failure in outcomes["failed"]] == ["tests/test_some.py::test_b"]
    assert "assert 1 == 2" in outcomes["failed"][0]["why"]
    assert outcomes["skipped"] == {"Skipped: not run: there is no GPU": 1}
    assert outcomes["error"] == "1 failed; pytest was ended after 10 s"


def test_an_updates_operations_by_hand() -> None:
    from gpu.shapes import operations

    # A block: queries and their output 4 x 4 each, keys and values 4 x 2 each, feed-forward
    # 3 x 4 x 6: 120 weights, in 2 blocks. Head: 4 x 10.
    config = SimpleNamespace(
        hidden_size=4,
        intermediate_size=6,
        num_attention_heads=2,
        num_key_value_heads=1,
        num_hidden_layers=2,
        vocab_size=10,
    )
    forward = 2 * (2 * 120 * 7 + 40 * 3)
    assert operations(config, 7, 3, full=True) == 3 * forward
    assert operations(config, 7, 3, full=False) == 2 * forward


def test_shapes_are_of_the_sizes_that_they_are_called() -> None:
    import torch
    from transformers import AutoModelForCausalLM

    from gpu.shapes import WORK, config_of

    for shape, billions in (("0.5b", 0.494), ("3b", 3.086), ("small", 0.0002)):
        with torch.device("meta"):
            model = AutoModelForCausalLM.from_config(config_of(shape))
        assert sum(p.numel() for p in model.parameters()) / 1e9 == pytest.approx(billions, rel=0.2)
        assert WORK[shape].new > 0


def test_help_lists_what_a_user_starts(python) -> None:
    shown = python("tools/gpu", "--help").stdout
    assert "{gather,run} ..." in shown
    assert "SUPPRESS" not in shown


@pytest.mark.slow
def test_every_kind_of_part_is_rehearsed_on_a_cpu(python, tmp_path: Path) -> None:
    # A rehearsal has one shape for all: the parts of 3b would be those of 0.5b again.
    names = [name for name in running.PARTS if "3b" not in name]
    assert {*names} == {name.replace("3b", "0.5b") for name in running.PARTS}
    # Tests that need a GPU are skipped here, and TRL is compared once.
    names = [name for name in names if name not in ("tests", "trl-0.5b-full")]
    rehearsal = ("run", "--small", "--parts", *names, "--out", tmp_path)
    python("tools/gpu", *rehearsal, CUDA_VISIBLE_DEVICES="")
    figures = json.loads((tmp_path / "figures.json").read_text())
    assert figures["small"]
    parts = figures["parts"]
    assert list(parts) == names
    for tuning in ("lora", "full"):
        step = parts[f"step-0.5b-{tuning}"]
        # What is sampled has the learner's probabilities after two updates.
        for role in ("alice", "bob"):
            assert step[f"{role}/mismatch/mean"] < 1e-4
            assert step[f"{role}/grad_norm"] > 0
        assert 0.3 < step["update_of_plan"] < 1.5  # libraries of a build for CUDA are larger
    assert parts["trl-0.5b-lora"]["ours_s"] > 0
    assert parts["sampler-0.5b"]["fused_tokens_s"] > 0
