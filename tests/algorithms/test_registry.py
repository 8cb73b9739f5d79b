import subprocess
import sys
from dataclasses import dataclass

import pytest
import tyro

import algorithms
from algorithms import (
    ALGORITHMS,
    Algorithm,
    ClippedRatio,
    ClippedWeight,
    GateWeight,
    SequenceWeight,
    SoftGate,
    validate,
)
from vocabulary import UserError

NAMES = ["grpo", "dr-grpo", "dapo", "gspo", "sapo", "cispo", "rloo", "reinforce++"]
NAMES += ["gspo-paper", "sapo-paper"]


def test_every_name_makes_sense():
    assert algorithms.names() == NAMES
    for name in NAMES:
        assert validate(algorithms.get(name)) is ALGORITHMS[name]


def test_unknown_name_lists_the_known():
    with pytest.raises(UserError, match=r"unknown algorithm 'ppo'; known: grpo, dr-grpo"):
        algorithms.get("ppo")


def test_register(monkeypatch):
    monkeypatch.setattr(algorithms.registry, "ALGORITHMS", dict(ALGORITHMS))
    mine = Algorithm(surrogate=ClippedRatio(low=0.1))
    algorithms.register("mine", mine)
    assert algorithms.get("mine") is mine
    with pytest.raises(UserError, match="'mine' exists already"):
        algorithms.register("mine", mine)
    with pytest.raises(UserError, match="must lie between"):
        algorithms.register("other", Algorithm(surrogate=ClippedRatio(low=2.0)))


@pytest.mark.parametrize(
    ("algorithm", "words"),
    [
        (Algorithm(kl_coefficient=0.1, kl_estimator="k1"), "k1 in the loss"),
        (Algorithm(kl_importance=True), "kl-coefficient"),
        (Algorithm(kl_coefficient=-1.0), "kl-coefficient must not be negative"),
        (Algorithm(epsilon=-1.0), "epsilon must not be negative"),
        (Algorithm(entropy_coefficient=float("nan")), "entropy-coefficient"),
        (Algorithm(reduction="constant-length"), "needs algo.length"),
        (Algorithm(length=5), "constant-length only"),
        (Algorithm(overlong_limit=5), "needs both"),
        (Algorithm(overlong_limit=5, overlong_buffer=6), "between 0 and"),
        (Algorithm(max_generation_batches=0), "max-generation-batches"),
        (Algorithm(generation_batch=96), "nothing without algo.dynamic-sampling"),
        (Algorithm(generation_batch=-1, dynamic_sampling=True), "generation-batch must not be"),
        (Algorithm(surrogate=ClippedRatio(dual=1.0)), "dual must lie above 1"),
        (Algorithm(surrogate=ClippedRatio(dual=float("nan"))), "dual must lie above 1"),
        (Algorithm(surrogate=ClippedRatio(low=1.0)), "low must lie between 0 and 1"),
        (Algorithm(surrogate=SequenceWeight(high=0.0)), "high above 0"),
        (Algorithm(surrogate=SoftGate(tau_positive=0.0)), "tau-positive"),
        (Algorithm(surrogate=GateWeight(tau_negative=-1.0)), "tau-negative"),
        (Algorithm(surrogate=ClippedWeight(high=0.5)), "below 1"),
    ],
)
def test_senseless_combinations_are_refused(algorithm, words):
    with pytest.raises(UserError, match=words):
        validate(algorithm)


def test_k1_is_welcome_with_importance():
    validate(Algorithm(kl_coefficient=0.1, kl_estimator="k1", kl_importance=True))


@pytest.mark.parametrize(
    ("name", "flag", "foreign"),
    [
        ("gspo", "--algo.surrogate.low", "--algo.surrogate.tau-positive"),
        ("sapo", "--algo.surrogate.tau-positive", "--algo.surrogate.low"),
        ("cispo", "--algo.surrogate.high", "--algo.surrogate.level"),
    ],
)
def test_flags_are_those_of_the_chosen_surrogate(name, flag, foreign, capsys):
    chosen = algorithms.get(name)

    @dataclass(frozen=True)
    class Settings:
        algo: Algorithm = chosen

    config = (tyro.conf.AvoidSubcommands,)
    parsed = tyro.cli(Settings, args=[flag, "0.625"], config=config)
    assert 0.625 in vars(parsed.algo.surrogate).values()
    with pytest.raises(SystemExit):
        tyro.cli(Settings, args=[foreign, "0.625"], config=config)
    assert "nrecognized" in capsys.readouterr().err


def test_choices_do_not_need_torch():
    # `--help` must not wait for it.
    code = "import algorithms, sys; algorithms.get('gspo'); sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
