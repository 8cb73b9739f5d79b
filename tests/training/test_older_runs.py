"""Runs whose config.json was written before some settings were there."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from coterie.cli.command_line import parse, read_run
from coterie.datatypes import UserError
from coterie.training.config.train_settings import restore

PEERS = ("reread", "reread_hint", "reread_least")


def stored(argv: list[str]) -> dict[str, Any]:
    return json.loads(json.dumps(parse(argv).plain()))


@pytest.mark.parametrize(
    ("stored", "eval_"), [(None, ()), ("math500", ("math500",)), (["a", "b"], ("a", "b"))]
)
def test_runs_from_before_there_were_several_evaluation_sets(
    stored: object, eval_: tuple[str, ...]
) -> None:
    plain = parse([]).plain()
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


@pytest.mark.parametrize(
    ("env", "setting", "before"),
    [("core-teaching", "reread", "none"), ("eapo-consultation", "penalty_start", 0)],
)
def test_an_environments_setting_is_as_it_was(env: str, setting: str, before: object) -> None:
    plain = parse(["--env", env]).plain()
    assert plain["env"].pop(setting) != before
    assert getattr(restore(plain).env, setting) == before


def test_a_run_from_before_peer_distillation_goes_on_without_it() -> None:
    settings = parse(["--preset", "core-gated"])
    plain = settings.plain()
    del plain["algo"]["distillation"]
    for name in PEERS:
        del plain["env"][name]
    again = restore(plain)
    assert again.algo.distillation.beta == 0
    assert again.env == settings.env
    assert again == settings


def test_a_run_from_before_lone_traces_goes_on_without_them() -> None:
    plain = stored(["--preset", "eapo-faded"])
    for name in ("lone", "reread"):
        del plain["env"][name]
    del plain["algo"]["distillation"]
    assert restore(plain) == parse(["--preset", "eapo-faded"])


GONE = {
    ("algo", "sharing"): {"weight": 0.0, "alpha": 1.0, "delta": 0.2},
    ("algo", "distillation"): {"direction": "hint"},
    ("env",): {"reread_contrast": False},
}
"""What a run of version 0.1.0 has stored of settings that are gone, all of them off."""


def of_version_one(argv: list[str]) -> dict[str, Any]:
    plain = stored(argv)
    for path, values in GONE.items():
        holder = plain
        for name in path:
            holder = holder.setdefault(name, {})
        holder.update(values)
    return plain


def test_a_setting_that_is_gone_and_was_off_is_not_missed() -> None:
    assert restore(of_version_one([])) == parse([])


@pytest.mark.parametrize(
    ("path", "value", "sentence"),
    [
        (("algo", "sharing", "weight"), 1.0, "--algo.sharing.weight 1.0; learning peers' traces"),
        (("algo", "distillation", "direction"), "reward", "weighing the reward by a hint is gone"),
        (("algo", "distillation", "reader"), "current", "are gone: use average"),
        (("env", "reread_contrast"), True, "--env.reread-contrast True; comparing with a wrong"),
        (("env", "reread_hint"), "gold", "the gold answer as a hint is gone: use peer or own"),
    ],
)
def test_a_run_with_a_setting_that_is_gone_is_refused(
    path: tuple[str, ...], value: Any, sentence: str, tmp_path: Path
) -> None:
    plain = of_version_one([])
    holder = plain
    for name in path[:-1]:
        holder = holder[name]
    holder[path[-1]] = value
    (tmp_path / "config.json").write_text(json.dumps(plain))
    with pytest.raises(UserError, match=re.escape(sentence)) as raised:
        read_run(tmp_path)
    assert "damaged" not in str(raised.value)
