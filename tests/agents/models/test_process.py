"""Tiny models compute on one thread, others on all, and nobody changes that for good."""

from collections.abc import Iterator

import pytest
import torch

from coterie.agents.models.process import few_threads


@pytest.fixture(autouse=True)
def _two_threads() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    yield
    torch.set_num_threads(before)


@pytest.mark.parametrize(
    ("device", "weight_bytes", "threads"),
    [("cpu", 8 << 20, 1), ("cpu", (8 << 20) + 1, 2), ("meta", 1, 2)],
)
def test_threads_go_by_size_and_device(device: str, weight_bytes: int, threads: int) -> None:
    with few_threads(torch.device(device), weight_bytes):
        assert torch.get_num_threads() == threads
    assert torch.get_num_threads() == 2


def test_a_tiny_role_answers_and_learns_on_one_thread(load_role) -> None:
    with load_role("tiny:alice").handle.active():
        assert torch.get_num_threads() == 1
    assert torch.get_num_threads() == 2
