"""Comparisons sample with engines: the same answers, and nothing left running."""

import json
from pathlib import Path
from typing import Any

import pytest

from coterie import benchmark

FEW = ("--questions", "6", "--samples", "2", "--resamples", "20")
ENGINE = ("--engine", "vllm")
CHAINS = "chains?min_length=3&max_length=3"


def compared(*flags: str, out: Path) -> Any:
    assert benchmark.main([*flags, *FEW, "--out", str(out)]) == 0
    return json.loads((out / "results.json").read_text())


def measured(results: Any) -> Any:
    """Without what depends on the clock and on the folder."""
    if isinstance(results, dict):
        drop = ("seconds", "config", "files")
        return {key: measured(value) for key, value in results.items() if key not in drop}
    return [measured(value) for value in results] if isinstance(results, list) else results


@pytest.mark.parametrize(
    ("flags", "engines"),
    [
        # Two models alone, then both in each other's workflow; a script needs no engine.
        (
            (
                "--policies",
                *("policy=tiny:policy", "expert=tiny:expert", "gold=scripted:oracle"),
                *("--suite", "eapo", "--problems", CHAINS),
            ),
            4,
        ),
        # Both small models are one.
        (("corea", "--systems", "slm", "llm", "--corea", "tiny:small"), 2),
        # The expert alone, whose stored replies the workflow is told; the base alone and with
        # itself, then with the expert.
        (("eapo", "--no-peers", "--no-noise", "--problems", CHAINS), 4),
    ],
    ids=("suite", "corea", "eapo"),
)
def test_the_same_answers_as_in_this_process(
    tmp_path: Path, file_engine: Any, flags: tuple[str, ...], engines: int
) -> None:
    """The stand-in samples from what an engine is given as this process would."""
    here = compared(*flags, out=tmp_path / "here")
    assert not file_engine.started
    there = compared(*flags, *ENGINE, out=tmp_path / "there")
    assert measured(here) == measured(there)
    assert len(file_engine.started) == engines
    assert all(engine.closed for engine in file_engine.started)
    # What is stored is not sampled again, whoever sampled it.
    compared(*flags, *ENGINE, out=tmp_path / "here")
    assert len(file_engine.started) == engines


def test_adapters_of_a_model_are_asked_on_its_engine(tmp_path: Path, file_engine: Any) -> None:
    adapted = tmp_path / "run" / "final"
    quick = ("--steps", "1", "--problems-per-step", "2", "--solutions", "1", "--tuning", "lora")
    assert benchmark.main(["distill", "--out", str(tmp_path / "run"), *quick]) == 0
    results = compared(
        *("--policies", f"policy={adapted}/policy", "--problems", CHAINS, *ENGINE),
        out=tmp_path / "out",
    )
    assert "policy" in results["suites"]["core"]["rows"]
    (engine,) = file_engine.started
    assert engine.spec.adapters == 1
    assert engine.closed
