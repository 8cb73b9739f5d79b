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
NO_PEERS = "has no traces of peers to learn from: leave out --algo.distillation"
BETA = "--algo.distillation.beta 1"
ENGINE = "--engine vllm"

CHOICE = [
    ("--env nope", "unknown env 'nope'; known: core-teaching"),
    ("--algo ppo", "unknown algorithm 'ppo'; known: grpo, dr-grpo"),
    ("--preset core", "unknown preset 'core'"),
    ("--env core-teaching --env.k-colt 3", "unknown option --env.k-colt; did you mean --env.k-c"),
    ("--roles alice", "has no peer"),
    ("--roles alice alice", "--roles names alice twice"),
    ("--roles 'a b' c", "'a b' is not a name for a role"),
    ("--roles 0 bob", "--roles: '0' is not a name for a role"),
    ("--roles ../x bob", "'../x' is not a name for a role"),
    ("--roles class bob", "'class' is not a name for a role"),
    ("--roles __init__ bob", "'__init__' is not a name for a role"),
    ("--roles _a bob", "'_a' is not a name for a role"),
    ("--roles mro bob", "'mro' is not a name for a role"),
    ("--roles \ufb01 bob", NO_ROLE),
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
    ("--seed 99999999999999999999", "it must be at least 0 and below 2^63"),
    ("--threads 100000", "--threads must be 0 to"),
    ("--steps 0", "--steps is 0; it must be at least 1"),
    ("--steps 1_000", "--steps is '1_000'; it must be a whole number"),
    ("--steps \u0661\u0662", "it must be a whole number"),
    ("--learner.lr 1_0.5", "--learner.lr is '1_0.5'; it must be a number"),
    (
        "--env.max-new-tokens 5000000000",
        "--env.max-new-tokens is 5000000000; it must be at least 1 and below 2^31",
    ),
    (
        "--learner.epochs 5000000000",
        "--learner.epochs is 5000000000; it must be at least 1 and below 2^31",
    ),
    ("--agents.bob.lora-rank 0", "--agents.bob.lora-rank is 0; it must be 1 to 4096"),
    ("--agents.bob.lora-alpha -3", "--agents.bob.lora-alpha is -3; it must be at least 1"),
    ("--agents.bob.context 0", "--agents.bob.context is 0; it must be at least 1"),
    ("-- word --steps 3", "leave out the word --"),
    (f"--steps {HUGE}", f"--steps is {HUGE}; it must be at least 1 and below 2^31"),
    ("--checkpoint-every 0", "--checkpoint-every is 0; it must be at least 1"),
    ("--group-by moon", "no such group; known: problem, problem+role"),
    (f"--run-dir {'x' * 300}", NO_NAME),
    ("--run-dir a\0b", NO_NAME),
]
ROLLOUT = [
    ("--rollout.temperature 0", "--rollout.temperature is 0.0; it must be above 0"),
    ("--rollout.temperature inf", "is inf; it must be above 0 and finite"),
    ("--rollout.learner-temperature nan", "is nan; it must be above 0 and finite"),
    ("--rollout.learner-temperature 0", "--rollout.learner-temperature is 0.0; it must be above 0"),
    ("--rollout.call-deadline-s -1", "--rollout.call-deadline-s is -1.0; it must be above 0"),
    ("--rollout.episode-deadline-s 0", "--rollout.episode-deadline-s is 0.0; it must be above 0"),
    (f"--rollout.top-k {HUGE}", "it must be at least 0 and below 2^31"),
    (
        "--rollout.problems-per-step 65537",
        "--rollout.problems-per-step is 65537; it must be 1 to 65536",
    ),
    ("--rollout.replicas 4097", "--rollout.replicas is 4097; it must be 0 to 4096"),
    ("--rollout.max-prompt-tokens 0", "--rollout.max-prompt-tokens is 0; it must be at least 1"),
    ("--rollout.max-staleness -1", "--rollout.max-staleness is -1; it must be at least 0"),
    ("--rollout.overlap", "--engine vllm"),
    (f"--rollout.overlap --rollout.max-staleness 0 {ENGINE}", "must allow 1"),
]
EVAL_AND_SCORING = [
    ("--eval.resamples 1000000000", "--eval.resamples is 1000000000; it must be 1 to"),
    ("--eval.temperature inf", "--eval.temperature is inf; it must be at least 0 and finite"),
    ("--eval.top-p 0", "--eval.top-p is 0.0; it must be above 0 and at most 1"),
    ("--scoring.workers 0", "--scoring.workers is 0; it must be at least 1"),
    ("--scoring.workers 100000", ", four for each processor here"),
    ("--scoring.deadline-s 0", "--scoring.deadline-s is 0.0; it must be above 0"),
]
AGENTS = [
    ("--agents.alice.model ./nowhere", "'./nowhere'"),
    ("--agents.alice.model tiny:zed", "unknown tiny model 'tiny:zed'"),
    ("--agents.alice.model ''", "a model has no name; give a folder"),
    ("--agents.alice.model ~nosuchuser/x", NO_NAME),
    (f"--agents.alice.model {LONG}", NO_NAME),
    ("--agents.alice.device meta", "no device 'meta' here; say auto or cpu"),
    ("--agents.alice.no-trained --agents.bob.no-trained", "no role is trained"),
    ("--learner.lr nan", "--learner.lr is nan; it must be above 0 and finite"),
    (f"--agents.bob.lora-alpha {HUGE}", "it must be at least 1 and below 2^31"),
    ("--agents.bob.lora-rank 4097", "--agents.bob.lora-rank is 4097; it must be 1 to 4096"),
    ("--agents.bob.context 4097", "--agents.bob.context 4097 is more than the 4096 tokens"),
    ("--agents.alice.temperature 0", "above 0 for a role that learns"),
    ("--agents.alice.temperature -1", "--agents.alice.temperature is -1.0; it must be at"),
    ("--agents.bob.temperature inf", "is inf; it must be at least 0 and finite"),
    ("--agents.bob.temperature nan", "is nan; it must be at least 0 and finite"),
    ("--agents.bob.top-p 0", "--agents.bob.top-p is 0.0; it must be above 0 and at most 1"),
    ("--agents.bob.top-p 1.5", "is 1.5; it must be above 0 and at most 1"),
    ("--agents.bob.model scripted:silent", "played by scripted:silent, which cannot learn"),
    (f"{EAPO} --agents.expert.model scripted:loud", "kind=loud is not a value"),
    (f"{EAPO} --agents.expert.model scripted:oracle --agents.expert.top-p 0.5", "samples nothing"),
]
PROBLEMS = [
    ("--problems.train missing.jsonl", "missing.jsonl"),
    ("--problems.train reasoning-gym:chain_sun", "chain_sum"),
    ("--problems.train ~nosuchuser/x", NO_NAME),
    (f"--problems.train {LONG}", NO_NAME),
    ("--problems.train a\0b.jsonl", NO_NAME),
    ("--problems.train \ud800.jsonl", NO_NAME),
    ("--problems.train hub:", "write hub:OWNER/NAME"),
    ("--problems.held-out 100000000000", "at most 100000 can be held out"),
    ("--problems.limit 100000000000", "lower --problems.held-out or --problems.limit"),
    ("--problems.epoch-size 0", "--problems.epoch-size is 0; it must be at least 1"),
]
LEARNER_AND_ALGORITHM = [
    ("--learner.lr -1", "--learner.lr is -1.0; it must be above 0"),
    ("--learner.lr inf", "--learner.lr is inf; it must be above 0 and finite"),
    ("--learner.betas 0.9 nan", "--learner.betas is (0.9, nan); it must be at least 0 and"),
    ("--algo.epsilon inf", "--algo.epsilon is inf; it must be at least 0 and finite"),
    ("--algo.kl-coefficient 0.1 --algo.kl-estimator k1", "k1"),
    ("--env.reread none", "set it to 0, or --env.reread, such as wrong"),
    ("--algo.distillation.beta 0", "--env.reread unsolved does nothing without --algo.distill"),
    (f"{COREA} {BETA}", f"corea-deferral {NO_PEERS}"),
    (f"--env sd-e2 {BETA}", f"sd-e2 {NO_PEERS}"),
    (f"{SOLO} --agents.solver.model tiny:alice {BETA}", f"coterie.envs.solo:SoloEnv {NO_PEERS}"),
    (f"{EAPO} --env.reread none", "set it to 0, or add --env.lone 1 --env.reread wrong"),
]
ENV = [
    ("--env.k-cold 0", "--env.k-cold is 0; it must be 1 to 4096"),
    ("--env.k-cold 100000000", "--env.k-cold is 100000000; it must be 1 to 4096"),
    ("--env.k-hinted 100000000", "--env.k-hinted is 100000000; it must be 0 to 4096"),
    (f"{COREA} --env.traces 5000", "traces is 5000; it must be 1 to 4096"),
    ("--env sd-e2 --env.eval-traces 5000", "traces is 5000; it must be 1 to 4096"),
    (f"{EAPO} --env.experts 5000", "experts is 5000; it must be 1 to 4096"),
    ("--env.w-explore nan", "--env.w-explore is (nan,); it must be finite"),
    (f"--env.cap {HUGE}", "it must be at least 1 and below 2^31"),
    ("--env.alpha -inf", "--env.alpha is -inf; it must be finite"),
    ("--env.w-explore 1 inf", "--env.w-explore is (1.0, inf); it must be finite"),
    ("--env sd-e2 --env.gamma-rate inf", "is inf; it must be at least 0 and finite"),
    (f"{COREA} --env.w-correct inf", "is inf; it must be at least 0 and finite"),
    (f"{EAPO} --env.accept-total inf", "is inf; it must be at least 0 and finite"),
    ("--env.reread none --env.reread-hint own", "does nothing while reread is none"),
    ("--env.learn-hinted-after cold", "which k_hinted 0 leaves out; choose k_hinted 1"),
    ("--env.teacher-lift 0.1", "which k_hinted 0 leaves out; choose k_hinted 1"),
]
WARMUP = [
    ("--warmup.steps -1", "--warmup.steps is -1; it must be at least 0"),
    ("--warmup.steps 1 --warmup.lr 0", "--warmup.lr is 0.0; it must be above 0"),
    (
        "--warmup.steps 1 --warmup.problems-per-step 0",
        "problems-per-step is 0; it must be 1 to 65536",
    ),
    ("--warmup.problems-per-step 65537", "is 65537; it must be 1 to 65536"),
    ("--warmup.problems chains", "--warmup.problems does nothing without --warmup.steps"),
    ("--agents.alice.warmup chains", "--agents.alice.warmup chains does nothing without --warm"),
    (
        "--warmup.steps 2 --train-role alice --agents.bob.warmup chains",
        "--agents.bob.warmup chains: bob is frozen; name it with --train-role",
    ),
    (
        "--warmup.steps 2 --agents.alice.warmup none --agents.bob.warmup none",
        "no role is left to warm up",
    ),
    ("--warmup.steps 2 --warmup.problems recall", "has a worked solution"),
    (
        "--warmup.steps 2 --warmup.problems WORKED --problems.eval WORKED",
        "none of its 24 problems is left",
    ),
]
VLLM = [
    ("--vllm.eager", "--engine vllm"),
    ("--vllm.log INFO", "--engine vllm"),
    ("--agents.bob.engine-device cuda:1", "--engine vllm"),
    (f"{ENGINE} --vllm.sleep-level 1", "cannot sleep"),
    (f"{ENGINE} --vllm.cpu-cache-gb 0", "--vllm.cpu-cache-gb"),
    (f"{ENGINE} --vllm.gpu-memory 2", "--vllm.gpu-memory"),
    (f"{ENGINE} --vllm.max-sequences 0", "--vllm.max-sequences"),
    (f"{ENGINE} --vllm.time-share", "--vllm.sleep-level"),
    (f"{ENGINE} --vllm.weights transfer", "--vllm.weights reload"),
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
