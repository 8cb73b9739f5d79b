"""Sampling settings of one role."""

import json
from pathlib import Path

from coterie.agents.team.settings import AgentSettings
from coterie.datatypes import Sampling
from coterie.train import main
from coterie.training.config.role_sampling import learner_temperature, role_sampling
from coterie.training.config.run_settings import EvalSettings, RolloutSettings

ROLLOUT = RolloutSettings(temperature=0.8, top_p=0.95, top_k=7)
AGENTS = {
    "alice": AgentSettings("tiny:alice", temperature=0.5),
    "bob": AgentSettings("tiny:bob", trained=False, temperature=0.0, top_p=0.9),
    "carol": AgentSettings("tiny:carol"),
}


def values(sampling: dict[str, Sampling]) -> dict[str, tuple[float, float, int]]:
    return {role: (s.temperature, s.top_p, s.top_k) for role, s in sampling.items()}


def test_a_roles_own_settings_come_before_the_rollouts() -> None:
    expected = {"alice": (0.5, 0.95, 7), "bob": (0.0, 0.9, 7), "carol": (0.8, 0.95, 7)}
    assert values(role_sampling(ROLLOUT, AGENTS)) == expected
    assert values(role_sampling(ROLLOUT, AGENTS, EvalSettings())) == expected


def test_an_evaluation_that_says_so_holds_for_every_role() -> None:
    got = values(role_sampling(ROLLOUT, AGENTS, EvalSettings(temperature=0.0)))
    assert got == {"alice": (0.0, 0.95, 7), "bob": (0.0, 0.9, 7), "carol": (0.0, 0.95, 7)}
    got = values(role_sampling(ROLLOUT, AGENTS, EvalSettings(top_p=1.0)))
    assert [top_p for _, top_p, _ in got.values()] == [1.0, 1.0, 1.0]


def test_a_learner_takes_the_temperature_of_its_role() -> None:
    assert [learner_temperature(ROLLOUT, agent) for agent in AGENTS.values()] == [0.5, 0.0, 0.8]
    settings = RolloutSettings(learner_temperature=1.0)
    assert [learner_temperature(settings, agent) for agent in AGENTS.values()] == [1.0, 1.0, 1.0]


def test_a_run_samples_and_learns_at_the_temperature_of_each_role(tmp_path: Path) -> None:
    """Under another temperature the learner would find other probabilities than the sampler's."""
    run = tmp_path / "run"
    argv = ["--steps", "1", "--eval.no-enabled", "--rollout.problems-per-step", "4"]
    argv += ["--agents.alice.temperature", "0.5", "--agents.bob.temperature", "2.0"]
    assert main([*argv, "--threads", "1", "--run-dir", str(run)]) == 0
    (line,) = map(json.loads, (run / "metrics.jsonl").read_text().splitlines())
    for role in ("alice", "bob"):
        assert line[f"learner/{role}/mismatch/max"] < 1e-3
    assert line["learner/alice/entropy"] < line["learner/bob/entropy"]
