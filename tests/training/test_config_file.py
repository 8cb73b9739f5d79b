"""Settings as a file: what is printed is read back, and mistakes are told by file and name."""

import dataclasses
from pathlib import Path

import pytest

from coterie import envs, train
from coterie.envs.presets import published
from coterie.training.command_line import parse

ROLES = ("--roles", "ann", "ben", "--train-role", "ben")
RECIPES = [
    *(["--env", name] for name in envs.names()),
    *(["--algo", name] for name in ("sapo", "cispo", "reinforce++")),
    *(pytest.param(["--preset", name], marks=pytest.mark.slow) for name in published()),
    # A list of words, None by its own name, a float for which TOML has a word, a path.
    ["--env.teacher", "prefer-peer", "--problems.eval", "None", "--algo.surrogate.dual", "3"],
    ["--learner.importance-cap", "inf", "--run-dir", "runs/x", "--problems.train", 'a"\\é.jsonl'],
    ["--algo", "dr-grpo", "--env.max-new-tokens", "99"],
    ["--algo", "dr-grpo", "--algo.length", "99"],
    [
        "--roles",
        "ann",
        "ben",
        "--train-role",
        "ben",
        "--agents.ann.model",
        "tiny:bob",
        "--agents.ben.model",
        "o/m",
    ],
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


def config(tmp_path: Path, text: str) -> list[str]:
    file = tmp_path / "run.toml"
    file.write_text(text)
    return ["--config", str(file)]


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


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[lerner]\nlr = 1.0", "no part is called lerner; near it: learner"),
        ("[env]\nk_colt = 1", "no setting is called env.k_colt; near it: k_cold"),
        ("[choice]\nenvironment = 'x'", "no setting is called choice.environment; known here: "),
        ("[choice]\nresume = 'runs/x'", "choice.resume "),
        ("[agents.alicia]\nmodel = 'x'", "no role is called alicia; near it: alice"),
        ("[agents]\nalice = 'x'", "write agents.alice as a table, [agents.alice]"),
        ("run = 3", "write run as a table, [run]"),
        ("[run]\nsteps = '3'", "run.steps is '3'; it must be a whole number"),
        ("[run]\nsteps = 0", "--steps is 0; it must be at least 1"),
        ("[run\nsteps = 3", "is no TOML: "),
    ],
)
def test_a_mistake_is_told_by_file_and_name(
    text: str, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert train.main(config(tmp_path, text)) == 2
    error = capsys.readouterr().err
    assert f"--config {tmp_path / 'run.toml'}: {said}" in error
    assert error.count("\n") == 1


@pytest.mark.parametrize("flag", ["--resume", "--evaluate"])
def test_a_stored_run_takes_no_file(
    flag: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert train.main([*config(tmp_path, ""), flag, str(tmp_path)]) == 2
    assert "leave out --config" in capsys.readouterr().err
    assert train.main(["--config", str(tmp_path / "none.toml")]) == 2
    assert "none.toml: cannot be read (No such file" in capsys.readouterr().err
