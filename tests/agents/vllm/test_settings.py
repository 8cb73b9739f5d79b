"""What is refused before an engine is started, and how."""

import pytest

from coterie.agents.vllm import settings as checked
from coterie.agents.vllm.settings import VllmSettings, check_engine
from coterie.datatypes import UserError

CPU = [("cpu", "auto")]
GPU = [("cuda:0", "auto"), ("cuda:0", "auto")]


@pytest.fixture(autouse=True)
def installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checked, "find_spec", lambda name: object())


@pytest.mark.parametrize(
    ("settings", "devices", "way_out"),
    [
        (lambda: VllmSettings(gpu_memory=1.5), GPU, "gpu_memory"),
        (lambda: VllmSettings(sleep_level=1), CPU, "a CPU engine cannot sleep"),
        (lambda: VllmSettings(time_share=True), GPU, "--vllm.sleep-level 1 or 2"),
        (
            lambda: VllmSettings(time_share=True, sleep_level=1),
            [("cuda:0", "auto"), ("cuda:0", "cuda:1")],
            "one each",
        ),
        (lambda: VllmSettings(weights="transfer"), CPU, "--vllm.weights reload"),
        (lambda: VllmSettings(weights="transfer"), [("cuda:0", "cuda:1")], "--vllm.weights reload"),
        (lambda: VllmSettings(weights="transfer", sleep_level=2), GPU, "--vllm.sleep-level 1"),
        # What is beneath adapters is not given up.
        (lambda: VllmSettings(sleep_level=2), GPU, "--vllm.sleep-level 1"),
    ],
)
def test_invalid_combinations_are_refused_with_a_way_out(settings, devices, way_out: str) -> None:
    with pytest.raises(UserError, match=way_out):
        check_engine("vllm", settings(), devices, adapters=True)


@pytest.mark.parametrize(
    ("settings", "devices"),
    [
        (VllmSettings(), CPU),
        (VllmSettings(sleep_level=2, time_share=True), GPU),
        (VllmSettings(weights="transfer", sleep_level=1), GPU),
        (VllmSettings(eager=True, log="INFO"), [("cpu", "cuda:1")]),
    ],
)
def test_valid_combinations_pass(settings, devices) -> None:
    check_engine("vllm", settings, devices)


@pytest.mark.parametrize(
    ("settings", "devices"), [(VllmSettings(eager=True), CPU), (VllmSettings(), [("cpu", "cpu")])]
)
def test_engine_settings_without_engines_are_refused(settings, devices) -> None:
    with pytest.raises(UserError, match="need --engine vllm"):
        check_engine("local", settings, devices)


def test_missing_vllm_is_reported_before_anything_is_loaded(monkeypatch) -> None:
    monkeypatch.setattr(checked, "find_spec", lambda name: None)
    with pytest.raises(UserError, match=r"not installed: docs/vllm\.md"):
        check_engine("vllm", VllmSettings(), CPU)
