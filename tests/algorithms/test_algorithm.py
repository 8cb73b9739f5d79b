from dataclasses import dataclass

import pytest
import tyro

from coterie import algorithms
from coterie.algorithms import (
    ALGORITHMS,
    Algorithm,
    ClippedRatio,
)
from coterie.datatypes import UserError


def test_register(monkeypatch):
    monkeypatch.setattr(algorithms.algorithm, "ALGORITHMS", dict(ALGORITHMS))
    mine = Algorithm(surrogate=ClippedRatio(low=0.1))
    algorithms.register("mine", mine)
    assert algorithms.get("mine") is mine
    with pytest.raises(UserError, match="'mine' exists already"):
        algorithms.register("mine", mine)
    with pytest.raises(UserError, match=r"low is 2.0; it must be above 0 and below 1"):
        algorithms.register("other", Algorithm(surrogate=ClippedRatio(low=2.0)))


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


def test_choices_do_not_need_torch(python):
    # `--help` must not wait for it.
    code = (
        "import sys; from coterie import algorithms; algorithms.get('gspo')\n"
        "sys.exit('torch' in sys.modules)"
    )
    python("-c", code)
