"""Suites and agents that cannot be: one sentence each, before anything is sampled."""

import json
from pathlib import Path
from typing import Any

import pytest

CHAINS = "chains?min_length=3&max_length=3"
SOLO = {"env": "coterie.envs.solo:SoloEnv", "role": "solver", "problems": [CHAINS]}
GOLD = "scripted:oracle?p_right=1"
BOB, ENGINE = ("--policies", "a=tiny:bob"), ("--engine", "vllm")


@pytest.mark.parametrize(
    ("flags", "sentence"),
    [
        (["--suite", "core"], "name who is compared"),
        (["--policies", "gold"], "--policies gold: expected NAME=WHAT"),
        (["--policies", "a/b=tiny:bob"], "expected NAME=WHAT"),
        (["--policies", "vote=tiny:bob"], "must not be vote"),
        ([*BOB, "a=tiny:alice"], "the same name"),
        (["--policies", "a=tiny:nobody"], "unknown tiny model"),
        (["--policies", "a=./nowhere"], "nowhere"),
        (["--policies", "a=scripted:loud"], "loud"),
        ([*BOB, "--suite", "nope"], "unknown suite 'nope'; known: core, corea"),
        ([*BOB, "--suite", "core", "core"], "names a suite twice"),
        ([*BOB, "--problems", "nope"], "unknown problems"),
        ([*BOB, "--problems", "chains", "chains"], "the same problems twice"),
        ([*BOB, "--samples", "0"], "--samples is 0; it must be at least 1"),
        ([*BOB, "--prices", "b=1,2"], "--prices names b"),
        ([*BOB, "--prices", "a=1"], "two numbers"),
        ([*BOB, "--prices", "a=nan,1"], "a number from 0 on"),
        ([*BOB, "--prices", "nope.json"], "name a JSON file"),
        ([*BOB, "b=tiny:bob", "--prices", "a=1,2"], "--prices lacks b"),
        (["--policies", "a=~nosuchuser/x"], "cannot be the name of a file or folder here"),
        ([*BOB, "--verifier", "b"], "name one of a"),
        ([*BOB, "--verifier", "a=tiny:bob"], "is a policy already"),
        ([*BOB, "--verifier-tokens", "7"], "--verifier-tokens changes nothing without --verifier"),
        (
            [*BOB, "--suite", "examples.relay:Relay", "--max-new-tokens", "64"],
            "examples.relay:Relay has no setting max_new_tokens; leave out --max-new-tokens",
        ),
        (["--policies", "a=scripted:silent", "--problems", CHAINS], "nothing was answered"),
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
        *(
            (json.dumps(SOLO | {field: value}), sentence)
            for field, value, sentence in [
                ("name", "../../evil", "files are called after it"),
                ("problems", "chains", "problems is 'chains'; it must be a list"),
                ("settings", {"max_new_tokens": "x"}, "max_new_tokens is 'x'; it must be a whole"),
            ]
        ),
    ],
)
def test_files_that_are_no_suite(run: Any, tmp_path: Path, content: str, sentence: str) -> None:
    (tmp_path / "mine.json").write_text(content)
    flags = ("--policies", f"gold={GOLD}", "--suite", str(tmp_path / "mine.json"))
    assert sentence in run(*flags, code=2)
