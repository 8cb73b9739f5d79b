"""Flags that cannot be: one sentence each, by the flag, before any model is loaded.

One table a settings class; the flags of a row as a shell splits them.
"""

import json
import shlex
from pathlib import Path
from typing import Any

import pytest

from coterie import train

NO_NAME = "cannot be the name of a file or folder here"
HUGE, LONG = 2**63, "x" * 5000
NO_ROLE = "is not a name for a role"
EAPO, COREA, SOLO = (
    "--env eapo-consultation",
    "--env corea-deferral",
    "--env coterie.envs.solo:SoloEnv",
)
NO_PEERS = "has no trace read again, so nothing is distilled: leave out --algo.distillation"
BETA = "--algo.distillation.beta 1"
ENGINE = "--engine vllm"

CHOICE = [
    ("--env nope", "unknown env 'nope'; known: core-teaching"),
    ("--env ''", "unknown env ''; known: core-teaching"),
    ("--algo ppo", "unknown algorithm 'ppo'; known: grpo, dr-grpo"),
    ("--preset core", "unknown preset 'core'"),
    ("--env core-teaching --env.k-colt 3", "unknown option --env.k-colt; did you mean --env.k-c"),
    ("--roles alice", "has no peer"),
    ("--roles alice alice", "--roles names alice twice"),
    ("--roles ../x bob", "'../x' is not a name for a role"),
    ("--roles class bob", "'class' is not a name for a role"),
    ("--roles mro bob", "'mro' is not a name for a role"),
    (f"--roles {'a' * 300} bob", NO_ROLE),
    ("--train-role carol", "--train-role names carol; the roles here are alice, bob"),
    (f"{EAPO} --train-role expert", "only policy can learn here"),
    (f"--resume {'x' * 300}", NO_NAME),
    ("--resume nowhere", "nowhere is not a run"),
    ("--resume nowhere --algo grpo", "leave out --algo"),
    ("--resume nowhere --env grpo", "leave out --env"),
]
RUN = [
    ("--seed -1", "--seed is -1; it must be at least 0 and below 2^63"),
    ("--threads 100000", "--threads must be 0 to"),
    ("--steps 0", "--steps is 0; it must be at least 1"),
    ("--steps 1_000", "--steps is '1_000'; it must be a whole number"),
    ("--learner.lr 1_0.5", "--learner.lr is '1_0.5'; it must be a number"),
    ("-- word --steps 3", "leave out the word --"),
    ("--group-by moon", "no such group; known: problem, problem+role"),
    (f"--run-dir {'x' * 300}", NO_NAME),
]
ROLLOUT = [
    ("--rollout.temperature 0", "--rollout.temperature is 0.0; it must be above 0"),
    ("--rollout.temperature inf", "is inf; it must be above 0 and finite"),
    ("--rollout.call-deadline-s -1", "--rollout.call-deadline-s is -1.0; it must be above 0"),
    ("--rollout.replicas 4097", "--rollout.replicas is 4097; it must be 0 to 4096"),
    ("--rollout.overlap", "--engine vllm"),
]
EVAL_AND_SCORING = [
    ("--eval.resamples 1000000000", "--eval.resamples is 1000000000; it must be 1 to"),
    ("--eval.top-p 0", "--eval.top-p is 0.0; it must be above 0 and at most 1"),
    ("--scoring.workers 100000", ", four for each processor here"),
    (
        "--scoring.judge-max-new-tokens 5",
        "--scoring.judge-max-new-tokens does nothing without --scoring.judge",
    ),
    (
        "--scoring.program-deadline-s 5",
        "--scoring.program-deadline-s does nothing without --scoring.programs",
    ),
    (
        "--scoring.program-memory-mb 99",
        "--scoring.program-memory-mb does nothing without --scoring.programs",
    ),
]
AGENTS = [
    ("--agents.alice.model ./nowhere", "'./nowhere'"),
    ("--agents.alice.model tiny:zed", "unknown tiny model 'tiny:zed'"),
    ("--agents.alice.lora-rank 64", "leave out --agents.alice.lora-rank 64: alice learns full"),
    ("--agents.alice.model ''", "a model has no name; give a folder"),
    ("--agents.alice.device meta", "no device 'meta' here; say auto or cpu"),
    ("--agents.alice.no-trained --agents.bob.no-trained", "no role is trained"),
    ("--learner.lr nan", "--learner.lr is nan; it must be above 0 and finite"),
    ("--agents.bob.context 1", "--agents.bob.context is 1; it must be at least 2"),
    ("--agents.bob.chat template", "has no chat template; say --agents.bob.chat plain"),
    ("--agents.bob.context 4097", "4097 is more than the 4096 tokens of 'tiny:bob'; lower it"),
    ("--agents.alice.temperature 0", "above 0 for a role that learns"),
    ("--agents.bob.model scripted:silent", "played by scripted:silent, which cannot learn"),
    ("--agents.alice.system Hi", "--agents.alice.system: tiny:alice has no chat template; leave"),
    ("--agents.alice.system Hi --agents.alice.chat plain", "chat plain does not use: leave out"),
    (
        f"{EAPO} --agents.expert.model scripted:oracle --agents.expert.system Hi",
        "--agents.expert.system: scripted:oracle reads no system message; leave it out",
    ),
    (
        f"{EAPO} --agents.expert.model 'pool:tiny:alice|scripted:oracle' --agents.expert.system Hi",
        "--agents.expert.system: scripted:oracle reads no system message",
    ),
    (
        f"{EAPO} --agents.expert.model 'pool:tiny:alice|tiny:bob' --agents.expert.system Hi",
        "--agents.expert.system: tiny:alice has no chat template",
    ),
    (
        f"{EAPO} --agents.expert.model 'server:http://h?model=m&system_prompt=a' "
        "--agents.expert.system Hi",
        "has a system_prompt already; leave out one of the two",
    ),
    (
        f"{EAPO} --agents.expert.model 'server:http://h?model=m&api=completions' "
        "--agents.expert.system Hi",
        "has api=completions, which sends no system message",
    ),
    (f"{EAPO} --agents.expert.model scripted:loud", "kind=loud is not a value"),
    (f"{EAPO} --agents.expert.model scripted:oracle --agents.expert.top-p 0.5", "samples nothing"),
]
PROBLEMS = [
    ("--problems.train missing.jsonl", "missing.jsonl"),
    ("--problems.train reasoning-gym:chain_sun", "chain_sum"),
    ("--problems.train ~nosuchuser/x", NO_NAME),
    (f"--problems.train {LONG}", NO_NAME),
    ("--problems.train hub:", "write hub:OWNER/NAME"),
    ("--problems.held-out 100000000000", "at most 100000 can be held out"),
    ("--problems.choice-seed 3", "such as gpqa, and there is none here; leave it out"),
    ("--problems.limit 100000000000", "lower --problems.held-out or --problems.limit"),
]
LEARNER_AND_ALGORITHM = [
    ("--learner.betas 0.9 nan", "--learner.betas is (0.9, nan); it must be at least 0 and"),
    ("--algo.kl-coefficient 0.1 --algo.kl-estimator k1", "k1"),
    (
        "--algo.overlong-factor 2",
        "--algo.overlong-factor does nothing without --algo.overlong-limit and --algo.overlong-bu",
    ),
    ("--agents.bob.algo=", "--agents.bob.algo needs the name of an algorithm"),
    ("--agents.bob.algo gspo --agents.bob.algo=grpo", "--agents.bob.algo is given twice"),
    ("--env.reread none", "set it to 0, or choose --env.reread wrong"),
    ("--algo.distillation.beta 0", "--env.reread unsolved does nothing without --algo.distill"),
    (f"{COREA} {BETA}", f"corea-deferral {NO_PEERS}"),
    (f"--env sd-e2 {BETA}", f"sd-e2 {NO_PEERS}"),
    (f"{SOLO} --agents.solver.model tiny:alice {BETA}", f"coterie.envs.solo:SoloEnv {NO_PEERS}"),
    (f"{EAPO} --env.reread none", "set it to 0, or add --env.lone 1 --env.reread wrong"),
]
ENV = [
    ("--env.k-cold 0", "--env.k-cold is 0; it must be 1 to 4096"),
    ("--env.w-explore 1 inf", "--env.w-explore is (1.0, inf); it must be finite"),
    ("--env.reread-contrast", "say --algo.distillation.likeliest 0"),
]
WARMUP = [
    ("--warmup.steps 1 --warmup.lr 0", "--warmup.lr is 0.0; it must be above 0"),
    ("--warmup.problems chains", "--warmup.problems does nothing without --warmup.steps"),
    ("--agents.alice.warmup chains", "--agents.alice.warmup chains does nothing without --warm"),
    (
        "--warmup.steps 2 --train-role alice --agents.bob.warmup chains",
        "--agents.bob.warmup chains: bob is frozen; name it with --train-role",
    ),
    (
        "--warmup.steps 2 --agents.alice.warmup none --agents.bob.warmup none",
        "--warmup.steps 2 has no role to warm up",
    ),
    ("--warmup.steps 2 --warmup.problems recall", "has a worked solution"),
    (
        "--warmup.steps 2 --warmup.problems WORKED --problems.eval WORKED",
        "none of its 24 problems is left",
    ),
]
VLLM = [
    ("--agents.bob.engine-device cuda:1", "--engine vllm"),
    (f"{ENGINE} --vllm.sleep-level 1", "cannot sleep"),
]
TABLES = (
    *(CHOICE, RUN, ROLLOUT, EVAL_AND_SCORING, AGENTS, PROBLEMS),
    *(LEARNER_AND_ALGORITHM, ENV, WARMUP, VLLM),
)


@pytest.fixture(scope="module")
def worked(tmp_path_factory: pytest.TempPathFactory) -> str:
    rows = [{"question": f"{n}+1", "answer": f"{n + 1}", "solution": f"{n}+1"} for n in range(24)]
    path = tmp_path_factory.mktemp("sets") / "worked.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return str(path)


@pytest.mark.parametrize(("flags", "sentence"), [row for table in TABLES for row in table])
def test_a_mistake_gets_one_sentence_and_exit_code_2(
    flags: str,
    sentence: str,
    worked: str,
    file_engine: Any,
    refused: Any,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    text = refused(train.main, *shlex.split(flags.replace("WORKED", worked)))
    assert sentence in text
    assert text.startswith("train.py: ")
    assert not any(tmp_path.iterdir()), "a refused run leaves nothing behind"
    assert not file_engine.started
