"""Real engines; everything here is skipped where vLLM is not installed."""

import os
import signal
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
import torch

from coterie.extras.cluster.actor import beforehand

if find_spec("vllm") is not None:
    # vLLM imports Ray, which reads once, as it is imported, who may speak to it.
    for name, value in beforehand("local").items():
        os.environ.setdefault(name, value)

GPU = pytest.mark.skipif(not torch.cuda.is_available(), reason="not run: there is no GPU")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    here = Path(__file__).parent
    for item in items:
        if here not in item.path.parents:
            continue
        item.add_marker(pytest.mark.vllm)
        # vLLM leaves its sockets to the garbage collector.
        for kind in ("ResourceWarning", "pytest.PytestUnraisableExceptionWarning"):
            item.add_marker(pytest.mark.filterwarnings(f"ignore::{kind}"))
        if find_spec("vllm") is None:
            item.add_marker(pytest.mark.skip(reason="not run: vLLM is not installed"))
        if item.get_closest_marker("gpu"):
            item.add_marker(GPU)


def _kill_engine(actor: Any) -> None:
    """What vLLM has started for it, which is its only child."""
    process = actor.handle.process.pid
    for child in Path(f"/proc/{process}/task").glob("*/children"):
        for pid in child.read_text().split():
            if b"resource_tracker" not in Path(f"/proc/{pid}/cmdline").read_bytes():
                os.kill(int(pid), signal.SIGKILL)


@pytest.fixture
def kill_engine() -> Callable[[Any], None]:
    """Kills the engine of a process."""
    return _kill_engine
