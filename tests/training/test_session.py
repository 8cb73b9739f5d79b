"""Algorithms in environments: two updates, real gradients, frozen weights left alone."""

import asyncio
import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from coterie import envs, train
from coterie.algorithms import ALGORITHMS
from coterie.datatypes import UserError
from coterie.training.session import Session

Opened = Callable[..., Session]
Train = Callable[[Session], list[dict[str, float]]]


# Groups within a question, with teaching, and of replicas; the others hand on the same rows.
WHOLE = ("core-teaching", "eapo-consultation")
PAIRS = [
    (env, algo)
    for env in envs.names()
    if ":" not in env
    for algo in (ALGORITHMS if env in WHOLE else ("gspo", "dapo"))
]


@pytest.mark.parametrize(("env", "algo"), PAIRS)
def test_two_updates_of_every_pair_reach_every_role(
    opened: Opened, train: Train, env: str, algo: str
) -> None:
    session = opened("--env", env, "--algo", algo)
    start = {
        role: {name: p.detach().clone() for name, p in trained.loaded.handle.parameters().items()}
        for role, trained in session.team.trained.items()
    }
    steps = train(session)
    assert len(steps) == 2
    for role, trained in session.team.trained.items():
        assert all(step[f"learner/{role}/grad_norm"] > 0 for step in steps)
        now = trained.loaded.handle.parameters()
        assert any(not torch.equal(now[name], value) for name, value in start[role].items())


@pytest.mark.parametrize(
    "flags", ["corea-deferral --env.prefill-confidence --env.stop", "eapo-consultation"]
)
def test_second_turns_go_on_where_the_answers_ended(
    opened: Opened, train: Train, resumed: list[int], flags: str
) -> None:
    steps = train(opened("--env", *flags.split(), "--algo", "grpo"))
    assert sum(resumed) > 0
    # What the learner computes of a row is what was sampled, up to rounding.
    for step in steps:
        (mismatch,) = (value for name, value in step.items() if name.endswith("/mismatch/max"))
        assert mismatch < 1e-3


def test_what_fails_on_the_way_closes_what_was_open(
    opened: Opened, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    kept: list[asyncio.Runner] = []

    class Kept(asyncio.Runner):
        def __init__(self) -> None:
            super().__init__()
            kept.append(self)

    def refuse(*_: object) -> int:
        raise UserError("they are all too long")

    monkeypatch.setattr(asyncio, "Runner", Kept)
    monkeypatch.setattr("coterie.training.runtime.drop_long_prompts", refuse)
    with pytest.raises(UserError, match="too long"):
        opened()
    with pytest.raises(RuntimeError, match="Runner is closed"):
        kept[0].get_loop()
    assert not (tmp_path / "run0").exists()


def test_a_frozen_role_answers_and_stays_as_it_is(opened: Opened, train: Train) -> None:
    session = opened("--agents.bob.no-trained")
    assert set(session.team.trained) == {"alice"}
    bob = session.team.loaded["bob"].handle.module
    before = {name: value.clone() for name, value in bob.state_dict().items()}
    steps = train(session)
    assert all(torch.equal(before[name], value) for name, value in bob.state_dict().items())
    assert "reward/bob" in steps[0]
    assert "learner/bob/loss" not in steps[0]


def test_two_adapters_learn_on_one_base_that_stays_as_it_is(opened: Opened, train: Train) -> None:
    session = opened(
        *("--agents.alice.model", "tiny:alice", "--agents.alice.tuning", "lora"),
        *("--agents.bob.model", "tiny:alice", "--agents.bob.tuning", "lora"),
        *("--learner.lr", "0.002"),
    )
    alice, bob = (session.team.loaded[role].handle for role in ("alice", "bob"))
    assert alice.module is bob.module
    base = {n: p.detach().clone() for n, p in alice.module.named_parameters() if "lora" not in n}
    steps = train(session)
    assert all(steps[1][f"learner/{role}/grad_norm"] > 0 for role in ("alice", "bob"))
    now = dict(alice.module.named_parameters())
    assert all(torch.equal(now[name], value) for name, value in base.items())
    saved = session.run.path / "checkpoints" / "step-000002" / "alice"
    assert (saved / "adapter_model.safetensors").is_file()


def test_three_roles_train_too(opened: Opened, train: Train) -> None:
    steps = train(opened("--preset", "core-gated", "--roles", "alice", "bob", "carol"))
    assert all(steps[1][f"learner/{role}/grad_norm"] > 0 for role in ("alice", "bob", "carol"))
    assert steps[0]["credit/group_size"] == 9


@pytest.mark.parametrize(
    "flags",
    [
        ("--preset", "core-gated", "--env.k-hinted", "0"),
        ("--env.k-cold", "3", "--env.k-hinted", "2", "--group-by", "problem+role"),
        ("--learner.epochs", "2", "--learner.minibatches", "2", "--algo.kl-coefficient", "0.01"),
        ("--rollout.temperature", "0.8", "--rollout.top-p", "0.9", "--rollout.top-k", "20"),
        ("--problems.train", "reasoning-gym:chain_sum", "--env.max-new-tokens", "16"),
    ],
)
def test_options_train(opened: Opened, train: Train, flags: tuple[str, ...]) -> None:
    assert len(train(opened(*flags))) == 2


def test_training_tells_the_environment_the_epoch(opened: Opened, train: Train) -> None:
    """CoRe's cross-model term has no weight in the first epoch: eight problems, then another."""
    flags = ("--preset", "core-tiny", "--env.delta-cm", "0", "--problems.epoch-size", "8")
    first, second = train(opened(*flags))
    for role in ("alice", "bob"):
        assert first[f"paid/{role}/cross_model"] == 0
        assert second[f"paid/{role}/cross_model"] > 0
        assert second[f"reward/{role}/cross_model"] > 0


def test_dynamic_sampling_goes_on_until_enough_problems_are_informative(
    opened: Opened, train: Train
) -> None:
    # Of additions alone alice gets all and bob few: most groups of one role are all alike.
    flags = ("--group-by", "problem+role", "--problems.train", "chains?mix=1,0,0")
    # By rewards alone: what is read again after a hint is informative, too.
    flags += ("--env.reread", "none", "--algo.distillation.beta", "0")
    session = opened("--algo", "dapo", *flags)
    steps = train(session)
    assert all(step["credit/zero_variance"] == 0 for step in steps)
    assert all(step["credit/groups"] >= 8 for step in steps)
    assert max(step["rollout/rounds"] for step in steps) >= 2


def test_a_divergence_in_the_reward_is_that_of_the_step_before(
    opened: Opened, train: Train
) -> None:
    flags = ("--algo", "rloo", "--learner.lr", "0.003", "--algo.kl-in-reward")
    first, second = train(opened(*flags, "0.1"))
    assert first["credit/divergence"] == pytest.approx(0.0, abs=1e-5)
    assert abs(second["credit/divergence"]) > 1e-3
    without = train(opened(*flags, "0"))
    assert "credit/divergence" not in without[0]
    # Nothing has diverged in the first step; in the second it costs something.
    assert without[0]["learner/alice/loss"] == pytest.approx(first["learner/alice/loss"], abs=1e-6)
    assert without[1]["learner/alice/loss"] != second["learner/alice/loss"]
    assert without[1]["credit/reward"] != pytest.approx(second["credit/reward"], abs=1e-6)


def test_an_episode_record_holds_every_sampled_token_as_the_learner_sees_it(
    opened: Opened, train: Train
) -> None:
    session = opened()
    steps = train(session)
    for step in steps:
        assert max(step[f"learner/{role}/mismatch/max"] for role in ("alice", "bob")) < 1e-4
    lines = (session.run.path / "episodes.jsonl").read_text().splitlines()
    assert len(lines) == 16
    rows = [row for line in lines for row in json.loads(line)["trajectories"]]
    sampled = sum(end - start for row in rows for start, end in row["turns"])
    assert sampled == sum(step["rollout/tokens"] for step in steps)
    for episode in map(json.loads, lines):
        assert re.fullmatch(r"-?[0-9]+", episode["gold"])
        assert episode["kind"] == "number"
    for row in rows:
        (start, end), (logprobs,) = row["turns"][0], row["logprobs"]
        assert len(logprobs) == end - start
        assert all(value <= 0 for value in logprobs)
        assert len(row["texts"]) == 2
        assert row["texts"][0].startswith("Question: ")
        assert row["advantage"] is not None


ELSEWHERE = '''
from gymnasium import spaces
from pettingzoo import ParallelEnv


class Digits(ParallelEnv):
    """Plain PettingZoo, one turn: every digit in the answer pays."""

    metadata = {"name": "digits_v0", "render_modes": []}

    def __init__(self):
        self.possible_agents = ["poet_0", "poet_1"]
        self.agents = []
        self._text = {agent: spaces.Text(1000) for agent in self.possible_agents}

    def observation_space(self, agent):
        return self._text[agent]

    def action_space(self, agent):
        return self._text[agent]

    def reset(self, seed=None, options=None):
        self.agents = list(self.possible_agents)
        return dict.fromkeys(self.agents, "1 + 1 ="), {agent: {} for agent in self.agents}

    def step(self, actions):
        agents, self.agents = self.agents, []
        paid = {agent: float(sum(c.isdigit() for c in actions[agent])) for agent in agents}
        done, going = dict.fromkeys(agents, True), dict.fromkeys(agents, False)
        return dict.fromkeys(agents, "-"), paid, done, going, {agent: {} for agent in agents}
'''


def test_an_environment_from_elsewhere_trains_as_it_is(
    opened: Opened, train: Train, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "elsewhere.py").write_text(ELSEWHERE)
    monkeypatch.syspath_prepend(tmp_path)
    session = opened("--env", "elsewhere:Digits", "--agents.poet.model", "tiny:alice")
    steps = train(session)
    # Eight replicas of each of eight seeds, two poets each.
    assert steps[0]["credit/group_size"] == 16
    assert steps[0]["credit/groups"] == 8
    assert all(step["learner/poet/grad_norm"] > 0 for step in steps)


def test_a_role_that_never_answers_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    flags = ["--steps", "2", "--rollout.problems-per-step", "2", "--problems.held-out", "4"]
    cut = ["--agents.alice.context", "10", "--run-dir", str(tmp_path / "run")]
    assert train.main([*flags, *cut]) == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert shown.count("alice has nothing to learn from: failed: ") == 1
    # Two cold answers and a probe's ones to each of four problems; alice's are lost, both times.
    assert shown.count("answers failed and are excluded") == 2


def test_a_run_says_what_it_read_where_that_is_not_obvious(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = [
        {"passage": f"Let n be {n}.", "question": "n + 1 =", "A": n, "B": n + 1, "answer": "B"}
        for n in range(2, 7)
    ]
    path = tmp_path / "own.jsonl"
    path.write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    flags = ["--problems.train", str(path), "--problems.held-out", "2", "--steps", "1"]
    flags += ["--rollout.problems-per-step", "2"]
    for last in (["--run-dir", str(tmp_path / "run")], ["--doctor"]):
        assert train.main([*flags, *last]) == 0
        shown = " ".join(capsys.readouterr().out.split())
        said = f"{path}: options from columns A to B; the question includes passage."
        assert shown.count(said) == 1
    assert "A. " in (tmp_path / "run" / "episodes.jsonl").read_text(encoding="utf-8")
