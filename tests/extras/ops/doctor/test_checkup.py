"""A healthy run, and one thing at a time broken in it."""

import contextlib
import dataclasses
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

from coterie import train
from coterie.agents.sampling.policy import LocalPolicy
from coterie.cli.command_line import read_run
from coterie.datatypes import Completion, Policy, PolicyFailure, Problem, Prompt, Sampling
from coterie.envs.bytes_codec import BytesCodec
from coterie.experts import ServerPolicy, ServerSettings
from coterie.extras.ops.doctor import examine
from coterie.extras.ops.doctor.finding import Finding
from coterie.extras.ops.doctor.observe import Examined, observe
from coterie.extras.ops.doctor.players import check_expert
from coterie.extras.ops.doctor.texts import check_stops
from coterie.extras.ops.doctor.update import learn, starting_weights
from coterie.training.session import Session

Opened = Callable[..., Examined]
Change = Callable[[Policy, Prompt, Sampling], Any]


@pytest.fixture
def opened(opened: Callable[..., Session]) -> Opened:
    """Opens a session for the doctor."""

    def start(*flags: str) -> Examined:
        session = opened(*flags)
        return Examined(session.runtime, read_run(session.run.path))

    return start


PROBLEMS = [Problem(f"p{i}", f"{i} + 8 - 3 =", str(i + 5), "number") for i in range(8)]


class Changed:
    """A policy that answers through ``change``."""

    def __init__(self, policy: Policy, change: Change) -> None:
        self._policy, self._change = policy, change

    async def __call__(self, prompt: Prompt, sampling: Sampling) -> Completion:
        return await self._change(self._policy, prompt, sampling)


async def optimistic(policy: Policy, prompt: Prompt, sampling: Sampling) -> Completion:
    said = await policy(prompt, sampling)
    return dataclasses.replace(said, logprobs=np.minimum(said.logprobs + 0.1, 0))


async def hot(policy: Policy, prompt: Prompt, sampling: Sampling) -> Completion:
    return await policy(prompt, dataclasses.replace(sampling, temperature=1.5))


async def deaf(policy: Policy, prompt: Prompt, sampling: Sampling) -> Completion:
    return await policy(prompt, dataclasses.replace(sampling, stop=()))


async def trimming(policy: Policy, prompt: Prompt, sampling: Sampling) -> Completion:
    said = await policy(prompt, sampling)
    if said.finish_reason != "stop":
        return said
    return Completion(said.tokens[:-1], said.logprobs[:-1], "stop", said.weight_version)


async def silent(policy: Policy, prompt: Prompt, sampling: Sampling) -> Completion:
    raise PolicyFailure("not today")


def stale(session: Examined, role: str) -> Policy:
    """Samples with the weights of its first answer for ever."""
    loaded = session.team.loaded[role]

    class Pinned:
        stamp = (0, 0)

        def __getattr__(self, name: str) -> Any:
            return getattr(loaded.handle, name)

    return LocalPolicy(Pinned(), loaded.codec)  # type: ignore[arg-type]


def swap(session: Examined, **policies: Policy) -> None:
    team = session.team
    session.team = dataclasses.replace(team, policies={**team.policies, **policies})


def wrong(findings: list[Finding]) -> set[tuple[str, str]]:
    return {(finding.check, finding.role) for finding in findings if finding.verdict == "wrong"}


def state(session: Examined) -> dict[str, torch.Tensor]:
    tensors_by_name = {"rng": torch.get_rng_state()}
    for role, trained_role in session.team.trained.items():
        tensors, plain = trained_role.state_dict()
        values = {**trained_role.loaded.handle.module.state_dict(), **tensors}
        tensors_by_name |= {f"{role}/{name}": value.clone() for name, value in values.items()}
        tensors_by_name[f"{role}/plain"] = torch.tensor([plain["updates"], plain["version"]])
        tensors_by_name[f"{role}/lr"] = torch.tensor(trained_role.learner.settings.lr)
    return tensors_by_name


def same(before: dict[str, torch.Tensor], after: dict[str, torch.Tensor]) -> bool:
    return before.keys() == after.keys() and all(torch.equal(before[k], after[k]) for k in before)


def test_defaults_are_healthy_and_nothing_is_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert train.main(["--doctor"]) == 0
    shown = capsys.readouterr().out
    assert "Nothing is wrong" in shown
    assert "checker" in shown
    assert not list(tmp_path.iterdir())


def test_a_teacher_where_nobody_is_right(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "250")
    flags = ["--env", "solo", "--agents.solver.model", "tiny:alice", "--algo", "grpo"]
    flags += ["--problems.train", "chains?min_length=40&max_length=40", "--problems.held-out", "4"]
    flags += ["--rollout.problems-per-step", "2", "--algo.distillation.beta", "1"]
    assert train.main([*flags, "--algo.distillation.teacher", "tiny:alice", "--doctor"]) == 0
    said = capsys.readouterr().out
    assert "mean 0.000; 0 of 2 groups have a signal" in said
    assert "nothing is learned from equal rewards" not in said
    (row,) = (line for line in said.splitlines() if line.startswith("│ teacher"))
    answers = next(line for line in said.splitlines() if line.startswith("│ answers"))
    played = answers.split("│")[3].split()[2]
    assert f"reads {played} of {played} rows" in row


def test_an_expert_that_nobody_serves(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "250")
    address = "server:http://127.0.0.1:9/v1?model=x&retries=0"
    (tmp_path / "old").mkdir()
    (tmp_path / "old" / "file").touch()
    flags = ["--env", "eapo-consultation", "--algo", "grpo", "--rollout.problems-per-step", "2"]
    flags += ["--agents.expert.model", address, "--run-dir", str(tmp_path / "old")]
    assert train.main([*flags, "--doctor"]) == 1
    said = capsys.readouterr().out
    assert "no answer: server cannot be reached" in said
    assert "1 wrong." in said
    assert "docs/experts.md" in said


async def test_an_expert_s_refusal_is_shown_with_its_server_s_words(
    web: Callable[..., Any],
) -> None:
    server, codec = web(lambda: (400, '{"error": "no temperature here"}')), BytesCodec()
    settings = ServerSettings(f"http://127.0.0.1:{server.port}", "x")
    async with ServerPolicy(settings, codec) as expert:
        team: Any = SimpleNamespace(policies={"expert": expert}, codecs={"expert": codec})
        (finding,) = await check_expert("expert", team, Sampling(8), deadline_s=None)
    assert 'refused the request (400) (it said http_400: {"error": "no te' in finding.measured


def test_the_doctor_does_not_resume(capsys: pytest.CaptureFixture[str]) -> None:
    assert train.main(["--resume", "anything", "--doctor"]) == 2
    assert "leave out one of the two" in capsys.readouterr().err


def test_everything_is_put_back(opened: Opened) -> None:
    session = opened("--learner.lr", "1e-5")
    alice = session.team.trained["alice"]
    batch = session.sample(1)
    session.update(batch, session.credit(batch))  # moments that could be lost
    before = state(session)
    findings = examine.checkup(session, PROBLEMS)
    assert not wrong(findings)
    (memory,) = [f for f in findings if f.check == "memory"]
    assert memory.role == "cpu"
    # What the run has loaded is no more needed.
    assert "MiB more (moments 2 MiB, gradients 1 MiB, activations and logits" in memory.measured
    (updates,) = [f for f in findings if (f.check, f.role) == ("weight version", "alice")]
    # 1e-5 moves little: the rate is raised until an old copy of the weights would show.
    assert "updates up to" in updates.measured
    assert "lr 1.0e-05" not in updates.measured
    assert same(state(session), before)
    rows = [row for row in batch.rows if row.role == "alice"]
    with contextlib.suppress(KeyboardInterrupt), starting_weights(session.team.trained) as start:
        moved = learn(alice, rows, np.zeros(len(rows)), start["alice"], temperature=1.0, least=1e-2)
        assert moved is not None
        assert moved.mean >= 1e-2
        assert not same(state(session), before)
        raise KeyboardInterrupt
    assert same(state(session), before)


def in_bfloat16(session: Examined, role: str) -> None:
    """Weights and moments as they were held on a GPU, which the settings refuse."""
    trained_role = session.team.trained[role]
    trained_role.loaded.handle.module.to(torch.bfloat16)
    trained_role.learner._parameters = trained_role.loaded.handle.parameters()


def test_weights_of_16_bits_that_do_not_move_are_found(opened: Opened) -> None:
    """The negative control: at the papers' rates almost nothing of bfloat16 weights moves."""
    session = opened("--learner.lr", "1e-6")
    in_bfloat16(session, "alice")
    findings = examine.checkup(session, PROBLEMS)
    alice, bob = (
        next(f for f in findings if (f.check, f.role) == ("weights that move", role))
        for role in ("alice", "bob")
    )
    assert (alice.verdict, bob.verdict) == ("wrong", "ok")
    assert float(alice.measured.split("%")[0]) < 10
    assert float(bob.measured.split("%")[0]) > 80
    assert "and the next bfloat16 is " in alice.measured
    assert "float32" in alice.way_out


def test_a_rate_that_breaks_the_weights_is_found(opened: Opened) -> None:
    session = opened("--learner.lr", "3e38")
    before = state(session)
    assert ("parity after an update", "alice") in wrong(examine.checkup(session, PROBLEMS))
    assert same(state(session), before)


def test_weights_are_moved_at_the_rate_after_the_warm_up(opened: Opened) -> None:
    session = opened("--learner.lr", "1e-5", "--learner.warmup", "1.9", "--learner.schedule=cosine")
    findings = examine.checkup(session, PROBLEMS)
    finding = next(f for f in findings if f.check == "weights that move")
    assert "at lr 1.0e-05" in finding.measured
    assert finding.verdict == "ok"


@pytest.mark.parametrize("env", ["corea-deferral", "eapo-consultation"])
def test_other_environments_are_healthy_too(opened: Opened, env: str) -> None:
    session = opened("--env", env, "--algo", "grpo")
    assert not wrong(examine.checkup(session, PROBLEMS[:2]))


def test_adapters_on_one_base_and_a_frozen_role(opened: Opened) -> None:
    lora = [f"--agents.{role}.{flag}" for role in ("alice", "bob") for flag in ("tuning=lora",)]
    session = opened(
        *lora, "--agents.bob.model", "tiny:alice", "--agents.bob.no-trained", "--learner.lr=0.01"
    )
    before = state(session)
    findings = examine.checkup(session, PROBLEMS)
    assert not wrong(findings)
    assert {f.role for f in findings if f.check == "parity"} == {"alice", "bob"}
    assert {f.role for f in findings if f.check == "parity after an update"} == {"alice"}
    assert same(state(session), before)


@pytest.mark.parametrize("forgets", [False, True])
def test_an_engine_that_loses_adapters_in_its_sleep(
    opened: Opened, file_engine: Any, monkeypatch: pytest.MonkeyPatch, forgets: bool
) -> None:
    async def sleep(engine: Any) -> None:
        if forgets:
            engine._adapters = dict.fromkeys(engine._adapters, engine._base)

    session = opened(
        *("--engine", "vllm", "--learner.lr", "0.01"),
        *("--agents.alice.model", "tiny:alice", "--agents.alice.tuning", "lora"),
    )
    batch = session.sample(1)
    session.update(batch, session.credit(batch))  # an adapter that is nothing would not be missed
    monkeypatch.setattr(file_engine, "sleep", sleep)
    vllm = dataclasses.replace(session.settings.vllm, sleep_level=1)
    session.settings = dataclasses.replace(session.settings, vllm=vllm)
    findings = examine.checkup(session, PROBLEMS)
    assert wrong(findings) == ({("parity after sleep", "alice")} if forgets else set())
    assert {f.role for f in findings if f.check == "parity after sleep"} == {"alice", "bob"}


def test_what_policies_do_wrong_shows_under_its_name(opened: Opened) -> None:
    session = opened("--roles", "alice", "bob", "carol")
    local = session.team.policies
    swap(
        session,
        alice=Changed(local["alice"], hot),
        bob=stale(session, "bob"),
        carol=Changed(local["carol"], optimistic),
    )
    assert wrong(examine.checkup(session, PROBLEMS)) == {
        # What was drawn at 1.5 has another probability at 1, and is less likely than chance.
        ("parity", "alice"),
        ("parity after an update", "alice"),
        ("neutral sampling", "alice"),
        ("parity after an update", "bob"),
        ("parity", "carol"),
        ("parity after an update", "carol"),
    }


def test_a_role_that_never_answers(opened: Opened) -> None:
    session = opened()
    swap(session, bob=Changed(session.team.policies["bob"], silent))
    findings = examine.checkup(session, PROBLEMS)
    assert wrong(findings) == {("answers", "bob")}
    assert "not today" in next(f.measured for f in findings if f.verdict == "wrong")
    unmeasured = {f.check for f in findings if f.role == "bob" and f.verdict == "not measured"}
    assert {"parity", "stop strings", "parity after an update"} <= unmeasured


def test_a_group_key_that_compares_nobody_and_a_filter(opened: Opened) -> None:
    session = opened(
        *("--env.k-cold", "1", "--env.k-hinted", "0", "--group-by", "problem+role"),
        *("--rollout.top-p", "0.9"),
    )
    findings = examine.checkup(session, PROBLEMS)
    assert wrong(findings) == {("groups", "all")}
    neutral = [f for f in findings if f.check == "neutral sampling"]
    assert [f.verdict for f in neutral] == ["not measured"] * 2
    assert all("biases the importance ratios" in f.measured for f in neutral)


def test_a_filter_of_one_role_is_that_roles(opened: Opened) -> None:
    session = opened("--agents.alice.top-p", "0.9")
    findings = examine.checkup(session, PROBLEMS)
    verdicts = {f.role: f.verdict for f in findings if f.check == "neutral sampling"}
    assert verdicts == {"alice": "not measured", "bob": "ok"}


@pytest.mark.parametrize(
    ("change", "verdict"), [(None, "ok"), (deaf, "wrong"), (trimming, "wrong")]
)
def test_stop_strings(opened: Opened, change: Change | None, verdict: str) -> None:
    session = opened()
    policies = {name: session.team.policies[name] for name in ("alice", "bob")}
    observed = session.ask(observe(session, PROBLEMS[:2], policies, name="x"))
    policy = policies["alice"] if change is None else Changed(policies["alice"], change)
    codec = session.team.loaded["alice"].codec
    finding = session.ask(check_stops("alice", policy, codec, observed.calls["alice"]))
    assert finding.verdict == verdict
    finding = session.ask(check_stops("alice", policy, codec, ()))
    assert finding.verdict == "not measured"


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="not run: there is no GPU")
def test_the_doctor_has_nothing_to_say_of_a_gpu(capsys: pytest.CaptureFixture[str]) -> None:
    assert train.main(["--doctor"]) == 0, capsys.readouterr().out
