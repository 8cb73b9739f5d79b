"""Real weights, from the folder that COTERIE_WEIGHTS names, or from the cache."""

from collections.abc import Callable
from pathlib import Path

import pytest

from coterie.agents.models.loading import LoadedRole, load_team
from coterie.agents.models.spec import ModelSpec
from fetch_weights import weights_file


def weights_of(name: str) -> Path:
    """The GGUF file; skips the test where it is not on this disk."""
    path = weights_file(name)
    if not path.is_file():
        pytest.skip(f"{path} is not there; python tools/fetch_weights.py {name}")
    return path


@pytest.fixture(scope="session")
def weights() -> Callable[[str], Path]:
    """Finds the file of real weights by their name."""
    return weights_of


@pytest.fixture(scope="module", params=["smollm2", "gemma3"])
def real(request: pytest.FixtureRequest) -> tuple[str, LoadedRole]:
    """A real model with full weights that learn, in float32."""
    spec = ModelSpec(str(weights_of(request.param)), device="cpu", dtype="float32")
    return request.param, load_team({"alice": spec}, {"alice"})["alice"]
