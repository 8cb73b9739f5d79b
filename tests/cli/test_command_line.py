"""What the command line accepts, shows and refuses, before any model is loaded."""

import dataclasses
import json
import re
from pathlib import Path

import pytest

from coterie.algorithms import ALGORITHMS
from coterie.cli.command_line import parse
from coterie.datatypes import UserError
from coterie.training.config.role_learning import FIELDS
from coterie.training.config.train_settings import Choice, defaults, restore

ROOT = Path(__file__).resolve().parents[2]


def help_text(argv: list[str], capsys: pytest.CaptureFixture[str], *, flag: str = "--help") -> str:
    with pytest.raises(SystemExit) as left:
        parse([*argv, flag])
    assert left.value.code == 0
    return capsys.readouterr().out


def test_help_without_a_choice_shows_what_there_is(capsys: pytest.CaptureFixture[str]) -> None:
    text = help_text([], capsys)
    for name in ("core-teaching", *ALGORITHMS, "core-qwen-gsm8k", "--resume", "--evaluate"):
        assert name in text


def test_help_shows_exactly_the_settings_of_the_choice(capsys: pytest.CaptureFixture[str]) -> None:
    gspo = help_text(["--env", "core-teaching", "--algo", "gspo"], capsys, flag="--help-all")
    sapo = help_text(["--algo", "sapo", "--roles", "alice", "carol"], capsys, flag="--help-all")
    assert "--algo.surrogate.low" in gspo
    assert "--algo.surrogate.tau" not in gspo
    assert "--algo.surrogate.tau-positive" in sapo
    assert "--algo.surrogate.low" not in sapo
    assert "--env.k-cold" in gspo
    assert "--agents.bob.model" in gspo
    assert "--agents.carol.model" in sapo
    assert "--agents.bob.model" not in sapo


@pytest.mark.parametrize("flag", ["--help", "-h"])
def test_help_shows_run_environment_and_algorithm_and_names_the_rest(
    capsys: pytest.CaptureFixture[str], flag: str
) -> None:
    text = help_text(["--env", "core-teaching"], capsys, flag=flag)
    settings = defaults(Choice("core-teaching", "gspo", ("alice", "bob")))
    shown, _, rest = text.partition("More settings, with --help-all:")
    first = [
        *_leaves(settings.run),
        *_leaves(settings.env, "env."),
        *_leaves(settings.algo, "algo."),
    ]
    assert [name for name in first if f"{name} " not in shown and f"{name}," not in shown] == []
    assert not re.search(r"--(learner|problems|agents|rollout|vllm)\.", shown)
    assert re.findall(r"^  --([a-zA-Z.]+)\.\*  +[A-Z]\w+", rest, re.MULTILINE)[:4] == [
        *("agents.ROLE", "problems", "rollout", "learner")
    ]


def test_all_help_begins_with_what_matters_and_has_no_rest(
    capsys: pytest.CaptureFixture[str],
) -> None:
    text = help_text([], capsys, flag="--help-all")  # of the default choice
    assert "More settings" not in text
    flags = ["steps", "env.k-cold", "algo.scale", "agents.bob.model", "vllm.log"]
    assert sorted(flags, key=lambda name: text.index(f"--{name} ")) == flags


def _leaves(settings: object, prefix: str = "") -> list[str]:
    """The flag of every field."""
    flags = []
    for field in dataclasses.fields(settings):  # type: ignore[arg-type]
        if prefix.startswith("agents.") and field.name in FIELDS:
            continue  # a line below all flags explains them
        value, name = getattr(settings, field.name), field.name.replace("_", "-")
        if dataclasses.is_dataclass(value):
            flags += _leaves(value, f"{prefix}{name}.")
        else:
            flags.append(f"--{prefix}{name}")
    return flags


def test_every_setting_has_a_flag_with_a_help_text(capsys: pytest.CaptureFixture[str]) -> None:
    text = help_text(["--env", "core-teaching"], capsys, flag="--help-all")
    settings = defaults(Choice("core-teaching", "gspo", ("alice", "bob")))
    flags = _leaves(settings.run)
    for part in ("env", "algo", "learner", "problems", "scoring", "rollout", "eval"):
        flags += _leaves(getattr(settings, part), f"{part}.")
    flags += _leaves(settings.agents["alice"], "agents.alice.")
    lines = [line.strip("│ ").strip() for line in text.splitlines()]
    for flag in flags:
        places = [i for i, line in enumerate(lines) if line.split(" ")[0].rstrip(",") == flag]
        assert places, f"{flag} is missing from --help"
        explained = lines[places[0] + 1]
        assert explained, flag
        assert not explained.startswith(("--", "(")), f"{flag} has no help text"


def test_who_is_named_learns_and_the_others_are_frozen() -> None:
    settings = parse(["--train-role", "bob"])
    assert {role: agent.trained for role, agent in settings.agents.items()} == {
        "alice": False,
        "bob": True,
    }
    assert restore(settings.plain()) == settings


def test_an_environment_says_what_follows_from_who_learns() -> None:
    env = ["--env", "corea-deferral"]
    assert parse(env).env.learners == ("small",)
    assert parse([*env, "--train-role", "large"]).env.learners == ("large",)
    flags = [*env, "--train-role", "small", "large", "--env.learners", "small"]
    assert parse(flags).env.learners == ("small",)


@pytest.mark.parametrize(
    ("argv", "length"),
    [
        (["--algo", "dr-grpo"], 48),
        (["--algo", "dr-grpo", "--env.max-new-tokens", "100"], 100),
        (["--algo", "dr-grpo", "--env.max-new-tokens", "100", "--algo.length", "7"], 7),
        (["--preset", "core-qwen-gsm8k", "--algo", "dr-grpo"], 3072),
        (["--algo", "dr-grpo", "--algo.length=7"], 7),
        # An environment from elsewhere that sets no limit gets the run's.
        (["--env", "examples.third_party.nim_in_words:Nim", "--algo", "dr-grpo"], 256),
        (["--algo", "grpo"], 0),
    ],
)
def test_a_constant_length_is_the_environments_limit_unless_it_is_set(
    argv: list[str], length: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(ROOT)
    if "--env" in argv:
        argv = [*argv, "--agents.player.model", "x"]
    settings = parse(argv)
    assert settings.algo.length == length
    assert restore(settings.plain()) == settings


def test_a_run_says_at_once_what_it_is() -> None:
    assert parse([]).headline() == (
        "core-teaching with gspo: training alice, bob; loading torch, then tiny:alice, tiny:bob"
    )
    alone = parse(["--train-role", "bob", "--agents.alice.model", "tiny:bob"])
    assert alone.headline().endswith("training bob; loading torch, then tiny:bob")


def test_resume_takes_up_the_stored_settings(tmp_path: Path) -> None:
    settings = parse(["--algo", "cispo", "--env.k-cold", "3", "--steps", "7"])
    (tmp_path / "config.json").write_text(json.dumps(settings.plain()))
    resumed = parse(["--resume", str(tmp_path), "--steps", "9"])
    assert (resumed.choice.algo, resumed.env.k_cold, resumed.run.steps) == ("cispo", 3, 9)
    assert resumed.run.run_dir == tmp_path


@pytest.mark.parametrize(
    ("argv", "flag"),
    [
        (["--learner.lr", "1e-4"], "--learner.lr"),
        (["--agents.alice.learner.lr", "1e-4"], "--agents.alice.learner.lr"),
        (["--agents.alice.recompute=on"], "--agents.alice.recompute"),
        (["--env.no-reread_contrast"], "--env.no-reread-contrast"),
        (["--engine", "vllm"], "--engine"),
    ],
)
def test_resume_says_where_to_change_a_stored_setting(
    argv: list[str], flag: str, tmp_path: Path
) -> None:
    (tmp_path / "config.json").write_text(json.dumps(parse([]).plain()))
    with pytest.raises(UserError) as refused:
        parse(["--resume", str(tmp_path), *argv])
    assert str(refused.value) == f"--resume cannot change {flag}; edit {tmp_path / 'config.json'}"


def test_resume_knows_no_other_flags(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(json.dumps(parse([]).plain()))
    with pytest.raises(UserError, match=r"unknown option --learner\.lrr"):
        parse(["--resume", str(tmp_path), "--learner.lrr", "1e-4"])


def test_a_wrong_setting_points_to_the_help_that_lists_it() -> None:
    for flag in ("--learner.lrr", "--agents.alice.learner.lrr"):
        with pytest.raises(UserError, match=r"--help-all\)$"):
            parse([flag, "1e-4"])


def test_what_joins_an_own_algorithm_in_the_loss_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "mine_algo.py").write_text(
        "from coterie.algorithms import Algorithm\n"
        "PLAIN = Algorithm(scale='none')\n"
        "BENT = Algorithm(scale='none', entropy_coefficient=0.01)\n"
        "def centred(rewards, groups):\n    return rewards - rewards.mean()\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    line = parse(["--algo", "mine_algo:PLAIN"]).loss_line()
    assert line == (
        "The loss of mine_algo:PLAIN also has peer distillation "
        "(--algo.distillation.beta 1); 0 turns a part off"
    )
    line = parse(["--algo", "mine_algo:BENT", "--algo.kl-coefficient", "0.5"]).loss_line()
    assert "a KL penalty (--algo.kl-coefficient 0.5), an entropy bonus" in line
    assert not parse(["--algo", "mine_algo:PLAIN", "--env", "solo"]).loss_line()
    assert not parse(["--algo", "gspo"]).loss_line()
    own = parse(["--algo", "gspo", "--algo.advantage", "mine_algo:centred"]).loss_line()
    assert own.startswith("The loss of mine_algo:centred also has peer distillation")
