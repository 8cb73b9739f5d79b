"""Settings of vLLM engines, and the checks before one is started."""

from collections.abc import Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Annotated, Literal

from annotated_types import Ge

from coterie.datatypes import UserError, Validated, refuse
from coterie.datatypes.validation import PositiveShare


@dataclass(frozen=True)
class VllmSettings(Validated):
    """vLLM engines; these settings need --engine vllm."""

    gpu_memory: PositiveShare = 0.4
    """Share of a GPU's memory for one engine, weights and key-value cache together."""
    cpu_cache_gb: Annotated[int, Ge(1)] = 1
    """Key-value cache of one engine on a CPU, in GB."""
    max_sequences: Annotated[int, Ge(1)] = 256
    """Sequences that one engine decodes at the same time."""
    eager: bool = False
    """No CUDA graphs: starts faster and decodes slower. A CPU engine is always eager."""
    weights: Literal["auto", "transfer", "reload"] = "auto"
    """How full weights reach their engine after an update. transfer: vLLM's weight transfer;
    reload: from files in memory; auto: transfer where learner and engine share a GPU, reload
    elsewhere and at sleep level 2. Adapters are always read from files."""
    sleep_level: Literal[0, 1, 2] = 0
    """What engines on a GPU free while the learner updates: 0 nothing; 1 their cache, and their
    weights go to main memory; 2 their weights too, which adapters do not allow."""
    time_share: bool = False
    """Keep at most one engine awake, so that two large models fit on one GPU; needs a sleep
    level."""
    log: Literal["ERROR", "WARNING", "INFO", "DEBUG"] = "ERROR"
    """Log level of the engines in the terminal."""

    def check(self) -> None:
        refuse(
            (
                self.time_share and self.sleep_level == 0,
                "--vllm.time-share needs --vllm.sleep-level 1 or 2: engines that wait their turn "
                "sleep",
            ),
            (
                self.weights == "transfer" and self.sleep_level == 2,
                "--vllm.sleep-level 2 frees weights, which are then read from files; say "
                "--vllm.weights reload, or --vllm.sleep-level 1",
            ),
        )


def check_engine(
    engine: str,
    settings: VllmSettings,
    devices: Sequence[tuple[str, str]],
    *,
    adapters: bool = False,
    auto: str | None = None,
) -> None:
    """Refuse settings that cannot work.

    Args:
        engine: ``local`` or ``vllm``.
        settings: of the engines.
        devices: (model's device, its engine's device) of every model, as the user gave them.
        adapters: whether a model has one.
        auto: the device that ``auto`` means; None: that of this process.

    Raises:
        UserError: one sentence that names the flag.
    """
    if engine != "vllm":
        if settings != VllmSettings() or any(of_engine != "auto" for _, of_engine in devices):
            raise UserError("--vllm.* and --agents.ROLE.engine-device need --engine vllm")
        return
    if find_spec("vllm") is None:
        raise UserError(
            "--engine vllm needs vLLM, which is not installed: docs/vllm.md says how, or say "
            "--engine local"
        )
    if not devices:
        raise UserError(
            "--engine vllm has no model to sample from: all roles are scripts or servers; leave "
            "it out"
        )
    places = [_place(of_model, of_engine, auto) for of_model, of_engine in devices]
    models = [_place(of_model, "auto", auto) for of_model, _ in devices]
    gpus, shared = [place != "cpu" for place in places], len(set(places)) < len(places)
    refuse(
        (
            settings.sleep_level > 0 and not all(gpus),
            "--vllm.sleep-level needs every engine on a GPU; a CPU engine cannot sleep",
        ),
        (
            settings.sleep_level == 2 and adapters,
            "--vllm.sleep-level 2 frees weights, which vLLM cannot reload under adapters; say "
            "--vllm.sleep-level 1",
        ),
        (
            settings.time_share and not shared,
            "--vllm.time-share is for engines on one GPU; these have one each",
        ),
        (
            settings.weights == "transfer" and not all(gpus),
            "--vllm.weights transfer needs every engine on a GPU; a CPU engine packs its weights, "
            "say --vllm.weights reload",
        ),
        (
            settings.weights == "transfer" and models != places,
            "--vllm.weights transfer needs a model and its engine on one GPU; say --vllm.weights "
            "reload",
        ),
    )


def _place(of_model: str, of_engine: str, auto: str | None) -> str:
    named = of_model if of_engine == "auto" else of_engine
    if named != "auto":
        return "cuda:0" if named == "cuda" else named
    return auto or usual_device(named)


def usual_device(device: str) -> str:
    """``device``, or for ``auto`` that of this machine: its first GPU, or the CPU."""
    if device != "auto":
        return device
    import torch

    return "cuda:0" if torch.cuda.is_available() else "cpu"
