"""Every flag of ``benchmark.py`` is used by a test of this folder."""

import dataclasses
import importlib
import re
from pathlib import Path
from typing import Any

import pytest

from coterie import benchmark

# They are records of their own, tested where they are made.
_RECORDS = {"vllm", "scoring", "env", "leap"}
_TEXT = "".join(path.read_text() for path in Path(__file__).parent.rglob("test_*.py"))
_USED = set(re.findall(r"--([a-z][a-z0-9-]*)", _TEXT))


def settings_of(command: str) -> Any:
    module, settings, _ = benchmark._COMPARISONS[command]
    return getattr(importlib.import_module(module), settings)


@pytest.mark.parametrize("command", benchmark._COMPARISONS)
def test_every_flag_has_a_test(command: str) -> None:
    names = {field.name.replace("_", "-") for field in dataclasses.fields(settings_of(command))}
    # Runs and the name of a table stand without a flag.
    unused = names - _USED - {f"{name.removeprefix('no-')}" for name in _USED if "no-" in name}
    assert unused - _RECORDS - {"runs", "name"} == set()


@pytest.mark.parametrize("command", benchmark._COMPARISONS)
def test_every_flag_says_what_it_does(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as left:
        benchmark.main([command, "--help"])
    assert left.value.code == 0
    said = " ".join(capsys.readouterr().out.split())
    for field in dataclasses.fields(settings_of(command)):
        if field.name not in _RECORDS | {"runs", "name"}:
            assert f"--{field.name.replace('_', '-')}" in said
