"""Settings that are not set follow from the models: tiny ones keep what the environments say."""

import json
import tomllib
from pathlib import Path
from typing import Any

import pytest

from coterie import envs
from coterie.agents.team.settings import AgentSettings
from coterie.cli.command_line import parse
from coterie.envs import registry
from coterie.envs.presets import published
from coterie.problems.hub import HUB_SETS
from coterie.training.config.model_defaults import (
    EVERYWHERE,
    SMALL,
    SMALL_BELOW,
    defaults_notice,
    held_out,
    rate_of,
)
from coterie.training.config.serialize import flat
from coterie.training.config.train_settings import Choice, TrainSettings, defaults, restore

SHIPPED = ("core-teaching", "corea-deferral", "eapo-consultation", "sd-e2", "solo")


@pytest.fixture
def real(tmp_path: Path) -> str:
    """A model with 135 million weights."""
    return model_of(tmp_path / "real", 135_000_000)


def model_of(folder: Path, weights: int) -> str:
    """A model without layers, by its configuration."""
    folder.mkdir()
    sizes = ("hidden_size", "intermediate_size", "num_attention_heads")
    config = {"num_hidden_layers": 0, **dict.fromkeys(sizes, 1), "vocab_size": weights}
    (folder / "config.json").write_text(json.dumps({"model_type": "llama", **config}))
    return str(folder)


def run_of(env: str, model: str, *flags: str) -> TrainSettings:
    models = [word for r in envs.spec(env).roles for word in (f"--agents.{r}.model", model)]
    return parse(["--env", env, *models, *flags])


def at(settings: TrainSettings, name: str) -> Any:
    return flat(settings.plain()).get(name)


@pytest.mark.parametrize("env", SHIPPED)
def test_tiny_teams_keep_what_their_environment_says(env: str, tmp_path: Path) -> None:
    usual = defaults(Choice(env, "gspo", envs.spec(env).roles))
    assert parse(["--env", env]) == usual
    # An export of such a model, or another one of its size, is tiny too.
    exported = model_of(tmp_path / "export", 150_000)
    tiny = run_of(env, exported)
    assert (tiny.env, tiny.learner, tiny.problems, tiny.run) == (
        usual.env,
        usual.learner,
        usual.problems,
        usual.run,
    )
    assert defaults_notice(tiny) == ""


@pytest.mark.parametrize("weights", [135_000_000, 1_500_000_000])
@pytest.mark.parametrize("env", SHIPPED)
def test_others_get_what_the_tables_say(env: str, weights: int, tmp_path: Path) -> None:
    run = run_of(env, model_of(tmp_path / "real", weights))
    small = {**SMALL, **flat(envs.spec(env).small or {})} if weights < SMALL_BELOW else {}
    table = {**EVERYWHERE, **flat(envs.spec(env).larger or {}), **small}
    table.pop("problems.held_out", None)  # follows from the run's length
    for name, value in table.items():
        assert at(run, name) == (list(value) if isinstance(value, tuple) else value), name
    assert run.learner.lr == (2e-4 if small else 1e-4)
    assert run.problems.train in HUB_SETS
    assert at(run, "env.max_new_tokens") >= 256
    assert at(run, "env.prompt_style") in ("answer", None)  # corea-deferral asks in any case
    group = {"core-teaching": "k_cold", "eapo-consultation": "group_size"}.get(env, "traces")
    size = at(run, f"env.{group}") or envs.make(env).metadata["replicas"]
    assert 4 <= size <= 8


def test_a_frozen_model_of_any_size_leaves_the_defaults_of_a_small_learner(tmp_path: Path) -> None:
    small, large = (
        model_of(tmp_path / name, weights)
        for name, weights in (("small", 500_000_000), ("large", 1_500_000_000))
    )
    flags = ["--env", "corea-deferral", "--agents.small.model", small, "--agents.large.model"]
    assert parse([*flags, large]).run.steps == SMALL["run.steps"]
    flags = ["--agents.alice.model", small, "--agents.bob.model"]
    assert parse([*flags, large]).run.steps == EVERYWHERE["run.steps"]


@pytest.mark.parametrize("role", ["bob", "player_1"])
def test_one_larger_model_is_enough(role: str, real: str) -> None:
    run = parse(["--roles", "alice", role, f"--agents.{role}.model", real])
    assert run.agents["alice"].model == "tiny:alice"
    assert run.env.prompt_style == "answer"
    frozen = parse(
        ["--roles", "alice", role, f"--agents.{role}.model", real, "--train-role", "alice"]
    )
    assert frozen.env.prompt_style == "answer"


def test_the_penalty_on_length_follows_the_limit(real: str, tmp_path: Path) -> None:
    def penalty(*flags: str) -> tuple[int, int, float]:
        algo = run_of("solo", real, *flags).algo
        return algo.overlong_limit, algo.overlong_buffer, algo.overlong_factor

    assert penalty() == (256, 64, 0.5)
    assert penalty("--env.max-new-tokens", "400") == (400, 100, 0.5)
    assert penalty("--env.max-new-tokens", "3") == (3, 1, 0.5)
    longer = run_of("solo", real, "--env.max-new-tokens", "400")
    assert "--algo.overlong-limit 400 --algo.overlong-buffer 100" in defaults_notice(longer)
    assert penalty("--env.max-new-tokens", "400", "--algo.overlong-limit", "300")[0] == 300
    assert penalty("--env.max-new-tokens", "400", "--algo.overlong_limit", "300")[0] == 300
    off = ("--algo.overlong-limit", "0", "--algo.overlong-buffer", "0")
    assert penalty(*off)[:2] == (0, 0)
    file = tmp_path / "run.toml"
    file.write_text(
        "[env]\nmax_new_tokens = 400\n[algo]\noverlong_limit = 99\noverlong_buffer = 20\n"
    )
    assert penalty("--config", str(file))[:2] == (99, 20)
    assert "overlong-limit" not in defaults_notice(run_of("solo", real, "--config", str(file)))
    large = run_of("solo", model_of(tmp_path / "large", 2_000_000_000))
    assert large.algo.overlong_limit == 0


def test_what_is_named_wins(real: str, tmp_path: Path) -> None:
    named = ["--env.k-cold", "3", "--learner.lr", "3e-3", "--problems.train", "chains"]
    more = ["--env.prompt-style", "plain", "--steps", "7", "--problems.held-out", "5"]
    run = run_of("core-teaching", real, *named, *more)
    assert (run.env.k_cold, run.learner.lr, run.problems.train) == (3, 3e-3, "chains")
    assert (run.env.prompt_style, run.run.steps, run.problems.held_out) == ("plain", 7, 5)
    file = tmp_path / "run.toml"
    file.write_text(f'[agents.bob]\nmodel = "{real}"\n[env]\nmax_new_tokens = 99\n')
    run = parse(["--config", str(file)])
    assert (run.env.max_new_tokens, run.env.prompt_style) == (99, "answer")
    # A preset that is no paper's names some, and the model decides the rest.
    run = run_of("core-teaching", real, "--preset", "core-gated")
    assert (run.env.k_cold, run.env.max_new_tokens, run.problems.train) == (2, 256, "chains")


@pytest.mark.parametrize("name", published())
def test_a_papers_preset_is_the_papers(name: str) -> None:
    run = parse(["--preset", name])
    style = published()[name].settings.get("env.prompt_style")
    assert at(run, "env.prompt_style") == (style.value if style else None)
    count, usual = (
        published()[name].settings.get("problems.held_out"),
        envs.spec(run.choice.env).defaults,
    )
    expected = count.value if count else usual["problems"].get("held_out") if usual else None
    assert run.problems.held_out == expected
    assert defaults_notice(run) == ""
    assert run.learner.lr == published()[name].settings["learner.lr"].value


@pytest.mark.parametrize(
    ("weights", "tuning", "rate"),
    [
        (135e6, "auto", 2e-4),
        (135e6, "full", 1e-5),
        (6.3e8, "lora", 2e-4),
        (6.3e8, "full", 5e-6),
        (1.5e9, "lora", 1e-4),
        (1.5e9, "full", 5e-6),
        (8e9, "auto", 5e-5),
        (8e9, "full", 2e-6),
        (7e10, "full", 1e-6),
    ],
)
def test_learning_rates(weights: float, tuning: Any, rate: float, tmp_path: Path) -> None:
    large = AgentSettings(model_of(tmp_path / "l", int(weights)), tuning=tuning)
    small = AgentSettings(model_of(tmp_path / "s", 10_000_000))
    assert rate_of([small, large]) == rate


def test_the_rate_is_for_who_learns(tmp_path: Path, real: str) -> None:
    large = model_of(tmp_path / "l", 8_000_000_000)
    flags = ["--agents.alice.model", real, "--agents.bob.model", large]
    assert parse(flags).learner.lr == 5e-5
    assert parse([*flags, "--train-role", "alice"]).learner.lr == 2e-4
    assert parse([*flags, "--agents.bob.no-trained"]).learner.lr == 2e-4
    full = parse([*flags, "--agents.bob.no-trained", "--agents.alice.tuning=full"])
    assert (full.learner.lr, full.run.checkpoint_every) == (1e-5, 10)
    # A model of which nothing is known is taken for one of seven billion.
    assert parse(["--agents.alice.model", "nobody/knows"]).learner.lr == 5e-5


def test_evaluations_take_a_tenth_of_the_run(real: str) -> None:
    # 200 steps of 64 answers, each worth two that are only sampled, are 25,600; a tenth of them is
    # 2,560 for two evaluations, which ask 16 times about each problem.
    assert held_out(200, 64, 2, 16) == 80
    assert held_out(200, 64, 6, 16) == 26
    assert held_out(1, 64, 2, 16) == 8  # fewer say nothing
    assert held_out(10**6, 64, 2, 16) == 512
    long = ("--steps", "200", "--rollout.problems-per-step", "8")
    run = run_of("core-teaching", real, *long)
    # 8 problems, 4 traces of 2 roles; evaluated and probed.
    assert run.problems.held_out == 80
    assert run_of("core-teaching", real, "--steps", "200").problems.held_out == 40
    assert (
        run_of("core-teaching", real, *long, "--eval.every", "50").problems.held_out == 32
    )  # 2 + 3
    wide = run_of("core-teaching", real, "--steps", "200", "--rollout.problems-per-step", "16")
    assert wide.problems.held_out == 160
    # 8 conversations of the policy; 4 alone and 4 assisted.
    assert run_of("eapo-consultation", real, *long).problems.held_out == 160
    # 8 traces of the small role; 2 of each role.
    assert run_of("corea-deferral", real, *long).problems.held_out == 320
    # 6 traces; 2.
    assert run_of("sd-e2", real, *long).problems.held_out == 480


def test_a_line_says_what_was_chosen_and_the_file_shows_it(
    real: str, capsys: pytest.CaptureFixture[str]
) -> None:
    run = run_of("core-teaching", real, "--env.k-cold", "3")
    line = defaults_notice(run)
    assert "\n" not in line
    assert "135 million weights" in line
    for flag in ("--learner.lr 0.0002", "--problems.train gsm8k", "--problems.held-out 8"):
        assert flag in line
    assert "--env.k-cold" not in line
    with pytest.raises(SystemExit):
        run_of("core-teaching", real, "--env.k-cold", "3", "--print-config")
    printed = capsys.readouterr().out
    assert printed.startswith(f"# {line}\n[choice]")
    assert 'prompt_style = "answer"' in printed


def test_the_line_says_nothing_of_what_was_named_and_stays_a_line(
    real: str, capsys: pytest.CaptureFixture[str]
) -> None:
    named = ["--learner.lr=2e-4", "--problems.held-out", "160"]
    words = ["--env", "solo", "--agents.solver.model", real, *named]
    line = defaults_notice(parse(words), words)
    assert "--learner.lr" not in line
    assert "--problems.held-out" not in line
    assert "--problems.train gsm8k" in line
    assert "\n" not in line  # the prompt has two of them
    with pytest.raises(SystemExit):
        parse([*words, "--print-config"])
    shown = capsys.readouterr().out
    assert tomllib.loads(shown)["env"]["max_new_tokens"] == 256
    assert "--learner.lr" not in shown.splitlines()[0]


def test_a_stored_run_keeps_what_it_had(real: str) -> None:
    stored = json.loads(
        json.dumps(defaults(Choice("core-teaching", "gspo", ("alice", "bob"))).plain())
    )
    stored["agents"]["alice"]["model"] = real
    run = restore(stored)
    assert (run.env.prompt_style, run.learner.lr, run.problems.held_out) == ("plain", 1e-3, None)


def test_an_environment_of_others_keeps_what_it_names(
    real: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    spec = envs.EnvSpec(
        name="of-others",
        version=0,
        factory="coterie.envs.solo:SoloEnv",
        roles=("solver",),
        defaults={"learner": {"lr": 3e-6}, "problems": {"train": "recall"}},
    )
    monkeypatch.setitem(registry._SPECS, "of-others", spec)
    run = run_of("of-others", real)
    assert (run.learner.lr, run.problems.train, run.run.steps) == (3e-6, "recall", 40)


def test_an_evaluation_behind_a_warm_up_takes_its_part(real: str) -> None:
    # 40 steps of 4 problems with 8 answers; .1 * 2 * 40 * 32 = 256 answers in 2 or 3 evaluations.
    assert run_of("solo", real, "--steps", "40").problems.held_out == 128
    assert run_of("solo", real, "--steps", "40", "--warmup.steps", "5").problems.held_out == 85
