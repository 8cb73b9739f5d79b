"""``--config`` of YAML: what people write there, and what must not pass."""

from pathlib import Path

import pytest

from coterie import train
from coterie.training.command_line import parse
from coterie.training.yaml_values import read_yaml

RUN = """\
# Comments and sections without a line are fine.
choice:
  env: core-teaching
  roles: [alice, bob]
  train-role:
    - alice
learner:
  lr: 5e-4          # a number, as YAML 1.2 has it
agents:
  bob:
    model: tiny:carol
    revision: null
rollout:
run: {steps: 7, seed: 010, "run-dir": runs/no}
"""


def written(tmp_path: Path, text: str, name: str = "run.yaml") -> list[str]:
    (tmp_path / name).write_text(text, encoding="utf-8")
    return ["--config", str(tmp_path / name)]


@pytest.mark.parametrize("name", ["run.yaml", "run.yml", "RUN.YAML"])
def test_a_file_says_what_flags_would(tmp_path: Path, name: str) -> None:
    flags = ["--train-role", "alice", "--learner.lr", "5e-4", "--agents.bob.model", "tiny:carol"]
    more = ["--steps", "7", "--seed", "10", "--run-dir", "runs/no"]
    settings = parse(written(tmp_path, RUN, name))
    assert settings == parse(["--roles", "alice", "bob", *flags, *more])
    assert parse([*written(tmp_path, RUN, name), "--steps", "8"]).run.steps == 8


def test_an_empty_file_says_nothing(tmp_path: Path) -> None:
    assert parse(written(tmp_path, "# later\n")) == parse([])
    assert parse(written(tmp_path, "\ufeffrun:\n")) == parse([])


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("5e-4", 5e-4), ("1E3", 1e3), (".5", 0.5), ("-1.", -1.0), ("-.inf", float("-inf")),
        ("010", 10), ("1_000", "1_000"),
        ("null", None), ("~", None), ("", None), ("True", True), ("no", "no"), ("on", "on"),
        ("1:30", "1:30"), ("2026-01-01", "2026-01-01"), ("0x10", "0x10"), ("'7'", "7"),
        ("[1, [a], {b: 2}]", [1, ["a"], {"b": 2}]), ("!!str 3", "3"),
        ("{a: &x {b: 1}, c: *x, d: {<<: *x, b: 2}}", {"a": {"b": 1}, "c": {"b": 1}, "d": {"b": 2}}),
    ],
)  # fmt: skip
def test_values_are_those_of_yaml_1_2(text: str, value: object) -> None:
    assert read_yaml(text) == value
    assert type(read_yaml(text)) is type(value)


BOMB = "a: &a [x, x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"{new}: &{new} [{', '.join([f'*{old}'] * 10)}]\n" for old, new in ("ab", "bc", "cd", "de")
)
MERGED = "a: &a {x: 1}\n" + "".join(
    f"{new}: &{new} {{<<: [{', '.join([f'*{old}'] * 10)}]}}\n"
    for old, new in ("ab", "bc", "cd", "de")
)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("run: {steps: 3\n", "is no YAML: expected ',' or '}'"),
        ("run:\n\tsteps: 3\n", "found character '\\t' that cannot start any token, line 2"),
        ("run: {steps: 3, steps: 4}", "is no YAML: steps is given twice, line 1; write it once"),
        ("run: {seed: 1}\nrun: {steps: 4}", "run is given twice, line 2; write it once"),
        ("run: {run-dir: a, run_dir: b}", "run_dir is given twice"),
        ("run: {steps: !!python/object/apply:os.getpid []}", "the tag !!python/object/apply:os"),
        ("run: {steps: !mine 3}", "is no YAML: the tag !mine, line 1 has no meaning here"),
        ("run: {steps: !!binary aGk=}", "the tag !!binary, line 1 has no meaning here"),
        ("run: {steps: !!int three}", "is no YAML: "),
        ("run: &x {steps: *x}", "is no YAML: an alias stands inside of what it names, line 1"),
        (BOMB, "is no YAML: with every alias written out it has more than 10000 values"),
        (MERGED, "is no YAML: with every alias written out it has more than 10000 values"),
        ("run: *nowhere", "is no YAML: found undefined alias 'nowhere', line 1"),
        ("--- {}\n--- {}", "is no YAML: but found another document, line 2"),
        ("- run\n- steps", "is no YAML: it must be a map of settings, such as run: {steps: 3}"),
        ("steps", "is no YAML: it must be a map of settings"),
        ("1: 2", "is no YAML: a name must be text, line 1; put it in quotes"),
        ("null: {}", "is no YAML: a name must be text, line 1; put it in quotes"),
        ("? [a, b]\n: 3", "is no YAML: a name must be text, line 1; put it in quotes"),
        ("run: {steps: \x00}", "is no YAML: unacceptable character"),
        ("[" * 5000, "is no YAML: it is nested too deeply"),
        ("run: 3", "write run as a map, run: {...}"),
        ("agents: {bob: tiny:carol}", "write agents.bob as a map, agents.bob: {...}"),
        ("run: {steps: null}", "run.steps is None; it must be a whole number"),
        ("run: {steps: 3.5}", "run.steps is 3.5; it must be a whole number"),
        ("run: {steps: '3'}", "run.steps is '3'; it must be a whole number"),
        ("eval: {enabled: no}", "eval.enabled is 'no'; it must be true or false"),
        ("choice: {roles: alice}", "choice.roles is 'alice'; it must be a list"),
        ("learner.lr: 3", "no part is called learner.lr; near it: learner"),
        ("learner: {lr: {a: 1}}", "learner.lr is {'a': 1}; it must be a number"),
    ],
)  # fmt: skip
def test_a_mistake_is_one_sentence(
    text: str, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert train.main(written(tmp_path, text)) == 2
    error = capsys.readouterr().err
    assert error.startswith(f"train.py: --config {tmp_path / 'run.yaml'}: ")
    assert said in error
    assert error.count("\n") == 1


def test_toml_says_how_yaml_is_read(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert train.main(written(tmp_path, "run:\n  steps: 3\n", "run.toml")) == 2
    assert "is no TOML: " in (error := capsys.readouterr().err)
    assert "(YAML is read from files called .yaml)" in error
