"""Settings that somebody chose and that change nothing are refused."""

from dataclasses import dataclass
from typing import Annotated

import pytest

from coterie.cli.command_line import parse
from coterie.datatypes import Needs, UserError, unmet
from coterie.training.config.preflight import check_together

_COREA, _EAPO = "--env corea-deferral", "--env eapo-consultation"
REFUSED = [
    (f"{_COREA} --env.epsilon 0.01", "confidence-reward l1; leave it out, or choose kl"),
    (f"{_COREA} --env.confidence-reward none --env.p-hat mix", "confidence-reward none; leave"),
    (f"{_COREA} --env.accuracy-loss 0.1", "does nothing with --env.threshold-source cost"),
    (f"{_EAPO} --env.accept-rate 0.5", "schedule linear; leave it out, or choose const"),
    (f"{_EAPO} --env.accept-scale 2", "with --env.schedule linear; leave it out, or choose inv"),
    (f"{_EAPO} --env.consult-penalty 0 --env.penalised accepted", "0.0; leave it out, or change"),
]
TAKEN = [
    "--env corea-deferral --env.confidence-reward kl --env.epsilon 0.01",
    "--env eapo-consultation --env.schedule const --env.accept-rate 0.5",
    # What the preset or the environment sets is not refused when another setting turns it off.
    "--preset core-gated --env.w-explore 0",
    "--env eapo-consultation --env.consult-penalty 0",
    # Nor is a default that is written out.
    "--env corea-deferral --env.epsilon 0.001",
]


@pytest.mark.parametrize(("flags", "sentence"), REFUSED)
def test_refused(flags: str, sentence: str) -> None:
    with pytest.raises(UserError) as refused:
        check_together(parse(flags.split()))
    assert sentence in str(refused.value)


@pytest.mark.parametrize("flags", TAKEN)
def test_taken(flags: str) -> None:
    check_together(parse(flags.split()))


@dataclass(frozen=True)
class Settings:
    loss: str = "l1"
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
    ],
)
def test_needs(settings: Settings, names: list[str]) -> None:
    assert [name for name, _ in unmet(settings)] == names
