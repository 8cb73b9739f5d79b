"""What a comparison takes over: a run's sampling, where its roles agree, and a preset's."""

import dataclasses
from collections.abc import Mapping
from typing import Any

import pytest

from coterie.datatypes import UserError
from coterie.evaluation.compare import inherited_settings
from coterie.evaluation.compare.inherited_settings import Inherited, checking, parse, sampling
from coterie.evaluation.compare.suite import SuiteComparison
from coterie.training.config.train_settings import Choice, TrainSettings, defaults

DEFAULT = defaults(Choice("core-teaching", "gspo", ("alice", "bob")))


def of_run(roles: Mapping[str, Mapping[str, Any]], **evaluation: float) -> Inherited:
    agents = {
        role: dataclasses.replace(agent, **roles.get(role, {}))
        for role, agent in DEFAULT.agents.items()
    }
    settings: TrainSettings = dataclasses.replace(
        DEFAULT, agents=agents, eval=dataclasses.replace(DEFAULT.eval, **evaluation)
    )
    return inherited_settings._from_settings("runs/x", settings)


def test_roles_that_agree_say_how_a_benchmark_samples() -> None:
    assert sampling([of_run({})]) == {"temperature": 1.0, "top_p": 1.0}
    both = {"alice": {"temperature": 0.5}, "bob": {"temperature": 0.5}}
    assert sampling([of_run(both)]) == {"temperature": 0.5, "top_p": 1.0}
    # What an evaluation says holds for all.
    alone = {"alice": {"temperature": 0.5}}
    assert sampling([of_run(alone, temperature=0.0)])["temperature"] == 0.0


@pytest.mark.parametrize(("name", "flag"), [("temperature", "temperature"), ("top_p", "top-p")])
def test_roles_that_differ_need_a_flag(name: str, flag: str) -> None:
    run = of_run({"alice": {name: 0.5}})
    with pytest.raises(UserError, match=rf"runs/x .* different {name}; say which with --{flag}"):
        sampling([run])
    assert name not in sampling([run], [f"--{flag}"])


def test_a_benchmark_checks_answers_as_its_runs_or_its_preset_did() -> None:
    asked = ("--policies", "a=tiny:alice")
    assert parse(SuiteComparison, asked, "suite").scoring.checker == "default"
    paper = ("--preset", "corea-qwen-7b", *asked)
    assert parse(SuiteComparison, paper, "suite").scoring.checker == "math-verify"
    again = parse(SuiteComparison, (*paper, "--scoring.checker", "default"), "suite")
    assert again.scoring.checker == "default"


def test_runs_with_other_checkers_need_a_flag() -> None:
    run = of_run({})
    other = dataclasses.replace(run, source="runs/y", checker="mine:right")
    assert checking([other, other]) == {"scoring": {"checker": "mine:right"}}
    with pytest.raises(UserError, match=r"different checkers, .* say which with --scoring.checker"):
        checking([run, other])
    assert checking([run, other], ["--scoring.checker"]) == {}
