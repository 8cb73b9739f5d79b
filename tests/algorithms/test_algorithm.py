import subprocess
import sys
from dataclasses import dataclass

import pytest
import tyro

from coterie import algorithms
from coterie.algorithms import (
    ALGORITHMS,
    Algorithm,
    ClippedRatio,
    ClippedWeight,
    GateWeight,
    SequenceWeight,
    SoftGate,
)
from coterie.datatypes import UserError

NAMES = ["grpo", "dr-grpo", "dapo", "gspo", "sapo", "cispo", "rloo", "reinforce++"]
NAMES += ["gspo-paper", "sapo-paper"]


def test_every_name_makes_sense():
    assert algorithms.names()[: len(NAMES)] == NAMES
    for name in NAMES:
        assert algorithms.get(name) is ALGORITHMS[name]


def test_unknown_name_lists_the_known():
    with pytest.raises(UserError, match=r"unknown algorithm 'ppo'; known: grpo, dr-grpo"):
        algorithms.get("ppo")


def test_register(monkeypatch):
    monkeypatch.setattr(algorithms.algorithm, "ALGORITHMS", dict(ALGORITHMS))
    mine = Algorithm(surrogate=ClippedRatio(low=0.1))
    algorithms.register("mine", mine)
    assert algorithms.get("mine") is mine
    with pytest.raises(UserError, match="'mine' exists already"):
        algorithms.register("mine", mine)
    with pytest.raises(UserError, match="must lie between"):
        algorithms.register("other", Algorithm(surrogate=ClippedRatio(low=2.0)))


@pytest.mark.parametrize(
    ("made", "words"),
    [
        (lambda: Algorithm(kl_coefficient=0.1, kl_estimator="k1"), "k1 in the loss"),
        (lambda: Algorithm(kl_importance=True), "kl-coefficient"),
        (lambda: Algorithm(kl_coefficient=-1.0), "kl-coefficient must not be negative"),
        (lambda: Algorithm(epsilon=-1.0), "epsilon must not be negative"),
        (lambda: Algorithm(entropy_coefficient=float("nan")), "entropy-coefficient"),
        (lambda: Algorithm(reduction="constant-length"), "needs algo.length"),
        (lambda: Algorithm(length=5), "constant-length only"),
        (lambda: Algorithm(overlong_limit=5), "needs both"),
        (lambda: Algorithm(overlong_limit=5, overlong_buffer=6), "between 0 and"),
        (lambda: Algorithm(max_generation_batches=0), "max-generation-batches"),
        (lambda: Algorithm(generation_batch=96), "nothing without algo.dynamic-sampling"),
        (
            lambda: Algorithm(generation_batch=-1, dynamic_sampling=True),
            "generation-batch must not",
        ),
        (lambda: Algorithm(surrogate=ClippedRatio(dual=1.0)), "dual must be finite and above 1"),
        (
            lambda: Algorithm(surrogate=ClippedRatio(dual=float("nan"))),
            "dual must be finite and above 1",
        ),
        (lambda: Algorithm(surrogate=ClippedRatio(low=1.0)), "low must lie between 0 and 1"),
        (lambda: Algorithm(surrogate=SequenceWeight(high=0.0)), "high be above 0, and finite"),
        (lambda: Algorithm(surrogate=SoftGate(tau_positive=0.0)), "tau-positive"),
        (lambda: Algorithm(surrogate=GateWeight(tau_negative=-1.0)), "tau-negative"),
        (lambda: Algorithm(surrogate=ClippedWeight(high=0.5)), "below 1"),
    ],
)
def test_senseless_combinations_are_refused(made, words):
    with pytest.raises(UserError, match=words):
        made()


def test_k1_is_welcome_with_importance():
    Algorithm(kl_coefficient=0.1, kl_estimator="k1", kl_importance=True)


@pytest.mark.parametrize(
    ("name", "flag", "value", "foreign"),
    [
        ("gspo", "--algo.surrogate.low", 0.625, "--algo.surrogate.tau-positive"),
        ("sapo", "--algo.surrogate.tau-positive", 0.625, "--algo.surrogate.low"),
        ("cispo", "--algo.surrogate.high", 1.625, "--algo.surrogate.level"),
    ],
)
def test_flags_are_those_of_the_chosen_surrogate(name, flag, value, foreign, capsys):
    chosen = algorithms.get(name)

    @dataclass(frozen=True)
    class Settings:
        algo: Algorithm = chosen

    config = (tyro.conf.AvoidSubcommands,)
    parsed = tyro.cli(Settings, args=[flag, str(value)], config=config)
    assert value in vars(parsed.algo.surrogate).values()
    with pytest.raises(SystemExit):
        tyro.cli(Settings, args=[foreign, "0.625"], config=config)
    assert "nrecognized" in capsys.readouterr().err


def test_choices_do_not_need_torch():
    # `--help` must not wait for it.
    code = (
        "import sys; from coterie import algorithms; algorithms.get('gspo')\n"
        "sys.exit('torch' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
