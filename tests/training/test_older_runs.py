"""Runs whose config.json was written before some settings were there."""

import json
from typing import Any

import pytest

from coterie.training.command_line import parse
from coterie.training.train_settings import restore

PEERS = ("reread", "reread_hint", "reread_least", "reread_contrast")


def stored(argv: list[str]) -> dict[str, Any]:
    return json.loads(json.dumps(parse(argv).plain()))


@pytest.mark.parametrize(
    ("stored", "eval_"), [(None, ()), ("math500", ("math500",)), (["a", "b"], ("a", "b"))]
)
def test_runs_from_before_there_were_several_evaluation_sets(
    stored: object, eval_: tuple[str, ...]
) -> None:
    settings = parse([])
    plain = settings.plain()
    plain["problems"]["eval"] = stored
    assert restore(plain).problems.eval == eval_
    assert parse(["--problems.eval", "a", "b"]).problems.eval == ("a", "b")


def test_a_run_from_before_a_setting_goes_on_without_it() -> None:
    """core-teaching asks for all three by now; they were not there when the run began."""
    argv = ["--env.reread", "wrong", "--algo.distillation.beta", "0.5"]
    plain = stored(argv)
    for name in ("likeliest", "fade"):
        del plain["algo"]["distillation"][name]
    del plain["env"]["reread_least"]
    off = ["--algo.distillation.likeliest", "0", "--algo.distillation.fade", "0"]
    assert restore(plain) == parse([*argv, *off, "--env.reread-least", "0"])


def test_a_run_from_before_peer_distillation_goes_on_without_it() -> None:
    settings = parse(["--preset", "core-tiny"])
    plain = settings.plain()
    for name in ("distillation", "sharing"):
        del plain["algo"][name]
    for name in PEERS:
        del plain["env"][name]
    again = restore(plain)
    assert again.algo.distillation.beta == 0
    assert again.env == settings.env
    assert again == settings
