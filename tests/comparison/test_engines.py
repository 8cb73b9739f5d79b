"""Comparisons that sample with engines: the same answers, and nothing left running."""

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


@pytest.mark.parametrize(
    ("flags", "engines"),
    [
        # One agent alone at a time.
        (("--policies", "alice=tiny:alice", "bob=tiny:bob", "--problems", CHAINS), 2),
        # Two models alone, then both in each other's workflow; a script needs no engine.
        (
            (
                "--policies",
                *("policy=tiny:policy", "expert=tiny:expert", "gold=scripted:oracle"),
                *("--suite", "eapo", "--problems", CHAINS),
            ),
            4,
        ),
    ],
    ids=("suite", "suite-workflow"),
)
def test_the_same_answers_as_in_this_process(
    tmp_path: Path, file_engine: Any, flags: tuple[str, ...], engines: int
) -> None:
    """The stand-in samples from what an engine is given as this process would."""
    here = compared(*flags, out=tmp_path / "here")
    assert not file_engine.started
    there = compared(*flags, *ENGINE, out=tmp_path / "there")
    assert _measured(here) == _measured(there)
    assert len(file_engine.started) == engines
    assert all(engine.closed for engine in file_engine.started)
    # What is stored is not sampled again, whoever sampled it.
    compared(*flags, *ENGINE, out=tmp_path / "here")
    assert len(file_engine.started) == engines


def _measured(results: Any) -> Any:
    """Without what depends on the clock and on the folder."""
    if isinstance(results, dict):
        return {
            key: _measured(value)
            for key, value in results.items()
            if key not in ("seconds", "config", "files")
        }
    return [_measured(entry) for entry in results] if isinstance(results, list) else results
