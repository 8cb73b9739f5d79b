"""A run says which settings of its environment somebody chose and that change nothing."""

import json
import sys
import types
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import pytest

from coterie import train
from coterie.cli.command_line import parse
from coterie.datatypes import Needs, UserError, unmet
from coterie.envs import EnvSpec
from coterie.training.config.idle_settings import (
    idle_in_algorithm,
    idle_in_environment,
    idle_model_settings,
)

_COREA, _EAPO = "--env corea-deferral", "--env eapo-consultation"
_LARGE = f"{_EAPO} --agents.policy.model Qwen/Qwen2.5-7B-Instruct"
IDLE = [
    ("--env.lambda-b 0.5", "--env.lambda-b 0.5 changes nothing with --env.k-hinted 0"),
    ("--env.teacher-lift 0.1", "--env.teacher-lift 0.1 changes nothing with --env.k-hinted 0"),
    ("--env.delta 0.2", "--env.delta 0.2 changes nothing with --env.w-explore 0.0"),
    (
        "--env.w-explore 0.1 --env.cap 3",
        "--env.cap 3 changes nothing with --env.explore-mode leave-one-out, only with literal or "
        "strategy-ratio",
    ),
    (
        "--env.no-cross-requires-correct",
        "--env.no-cross-requires-correct changes nothing with --env.lambda-cm 0.0",
    ),
    (
        f"{_COREA} --env.epsilon 0.01",
        "--env.epsilon 0.01 changes nothing with --env.confidence-reward l1, only with kl",
    ),
    (
        f"{_COREA} --env.w-confidence 0 --env.p-hat mix",
        "--env.p-hat mix changes nothing with --env.w-confidence 0.0",
    ),
    (
        f"{_COREA} --env.accuracy-loss 0.1",
        "--env.accuracy-loss 0.1 changes nothing with --env.threshold-source cost, only with "
        "accuracy",
    ),
    (
        f"{_EAPO} --env.accept-rate 0.5",
        "--env.accept-rate 0.5 changes nothing with --env.schedule linear, only with const",
    ),
    (
        f"{_EAPO} --env.consult always --env.at-once 2",
        "--env.at-once 2 changes nothing with --env.consult always, only with free",
    ),
    (
        f"{_LARGE} --env.consult-penalty 0 --env.penalised accepted",
        "--env.penalised accepted changes nothing with --env.consult-penalty 0.0",
    ),
]
NOT_IDLE = [
    f"{_COREA} --env.confidence-reward kl --env.epsilon 0.01",
    f"{_EAPO} --env.schedule const --env.accept-rate 0.5",
    "--env.reread wrong --env.reread-hint own --env.reread-least 0",
    # What the preset, the environment or the size of a model sets is nobody's choice.
    "--preset core-gated --env.w-explore 0",
    f"{_EAPO} --env.consult-penalty 0",
    f"{_LARGE} --env.schedule const",
    # Nor is a default that is written out.
    f"{_COREA} --env.epsilon 0.001",
]


@pytest.mark.parametrize(("flags", "sentence"), IDLE)
def test_idle(flags: str, sentence: str) -> None:
    assert [*idle_in_environment(parse(flags.split()))] == [sentence]


@pytest.mark.parametrize("flags", NOT_IDLE)
def test_not_idle(flags: str) -> None:
    assert [*idle_in_environment(parse(flags.split()))] == []


_NO_SCALE, _BOB = "--algo.scale none", "--agents.bob.algo"


@pytest.mark.parametrize(
    ("flags", "sentence"),
    [
        (f"{_NO_SCALE} --algo.epsilon 1e-6", "--algo.epsilon does nothing with --algo.scale none"),
        ("--algo rloo --algo.ddof 0", "--algo.ddof does nothing with --algo.scale none"),
        (
            "--algo.advantage m:f --algo.baseline leave-one-out",
            "--algo.baseline does nothing beside --algo.advantage",
        ),
        (
            f"{_BOB}.scale none {_BOB}.epsilon 1e-6",
            f"{_BOB}.epsilon does nothing with {_BOB}.scale none",
        ),
        (
            f"{_NO_SCALE} --algo.distillation.no-rewards",
            "--algo.scale does nothing with --algo.distillation.no-rewards",
        ),
        # What the algorithm, the preset or the size of a model sets is nobody's choice.
        (f"--algo gspo-paper {_NO_SCALE}", ""),
        (f"--preset core-qwen-math {_NO_SCALE}", ""),
        ("--algo dr-grpo --algo.distillation.no-rewards", ""),
        (
            "--env solo --agents.solver.model Qwen/Qwen2.5-0.5B-Instruct --algo.overlong-limit 0 "
            "--algo.overlong-buffer 0",
            "",
        ),
        # The team's values are those that roles begin with.
        (f"{_NO_SCALE} --algo.epsilon 1e-6 {_BOB}.scale group-std", ""),
        (f"--algo.epsilon 1e-6 {_BOB}.scale none", ""),
        ("--algo.overlong-factor 0", ""),
    ],
)
def test_an_algorithm_setting_that_no_role_uses(flags: str, sentence: str) -> None:
    refused = [why for wrong, why in idle_in_algorithm(parse(flags.split())) if wrong]
    assert refused[:1] == [sentence][: bool(sentence)]


_RANK, _SCALE = "--agents.alice.lora-rank 64", "--agents.alice.lora-alpha 8"


@pytest.mark.parametrize(
    ("flags", "sentence"),
    [
        (_RANK, f"{_RANK}: alice learns full weights; or say --agents.alice.tuning lora"),
        (f"--agents.alice.tuning full {_SCALE}", f"{_SCALE}: alice learns full weights"),
        (f"--agents.alice.model ADAPTER {_RANK}", f"{_RANK}: ADAPTER is an adapter with its own"),
        ("--agents.bob.revision v1", "--agents.bob.revision v1: tiny:bob is not on the hub"),
        (
            f"{_COREA} --agents.large.model scripted:oracle --agents.large.context 99",
            "--agents.large.context 99: scripted:oracle is not loaded here",
        ),
        (
            f"{_EAPO} --agents.expert.model server:http://h?model=m --agents.expert.chat plain",
            "--agents.expert.chat plain: server:http://h?model=m is not loaded here",
        ),
        (
            f"{_EAPO} --agents.expert.model pool:tiny:alice|scripted:oracle "
            "--agents.expert.chat plain",
            "",
        ),
        ("--agents.alice.model ADAPTER --agents.alice.revision v1", "tiny:alice is not on the hub"),
        # What a preset sets is nobody's choice, nor is a default that is written out.
        ("--preset sd-e2-gsm8k --agents.alice.model tiny:alice --agents.alice.tuning full", ""),
        ("--agents.alice.lora-rank 16", ""),
        (f"--agents.alice.tuning lora {_RANK} {_SCALE}", ""),
        (f"--train-role bob {_RANK}", ""),
    ],
)
def test_a_setting_that_changes_nothing_in_a_model_is_left_out(
    flags: str, sentence: str, tmp_path: Path
) -> None:
    (tmp_path / "adapter_model.safetensors").touch()
    named = {"base_model_name_or_path": "tiny:alice"}
    (tmp_path / "adapter_config.json").write_text(json.dumps(named))
    settings = parse(flags.replace("ADAPTER", str(tmp_path)).split())
    refused = [why for wrong, why in idle_model_settings(settings) if wrong]
    assert bool(refused) == bool(sentence)
    if sentence:
        assert sentence.replace("ADAPTER", str(tmp_path)) in refused[0]


def test_a_run_says_it_once(tmp_path, capsys: pytest.CaptureFixture[str]) -> None:
    run = ["--steps", "1", "--rollout.problems-per-step", "2", "--eval.no-enabled"]
    run += ["--checkpoint-every", "1", "--env.delta", "0.2", "--run-dir", str(tmp_path / "run")]
    assert train.main(run) == 0
    said = "--env.delta 0.2 changes nothing with --env.w-explore 0.0\n"
    assert said in capsys.readouterr().out
    assert train.main(["--resume", str(tmp_path / "run"), "--steps", "2"]) == 0
    assert said not in capsys.readouterr().out


@dataclass(frozen=True)
class Settings:
    loss: str | tuple[str, ...] = "l1"
    weights: tuple[float, ...] = (0.0, 0.0)
    epsilon: Annotated[float, Needs("loss", "kl", "js")] = 1e-3
    margin: Annotated[float, Needs("weights"), Needs("loss", "l1")] = 0.1


@pytest.mark.parametrize(
    ("settings", "names"),
    [
        (Settings(), ["epsilon", "margin"]),
        (Settings("js"), ["margin", "margin"]),
        (Settings("kl", (0.0, 0.5)), ["margin"]),
        (Settings("l1", (0.5,)), ["epsilon"]),
        (Settings(("l1", "js"), (0.5,)), []),
    ],
)
def test_needs(settings: Settings, names: list[str]) -> None:
    assert [name for name, _ in unmet(settings)] == names


@dataclass(frozen=True)
class Lap:
    weight: float = 0.0
    margin: Annotated[float, Needs("weight")] = 0.1


@dataclass(frozen=True)
class Race:
    lap: Lap = Lap()


def test_nested_settings_have_needs_too(monkeypatch: pytest.MonkeyPatch) -> None:
    module: Any = types.ModuleType("of_a_racer")
    module.SPEC = EnvSpec("race", 0, "of_a_racer:race", Race, ("a",))
    monkeypatch.setitem(sys.modules, "of_a_racer", module)
    flags = ["--env", "of_a_racer:SPEC", "--agents.a.model", "tiny:alice"]
    flags += ["--env.lap.margin", "0.5"]
    sentence = "--env.lap.margin 0.5 changes nothing with --env.lap.weight 0.0"
    assert [*idle_in_environment(parse(flags))] == [sentence]
    assert [*idle_in_environment(parse([*flags, "--env.lap.weight", "1"]))] == []


def test_a_misspelt_need_is_one_sentence() -> None:
    @dataclass(frozen=True)
    class Misspelt:
        weight: float = 0.0
        margin: Annotated[float, Needs("wieght")] = 0.1

    with pytest.raises(UserError, match=r"Misspelt\.margin needs 'wieght', which is no field of"):
        [*unmet(Misspelt())]
