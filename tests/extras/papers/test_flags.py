"""Every flag of the papers' comparisons is used by a test."""

import dataclasses
import importlib
import re
from pathlib import Path

import pytest

from coterie.extras.papers import EXTRA

_RECORDS = {"vllm", "scoring", "env", "leap"}
_TESTS = Path(__file__).parents[2]
_FILES = [*(_TESTS / "comparison").rglob("test_*.py"), *Path(__file__).parent.glob("test_*.py")]
_USED = set(re.findall(r"--([a-z][a-z0-9-]*)", "".join(path.read_text() for path in _FILES)))


@pytest.mark.parametrize("name", EXTRA.comparisons)
def test_every_flag_has_a_test(name: str) -> None:
    module, settings, *_ = EXTRA.comparisons[name]
    kind = getattr(importlib.import_module(module), settings)
    names = {field.name.replace("_", "-") for field in dataclasses.fields(kind)}
    unused = names - _USED - {flag.removeprefix("no-") for flag in _USED if flag.startswith("no-")}
    assert unused - _RECORDS - {"name"} == set()
