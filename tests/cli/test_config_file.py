"""``--config``: what is printed is read back, what people write in YAML, and what must not pass."""

import dataclasses
from pathlib import Path
from typing import Any

import pytest

from coterie import envs, train
from coterie.cli.command_line import parse
from coterie.cli.config_file import read_yaml
from coterie.envs.presets import published

ROLES = ("--roles", "ann", "ben", "--train-role", "ben")
PRESETS: dict[str, list[str]] = {}
for name, paper in published().items():
    PRESETS.setdefault(paper.env, []).append(name)
RECIPES = [
    *(["--env", name] for name in envs.names()),
    *(["--algo", name] for name in ("sapo", "cispo", "reinforce++")),
    *(["--preset", name] for names in PRESETS.values() for name in names[:2]),
    # A list of words, None by its own name, a float for which TOML has a word, a path.
    ["--env.teacher", "prefer-peer", "--problems.eval", "None", "--algo.surrogate.dual", "3"],
    ["--learner.importance-cap", "inf", "--run-dir", "runs/x", "--problems.train", 'a"\\é.jsonl'],
    ["--algo", "dr-grpo", "--env.max-new-tokens", "99"],
    ["--algo", "dr-grpo", "--algo.length", "99"],
    [*ROLES, "--agents.ann.model", "tiny:bob", "--agents.ben.model", "o/m"],
    ["--preset", "core-qwen-math", "--learner.warmup", "0.5"],
]


def printed(argv: list[str], capsys: pytest.CaptureFixture[str]) -> str:
    with pytest.raises(SystemExit) as left:
        parse([*argv, "--print-config"])
    assert left.value.code == 0
    return capsys.readouterr().out


@pytest.mark.parametrize("argv", RECIPES, ids=" ".join)
def test_what_is_printed_is_read_back(
    argv: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "run.toml"
    file.write_text(printed(argv, capsys), encoding="utf-8")
    settings = parse(argv)
    # Where a run is written is this one's alone.
    without = dataclasses.replace(settings, run=dataclasses.replace(settings.run, run_dir=None))
    assert parse(["--config", str(file)]) == without


def config(tmp_path: Path, text: str, name: str = "run.toml") -> list[str]:
    (tmp_path / name).write_text(text, encoding="utf-8")
    return ["--config", str(tmp_path / name)]


def test_flags_win_over_the_file_and_the_file_over_the_preset(tmp_path: Path) -> None:
    text = '[choice]\npreset = "core-qwen-math"\n[learner]\nlr = 0.5\n[run]\nrun-dir = "there"\n'
    argv = config(tmp_path, text + '[agents.bob]\nmodel = "tiny:bob"\ntrained = false\n')
    paper, read = parse(["--preset", "core-qwen-math"]), parse(argv)
    assert (read.learner.lr, paper.learner.lr) == (0.5, 1e-5)
    assert read.env == paper.env
    assert read.agents["alice"] == paper.agents["alice"]
    assert (read.agents["bob"].model, read.agents["bob"].trained) == ("tiny:bob", False)
    assert read.run.run_dir == Path("there")
    settings = parse(
        [*argv, "--learner.lr", "0.25", "--algo", "grpo", "--preset", "core-qwen-gsm8k"]
    )
    assert (settings.learner.lr, settings.choice.algo) == (0.25, "grpo")
    assert settings.choice.preset == "core-qwen-gsm8k"


RUN = """\
# Comments and sections without a line are fine.
choice:
  env: core-teaching
  roles: [alice, bob]
  train-role:
    - alice
learner:
  lr: 5e-4
agents:
  bob:
    model: tiny:carol
    revision: null
rollout:
run: {steps: 7, seed: 10, "run-dir": runs/no}
"""


@pytest.mark.parametrize("name", ["run.yaml", "run.yml", "RUN.YAML"])
def test_a_file_says_what_flags_would(tmp_path: Path, name: str) -> None:
    flags = ["--train-role", "alice", "--learner.lr", "5e-4", "--agents.bob.model", "tiny:carol"]
    more = ["--steps", "7", "--seed", "10", "--run-dir", "runs/no"]
    settings = parse(config(tmp_path, RUN, name))
    assert settings == parse(["--roles", "alice", "bob", *flags, *more])
    assert parse([*config(tmp_path, RUN, name), "--steps", "8"]).run.steps == 8


def test_an_empty_file_says_nothing(tmp_path: Path) -> None:
    for text in ("# later\n", "\ufeffrun:\n"):
        assert parse(config(tmp_path, text, "run.yaml")) == parse([])


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("5e-4", 5e-4),
        ("1E3", 1e3),
        ("-1.5e3", -1.5e3),
        ("2", 2),
        ("'1e3'", "1e3"),
        ("1e3a", "1e3a"),
        (".5", 0.5),
        ("-.inf", float("-inf")),
    ],
)
def test_numbers_need_no_point_and_no_sign_of_the_exponent(text: str, value: object) -> None:
    assert read_yaml(text) == value
    assert type(read_yaml(text)) is type(value)


TOML_MISTAKES = [
    ("[lerner]\nlr = 1.0", "unknown section lerner; did you mean 'learner'?"),
    ("[env]\nk_colt = 1", "no setting is called env.k_colt; did you mean 'k_cold'?"),
    ("[choice]\nenvironment = 'x'", "no setting is called choice.environment; known: "),
    ("[agents.bob]\nalgo = 'grpo'", "algo is 'grpo'; a name belongs in agents.bob.algorithm"),
    ("[choice]\nalgo = false", "choice.algo is False; it must be text"),
    ("[choice]\nresume = 'runs/x'", "choice.resume is not allowed in a file"),
    ("[agents.alicia]\nmodel = 'x'", "no role is called alicia; did you mean 'alice'?"),
    ("[agents]\nalice = 'x'", "agents.alice is 'x'; it must be settings by name"),
    ("run = 3", "run is 3; it must be settings by name"),
    ("[run]\nsteps = '3'", "run.steps is '3'; it must be a whole number"),
    ("[run]\nsteps = 0", "run.steps is 0; it must be at least 1"),
    ("[run\nsteps = 3", "is not valid TOML: "),
    ("run:\n  steps: 3\n", "is not valid TOML: "),
]
YAML_MISTAKES = [
        ("run: {steps: 3\n", "is not valid YAML: expected ',' or '}'"),
        ("run:\n\tsteps: 3\n", "found character '\\t' that cannot start any token, line 2"),
        ("run: {steps: 3, steps: 4}", "is not valid YAML: steps is given twice, line 1"),
        ("run: {run-dir: a, run_dir: b}", "run_dir is given twice"),
        ("run: *nowhere", "is not valid YAML: found undefined alias 'nowhere', line 1"),
        ("--- {}\n--- {}", "is not valid YAML: but found another document, line 2"),
        ("- run\n- steps", "the file is ['run', 'steps']; it must be settings by name"),
        ("run: {steps: !!python/name:os.getpid }", "is not valid YAML: could not determine a"),
        ("agents: {bob: {model: no}}", "agents.bob.model is False; it must be text"),
        ("choice: {roles: alice}", "choice.roles is 'alice'; it must be a list"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        *(("run.toml", *mistake) for mistake in TOML_MISTAKES),
        *(("run.yaml", *mistake) for mistake in YAML_MISTAKES),
    ],
)
def test_a_mistake_is_told_by_file_and_name(
    name: str, text: str, said: str, tmp_path: Path, refused: Any
) -> None:
    sentence = refused(train.main, *config(tmp_path, text, name))
    assert sentence.startswith(f"train.py: --config {tmp_path / name}: ")
    assert said in sentence
    # YAML is often what was meant.
    is_no_toml = "is not valid TOML: " in sentence
    assert sentence.endswith("(YAML is read from files called .yaml)") == is_no_toml


@pytest.mark.parametrize("flag", ["--resume", "--evaluate"])
def test_a_stored_run_takes_no_file(flag: str, tmp_path: Path, refused: Any) -> None:
    words = (*config(tmp_path, ""), flag, tmp_path)
    assert "leave out --config" in refused(train.main, *words)
    missing = refused(train.main, "--config", tmp_path / "none.toml")
    assert "none.toml: cannot be read (No such file" in missing
