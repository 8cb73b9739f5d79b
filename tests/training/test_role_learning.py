"""Roles with an algorithm and a learner of their own."""

import json
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.torch import load_file

from coterie.algorithms import Algorithm, assign_credit
from coterie.algorithms.role_algorithms import RoleAlgorithms, assign_credit_by_role
from coterie.cli.command_line import parse
from coterie.datatypes import Trajectory, UserError
from coterie.training.config.model_defaults import role_rates
from coterie.training.config.preflight import preflight
from coterie.training.config.role_learning import roles_line
from coterie.training.config.train_settings import restore
from coterie.training.session import open_session

from . import rows

SHORT = (
    "--steps", "1", "--rollout.problems-per-step", "8", "--eval.no-enabled", "--threads", "1",
)  # fmt: skip
Weights = dict[str, dict[str, Any]]


def trained(path: Path, train: Callable[..., Any], *flags: str) -> Weights:
    """Weights of each role after one step of the default job."""
    settings = parse([*SHORT, *flags, "--run-dir", str(path)])
    with open_session(settings, preflight(settings)) as session:
        train(session)
        session.conclude(None, None)
    return {r: load_file(path / "final" / r / "model.safetensors") for r in ("alice", "bob")}


def equal(weights: dict[str, Any], others: dict[str, Any]) -> bool:
    return all(bool((weights[name] == others[name]).all()) for name in weights)


def test_two_roles_learn_as_each_does_where_all_learn_like_it(tmp_path: Path, train: Any) -> None:
    fast = trained(tmp_path / "fast", train)
    # The baseline is credit's, the entropy bonus the learner's.
    entropy = ("algo.entropy-coefficient", "0.05")
    slow = trained(
        *(tmp_path / "slow", train, "--learner.lr", "1e-4", "--algo", "rloo"),
        *(f"--{entropy[0]}", entropy[1]),
    )
    flags = ("--agents.bob.learner.lr", "1e-4", "--agents.bob.algo", "rloo",
             f"--agents.bob.{entropy[0]}", entropy[1])  # fmt: skip
    both = trained(tmp_path / "both", train, *flags)
    assert equal(both["alice"], fast["alice"])
    assert equal(both["bob"], slow["bob"])
    assert not equal(fast["bob"], slow["bob"])
    config = json.loads((tmp_path / "both" / "config.json").read_text())
    assert config["agents"]["bob"]["learner"]["lr"] == 1e-4
    assert restore(config).algorithms.of("bob").baseline == "leave-one-out"
    rate = json.loads((tmp_path / "both" / "metrics.jsonl").read_text().splitlines()[0])
    assert (rate["learner/alice/lr"], rate["learner/bob/lr"]) == (1e-3, 1e-4)


def test_a_resumed_run_keeps_them(tmp_path: Path, train: Any) -> None:
    flags = ("--agents.bob.learner.lr", "1e-4", "--agents.alice.algo.kl-coefficient", "0.1")
    trained(tmp_path / "whole", train, *flags)
    settings = parse(["--resume", str(tmp_path / "whole"), "--steps", "2"])
    with open_session(settings, preflight(settings)) as session:
        train(session)
    last = json.loads((tmp_path / "whole" / "metrics.jsonl").read_text().splitlines()[-1])
    assert (last["step"], last["learner/bob/lr"]) == (2, 1e-4)
    assert settings.algorithms.of("alice").kl_coefficient == 0.1
    assert settings.algo.kl_coefficient == 0


def in_one_group(*rewards: float) -> list[Trajectory]:
    """Rows of two agents of alice and two of bob."""
    return [
        rows.row(name[:-2], 2, agent=name, groups={"problem": "p"}, reward=reward, reward_terms={})
        for name, reward in zip(("alice_0", "alice_1", "bob_0", "bob_1"), rewards)
    ]


def test_a_group_of_two_roles_is_compared_as_each_role_says() -> None:
    played = in_one_group(1.0, 0.0, 1.0, 0.5)
    mean = Algorithm(scale="none")
    others = Algorithm(scale="none", baseline="leave-one-out")
    credit = assign_credit_by_role(played, "problem", RoleAlgorithms(mean, {"bob": others}))
    # Mean .625; bob's rewards less the mean of the three others, .5 and 2 / 3.
    np.testing.assert_allclose(credit.advantage_B, [0.375, -0.625, 0.5, 0.5 - 2 / 3])
    assert credit.stats == assign_credit(played, "problem", mean).stats


def test_running_averages_are_of_the_roles_that_use_them() -> None:
    average = Algorithm(baseline="role-average", scale="none")
    team = RoleAlgorithms(Algorithm(scale="none"), {"bob": average})
    credit = assign_credit_by_role(in_one_group(1, 1, 1, 1), "problem", team, {"bob": 0.5})
    np.testing.assert_allclose(credit.advantage_B, [0, 0, 0.5, 0.5])
    assert credit.averages["bob"] == pytest.approx(0.95 * (0.95 * 0.5 + 0.05) + 0.05)
    assert "baseline_alice" not in credit.stats


def test_a_scale_over_the_batch_takes_off_the_averages_of_the_other_roles() -> None:
    average = Algorithm(
        baseline="role-average", scale="batch-std", baseline_decay=0.5, ddof=0, epsilon=0
    )
    team = RoleAlgorithms(Algorithm(), {"alice": average})
    # Bob's average: .5 x 0 + .5 x 2 = 1, then .5 x 1 + .5 x 2 = 1.5.
    before = assign_credit_by_role(in_one_group(0, 0, 2, 2), "problem", team).averages
    credit = assign_credit_by_role(in_one_group(1, 0, 1.5, 1.5), "problem", team, before)
    # Differences 1 0 0 0 over sqrt(1 / 4).
    np.testing.assert_allclose(credit.advantage_B[:2], [2, 0])
    # A role's own decay holds for its own average.
    slow = replace(average, baseline_decay=0.75)
    team = RoleAlgorithms(average, {"bob": slow})
    after = assign_credit_by_role(in_one_group(0, 0, 2, 2), "problem", team).averages
    # .75 x 0 + .25 x 2 = .5, then .75 x .5 + .25 x 2 = .875
    assert after == pytest.approx({"alice": 0, "bob": 0.875})


def test_files_and_flags(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    flags = ("--agents.alice.algo=dr-grpo", "--agents.alice.algo.scale", "batch-std",
             "--agents.bob.learner.schedule", "cosine")  # fmt: skip
    settings = parse(flags)
    alice = settings.algorithms.of("alice")
    assert (alice.scale, alice.reduction, alice.length) == ("batch-std", "constant-length", 48)
    assert settings.learner_of("bob").schedule == "cosine"
    assert settings.agents["alice"].learner is None
    assert roles_line(settings) == (
        "Roles that learn differently: alice (algo dr-grpo, algo.scale batch-std, "
        "algo.length 48); bob (learner.schedule cosine)"
    )
    assert not roles_line(parse([]))
    assert restore(json.loads(json.dumps(settings.plain()))) == settings
    with pytest.raises(SystemExit):
        parse([*flags, "--print-config"])
    (file := tmp_path / "run.toml").write_text(capsys.readouterr().out)
    assert parse(["--config", str(file)]) == settings
    changed = parse(["--config", str(file), "--agents.bob.learner.schedule", "linear"])
    assert changed.learner_of("bob").schedule == "linear"


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        ("learner = 3", "agents.bob.learner is 3; it must be settings by name"),
        ("algorithm = 3", "agents.bob.algorithm must be the name of an algorithm"),
        ("learner = {speed = 2}", "no setting is called agents.bob.learner.speed"),
        ("learner = {lr = 'fast'}", "agents.bob.learner.lr is 'fast'; it must be a number"),
        ("algorithm = 'ppo'", "ppo"),
    ],
)
def test_refusals_of_a_file(tmp_path: Path, line: str, sentence: str) -> None:
    (file := tmp_path / "run.toml").write_text(f"[agents.bob]\n{line}")
    with pytest.raises(UserError, match=re.escape(sentence)):
        parse(["--config", str(file)])


def test_the_line_is_in_words_of_flags() -> None:
    taught = ("beta", "1"), ("teacher", "tiny:bob"), ("no-rewards",)
    flags = [
        *(word for name, *value in taught for word in (f"{DISTILLED}.{name}", *value)),
        *("--agents.bob.learner.betas", "0.8", "0.9", "--agents.bob.algo.kl-importance"),
        *("--agents.bob.algo.kl-coefficient", "0.1"),
    ]
    assert roles_line(parse(["--algo.distillation.teacher", "tiny:alice", *flags])) == (
        "Roles that learn differently: bob (algo.kl-coefficient 0.1, algo.kl-importance, "
        "algo.distillation.teacher tiny:bob, algo.distillation.no-rewards, learner.betas 0.8 0.9)"
    )


def test_a_flag_is_the_teams_unless_the_role_differs() -> None:
    team = RoleAlgorithms(Algorithm(), {"bob": Algorithm(scale="none")})
    assert team.flag("alice", "scale") == "--algo.scale"
    assert team.flag("bob", "scale") == "--agents.bob.algo.scale"
    assert team.flag("bob", "distillation.beta") == "--algo.distillation.beta"


DISTILLED = "--agents.bob.algo.distillation"


@pytest.mark.parametrize(
    ("flags", "sentence"),
    [
        ((f"{DISTILLED}.teacher", "tiny:bob", f"{DISTILLED}.beta", "0"),
         f"{DISTILLED}.teacher does nothing without {DISTILLED}.beta, such as 1"),
        (("--algo.kl-importance",),
         "--algo.kl-importance does nothing without --algo.kl-coefficient"),
        (("--agents.bob.temperature", "0"), "--agents.bob.temperature must be above 0"),
        (("--agents.bob.learner.lr", "-1"), "--agents.bob.learner.lr is -1.0; it must be above 0"),
        (("--agents.bob.learner.speed", "2"), "--agents.bob.learner.speed"),
        (("--agents.carol.learner.lr", "2"), "--agents.carol.learner.lr"),
        (("--agents.bob.algo", "ppo"), "ppo"),
        (("--agents.bob.algo",), "--agents.bob.algo needs the name of an algorithm"),
        (("--agents.bob.algo", "dapo"), "add "
         "--agents.bob.algo.no-dynamic-sampling, or change --algo.dynamic-sampling"),
        (("--train-role", "alice", "--agents.bob.learner.lr", "2"), "bob does not learn: leave out "
         "--agents.bob.learner.lr"),
    ],
)  # fmt: skip
def test_refusals(flags: tuple[str, ...], sentence: str) -> None:
    with pytest.raises(UserError, match=re.escape(sentence)):
        parse(flags)


def test_rates_fit_each_role(tmp_path: Path) -> None:
    folder = tmp_path / "model"
    folder.mkdir()
    sizes = ("hidden_size", "intermediate_size", "num_attention_heads")
    config = {"num_hidden_layers": 0, **dict.fromkeys(sizes, 1), "vocab_size": 600_000_000}
    (folder / "config.json").write_text(json.dumps({"model_type": "llama", **config}))
    model = ("--agents.alice.model", str(folder), "--agents.bob.model", str(folder))
    assert not roles_line(parse(model))
    mixed = (*model, "--agents.bob.tuning", "full")
    settings = parse(mixed)
    assert settings.learner_of("alice").lr == 2e-4
    assert settings.learner_of("bob").lr == 5e-6
    assert "alice (learner.lr 0.0002)" in roles_line(settings)
    # What the user says holds for all.
    said = parse([*mixed, "--learner.lr", "3e-5"])
    assert {said.learner_of(role).lr for role in ("alice", "bob")} == {3e-5}
    # A tiny model beside a large one keeps its own.
    assert role_rates(parse(model[:2]))["bob"] == 1e-3


def test_a_file_is_told_the_names_that_it_uses(tmp_path: Path) -> None:
    file = tmp_path / "run.toml"
    file.write_text("[agents.bob.algo]\nkl_importance = true\n")
    with pytest.raises(UserError, match=r"^agents\.bob\.algo\.kl-importance does nothing without"):
        parse(["--config", str(file)])


TAUGHT = ("--agents.solver.algo.distillation.teacher", "tiny:alice")


@pytest.mark.parametrize(
    ("flags", "sentence"),
    [
        # In solo no trace is read again.
        ((), "leave out --agents.solver.algo.distillation.beta, name a model that reads all traces "
         "with --agents.solver.algo.distillation.teacher"),
        (("--agents.solver.algo.distillation.teacher", "tiny:bob"),
         "--agents.solver.algo.distillation.teacher tiny:bob has another vocabulary"),
        (("--agents.solver.algo.distillation.teacher", "./nowhere"),
         "--agents.solver.algo.distillation.teacher: no model folder './nowhere'"),
        ((*TAUGHT, "--agents.solver.algo.advantage", "no.module:f"),
         "--agents.solver.algo.advantage 'no.module:f'"),
        ((*TAUGHT, "--agents.solver.learner.moments", "8bit"),
         "--agents.solver.learner.moments 8bit needs"),
        ((*TAUGHT, "--agents.solver.device", "cpu", "--learner.moments", "paged-8bit"),
         "--learner.moments paged-8bit is for a GPU whose memory is full, and this model is on cpu:"
         " say 8bit"),
    ],
)  # fmt: skip
def test_refusals_before_a_model_is_loaded(
    flags: tuple[str, ...], sentence: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("coterie.algorithms.settings.find_spec", lambda name: None)
    solo = ("--env", "solo", "--agents.solver.model", "tiny:alice", "--problems.train", "chains")
    beta = ("--agents.solver.algo.distillation.beta", "1")
    with pytest.raises(UserError, match=re.escape(sentence)):
        preflight(parse([*solo, *beta, *flags]))


def test_a_team_flag_that_no_role_uses_is_no_mistake() -> None:
    """The only role has a teacher of its own."""
    solo = ("--env", "solo", "--agents.solver.model", "tiny:alice", "--problems.train", "chains")
    preflight(parse([*solo, "--algo.distillation.beta", "1", *TAUGHT]))


def test_rereading_is_of_the_roles_that_learn_from_it() -> None:
    """In core-teaching wrong traces are read again, here for bob alone."""
    off, own = ("--algo.distillation.beta", "0"), (f"{DISTILLED}.beta", "0.5")
    preflight(parse([*off, *own]))
    with pytest.raises(UserError, match=rf"^{DISTILLED}\.beta does nothing while no trace is read"):
        preflight(parse([*off, *own, "--env.reread", "none"]))
    with pytest.raises(
        UserError, match=r"--env\.reread unsolved does nothing without --algo\.dist"
    ):
        preflight(parse([*off]))


SOLO = ("--env", "solo", "--agents.solver.model", "tiny:alice", "--problems.train", "chains")
OF_SOLVER = "--agents.solver.algo.distillation"


@pytest.mark.parametrize(
    ("flags", "flag"),
    [
        ((*SOLO, "--algo.distillation.fade", "0.5"), "--algo.distillation.fade"),
        ((*SOLO, "--algo.distillation.likeliest", "8"), "--algo.distillation.likeliest"),
        ((*SOLO, "--algo.distillation.bound", "3"), "--algo.distillation.bound"),
        ((*SOLO, f"{OF_SOLVER}.fade", "0.5"), f"{OF_SOLVER}.fade"),
        ((*SOLO, "--agents.solver.algo", "rloo", f"{OF_SOLVER}.bound", "3"), f"{OF_SOLVER}.bound"),
        # The preset turns peer distillation off, and so does the flag; neither the fade.
        (("--preset", "core-gated", "--algo.distillation.fade", "0.5"), "--algo.distillation.fade"),
        (("--env.reread", "none", "--algo.distillation.beta", "0",
          "--algo.distillation.likeliest", "8"), "--algo.distillation.likeliest"),
    ],
)  # fmt: skip
def test_distillation_that_does_nothing_is_refused(flags: tuple[str, ...], flag: str) -> None:
    beta = flag.rpartition(".")[0] + ".beta"
    sentence = f"{flag} does nothing without {beta}, such as 1"
    with pytest.raises(UserError, match=f"^{re.escape(sentence)}$"):
        preflight(parse(flags))


@pytest.mark.parametrize(
    "flags",
    [
        # Peer distillation with all of its settings is the default here.
        ("--env.reread", "none", "--algo.distillation.beta", "0"),
        ("--preset", "core-gated"),
        ("--agents.bob.algo.distillation.beta", "0"),
        ("--agents.bob.algo", "rloo", "--agents.bob.algo.distillation.beta", "0"),
        # What the team says counts for the role that has a beta.
        (*SOLO, "--algo.distillation.fade", "0.5", *TAUGHT, f"{OF_SOLVER}.beta", "1"),
    ],
)
def test_defaults_and_what_a_role_uses_are_no_mistake(flags: tuple[str, ...]) -> None:
    preflight(parse(flags))


@pytest.mark.parametrize(
    ("flags", "length"),
    [
        (("--algo", "dr-grpo", "--algo.reduction", "token-mean"), 0),
        (("--algo", "grpo", "--algo.reduction=constant-length"), 44),
        (("--algo", "dr-grpo"), 44),
        (("--algo", "dr-grpo", "--algo.length", "5"), 5),
    ],
)
def test_the_length_follows_the_reduction(flags: tuple[str, ...], length: int) -> None:
    assert parse(["--env.max-new-tokens", "44", *flags]).algo.length == length


@pytest.mark.parametrize(
    ("flags", "length"),
    [
        (("--agents.bob.algo.reduction", "constant-length"), 44),
        (("--agents.bob.algo.reduction=constant-length", "--agents.bob.algo.length", "5"), 5),
        (("--algo", "dr-grpo", "--agents.bob.algo.reduction", "token-mean"), 0),
        (("--agents.bob.algo", "dr-grpo", "--agents.bob.algo.reduction", "token-mean"), 0),
        (("--algo", "dr-grpo", "--algo.length", "5",
          "--agents.bob.algo.reduction", "token-mean"), 0),
        # The team's length holds for a role with the team's reduction.
        (("--algo", "dr-grpo", "--algo.length", "5",
          "--agents.bob.algo.reduction", "constant-length"), 5),
    ],
)  # fmt: skip
def test_the_length_of_a_role_follows_its_reduction(flags: tuple[str, ...], length: int) -> None:
    settings = parse(["--env.max-new-tokens", "44", *flags])
    assert settings.algorithms.of("bob").length == length


def test_a_stored_run_without_a_length_takes_the_limit() -> None:
    plain = parse(["--env.max-new-tokens", "44"]).plain()
    plain["algo"]["reduction"] = "constant-length"
    assert restore(plain).algo.length == 44


def test_the_length_follows_the_reduction_of_a_file(tmp_path: Path) -> None:
    (file := tmp_path / "run.toml").write_text(
        "algo.reduction = 'constant-length'\nagents.bob.algo.reduction = 'token-mean'"
    )
    settings = parse(["--config", str(file), "--env.max-new-tokens", "44"])
    assert (settings.algo.length, settings.algorithms.of("bob").length) == (44, 0)
    changed = ("--agents.bob.algo.reduction", "constant-length")
    settings = parse(["--config", str(file), "--env.max-new-tokens", "44", *changed])
    assert settings.algorithms.of("bob").length == 44
