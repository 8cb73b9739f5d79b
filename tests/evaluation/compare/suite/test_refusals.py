"""Suites and agents that cannot be: one sentence each, before anything is sampled."""

import json
from pathlib import Path
from typing import Any

import pytest

CHAINS = "chains?min_length=3&max_length=3"
SOLO = {"env": "coterie.envs.solo:SoloEnv", "role": "solver", "problems": [CHAINS]}
GOLD = "scripted:oracle?p_right=1"
BOB, ENGINE = ("--policies", "a=tiny:bob"), ("--engine", "vllm")
HUGE = str(2**63)


@pytest.mark.parametrize(
    ("flags", "sentence"),
    [
        (["--suite", "core"], "name who is compared"),
        (["--policies", "gold"], "write NAME=WHAT"),
        (["--policies", "a/b=tiny:bob"], "write NAME=WHAT"),
        (["--policies", "vote=tiny:bob"], "none of vote"),
        ([*BOB, "a=tiny:alice"], "the same name"),
        (["--policies", "a=tiny:nobody"], "unknown tiny model"),
        (["--policies", "a=./nowhere"], "nowhere"),
        (["--policies", "a=scripted:loud"], "loud"),
        ([*BOB, "--suite", "nope"], "unknown suite 'nope'; known: core, corea"),
        ([*BOB, "--suite", "core", "core"], "names a suite twice"),
        ([*BOB, "--problems", "nope"], "unknown problems"),
        ([*BOB, "--problems", "chains", "chains"], "the same problems twice"),
        ([*BOB, "--samples", "0"], "--samples is 0; it must be at least 1"),
        ([*BOB, "--batch", "0"], "--batch is 0; it must be at least 1"),
        ([*BOB, "--temperature", "-1"], "--temperature is -1.0; it must be at least 0"),
        ([*BOB, "--top-p", "0"], "--top-p is 0.0; it must be above 0"),
        ([*BOB, "--prices", "b=1,2"], "--prices names b"),
        ([*BOB, "--prices", "a=1"], "two numbers"),
        ([*BOB, "--prices", "a=nan,1"], "a number from 0 on"),
        ([*BOB, "--prices", "nope.json"], "name a JSON file"),
        ([*BOB, "b=tiny:bob", "--prices", "a=1,2"], "--prices lacks b"),
        ([*BOB, "--resamples", "1000000000"], "--resamples is 1000000000; it must be 1 to"),
        (["--policies", "a=~nosuchuser/x"], "cannot be the name of a file or folder here"),
        (["--policies", f"a={'x' * 5000}"], "cannot be the name of a file or folder here"),
        ([*BOB, "--suite", f"{'x' * 5000}.json"], "cannot be the name of a"),
        ([*BOB, "--verifier", "b"], "name one of a"),
        ([*BOB, "--verifier", "a=tiny:bob"], "is a policy already"),
        (["--policies", "a=scripted:silent", "--problems", CHAINS], "nothing was answered"),
        ([*BOB, "--temperature", "nan"], "--temperature is nan; it must be at least 0 and finite"),
        ([*BOB, "--temperature", "inf"], "--temperature is inf; it must be at least 0 and finite"),
        ([*BOB, "--samples", HUGE], "it must be at least 1 and below 2^31"),
        ([*BOB, "--top-p", "7"], "--top-p is 7.0; it must be above 0 and at most 1"),
        ([*BOB, "--vllm.gpu-memory", "0.3"], "--vllm.* and --agents.ROLE.engine-device need --en"),
        ([*BOB, *ENGINE, "--vllm.gpu-memory", "3"], "--vllm.gpu-memory is 3.0; it must be above 0"),
        (["--policies", "gold=scripted:oracle", *ENGINE], "no model to sample from"),
    ],
)
def test_mistakes(run: Any, file_engine: Any, flags: list[str], sentence: str) -> None:
    assert sentence in run(*flags, code=2)
    assert not file_engine.started


@pytest.mark.parametrize(
    ("kind", "flag"), [("judged", "--scoring.judge"), ("code", "--scoring.programs")]
)
def test_what_nobody_grades(run: Any, graded_files: dict[str, str], kind: str, flag: str) -> None:
    said = run(
        "--policies", f"a={GOLD}", "--suite", "math", "--problems", graded_files[kind], code=2
    )
    assert f"of kind {kind}" in said
    assert flag in said


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        ("{", "is not JSON"),
        ("[]", "describes no suite"),
        ('{"env": "core-teaching"}', "an object with env, problems, and"),
        ('{"env": "core-teaching", "role": "alice", "problems": []}', "at least one set"),
        (
            '{"env": "core-teaching", "role": "alice", "problems": ["chains"], '
            '"settings": {"k": 1}}',
            "has no setting k",
        ),
        ('{"env": "core-teaching", "role": "zoe", "problems": ["chains"]}', "has no role zoe"),
        ("[" * 100_000, "nested too deeply"),
        *(
            (json.dumps(SOLO | {field: value}), sentence)
            for field, value, sentence in [
                ("name", "../../evil", "files are called after it"),
                ("name", "..", "files are called after it"),
                ("name", 5, "name is 5; it must be text"),
                ("problems", "chains", "problems is 'chains'; it must be a list"),
                ("problems", [1], "problems is (1,); it must be a list, each entry text"),
                ("env", 5, "env is 5; it must be text"),
                ("mode", None, "mode is None; it must be text"),
                ("settings", [1], "settings is (1,); it must be an object"),
                ("settings", {"max_new_tokens": "x"}, "max_new_tokens is 'x'; it must be a whole"),
                ("settings", {"max_new_tokens": True}, "it must be a whole number"),
                ("settings", {"prompt": 5}, "prompt is 5; it must be text"),
            ]
        ),
    ],
)
def test_files_that_are_no_suite(run: Any, tmp_path: Path, content: str, sentence: str) -> None:
    (tmp_path / "mine.json").write_text(content)
    flags = ("--policies", f"gold={GOLD}", "--suite", str(tmp_path / "mine.json"))
    assert sentence in run(*flags, code=2)
