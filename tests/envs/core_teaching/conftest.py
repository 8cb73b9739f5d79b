"""An environment that the tests score by hand."""

import dataclasses
from typing import Any

import pytest

from coterie.envs.core_teaching import CoreTeachingEnv, CoreTeachingSettings

from .scripted import PLAIN


@pytest.fixture
def make(scorer: Any) -> Any:
    fields = {field.name for field in dataclasses.fields(CoreTeachingSettings)}

    def build(base: CoreTeachingSettings = PLAIN, **more: Any) -> CoreTeachingEnv:
        """``more``: settings beside those of ``base``, and arguments of the environment."""
        changed = {name: more.pop(name) for name in fields & more.keys()}
        return CoreTeachingEnv(dataclasses.replace(base, **changed), scorer=scorer, **more)

    return build
