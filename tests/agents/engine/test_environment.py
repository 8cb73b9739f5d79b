"""What engines' processes inherit."""

import os
from collections.abc import Iterator
from unittest import mock

import pytest

from agents.engine.environment import engine_environment
from agents.engine.settings import VllmSettings


@pytest.fixture(autouse=True)
def _own_environment() -> Iterator[None]:
    with mock.patch.dict(os.environ):
        yield


def _threads(monkeypatch: pytest.MonkeyPatch, cores: int, engines: int, **given: str) -> str | None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(cores)), raising=False)
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    for name, value in given.items():
        monkeypatch.setenv(name, value)
    with engine_environment(VllmSettings(), engines=engines, on_gpu=False, transfer=False):
        return os.environ.get("OMP_NUM_THREADS")


@pytest.mark.parametrize(
    ("cores", "engines", "threads"),
    [(1, 1, "1"), (2, 1, "1"), (2, 2, "1"), (9, 2, "4"), (16, 2, "7"), (16, 1, "15")],
)
def test_engines_share_the_cores_less_one_for_whoever_asks_them(
    monkeypatch: pytest.MonkeyPatch, cores: int, engines: int, threads: str
) -> None:
    assert _threads(monkeypatch, cores, engines) == threads


def test_what_the_user_has_set_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    assert _threads(monkeypatch, 16, 2, OMP_NUM_THREADS="3") == "3"


def test_this_process_is_as_before(monkeypatch: pytest.MonkeyPatch) -> None:
    _threads(monkeypatch, 16, 2)
    assert "OMP_NUM_THREADS" not in os.environ


def test_a_gpu_engine_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    with engine_environment(VllmSettings(), engines=2, on_gpu=True, transfer=False):
        assert "OMP_NUM_THREADS" not in os.environ
