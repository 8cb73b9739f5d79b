"""An environment that the tests score by hand."""

from typing import Any

import pytest

from coterie.envs.core_teaching import CoreTeachingEnv, CoreTeachingSettings

from .scripted import PLAIN


@pytest.fixture
def make(scorer: Any) -> Any:
    def build(settings: CoreTeachingSettings = PLAIN, **more: Any) -> CoreTeachingEnv:
        return CoreTeachingEnv(settings, scorer=scorer, **more)

    return build
