"""How engines are run. Each field's docstring is its help text."""

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class VllmSettings:
    """What --engine vllm starts; without it these settings have no effect."""

    gpu_memory: float = 0.4
    """Share of a GPU's memory for one engine: its weights and its key-value cache."""
    cpu_cache_gb: int = 1
    """Gigabytes of key-value cache of one engine on a CPU."""
    max_sequences: int = 256
    """Sequences that one engine decodes side by side."""
    eager: bool = False
    """No CUDA graphs: starts sooner, decodes slower. A CPU engine is always eager."""
    weights: Literal["auto", "transfer", "reload"] = "auto"
    """How full weights reach their engine after an update: through vLLM's weight transfer, or
    through files in memory; auto: transfer on a GPU, files on a CPU and with sleep level 2.
    Adapters always use files."""
    sleep_level: Literal[0, 1, 2] = 0
    """What engines on a GPU give up while the learner updates: nothing, their cache and (1) their
    weights to main memory, or (2) their weights altogether."""
    time_share: bool = False
    """At most one engine is awake at any time, so that two large models fit on one GPU; needs a
    sleep level."""
    log: Literal["ERROR", "WARNING", "INFO", "DEBUG"] = "ERROR"
    """What engines write to the terminal."""
