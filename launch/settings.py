"""What a run can be told, apart from its environment and its algorithm.

Each field's docstring is its help text on the command line.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal


@dataclass(frozen=True)
class RolloutSettings:
    """How training episodes are sampled."""

    problems_per_step: int = 16
    """Problems in one training step."""
    replicas: int = 0
    """Episodes per problem; 0: as many as the environment asks for."""
    temperature: float = 1.0
    """Sampling temperature."""
    learner_temperature: float | None = None
    """Temperature of the learner's probabilities; default: the sampling temperature, which is
    what importance ratios need. The papers take 1 whatever they sample at."""
    top_p: float = 1.0
    """Nucleus filter; 1 is off. Anything else biases the importance ratios."""
    top_k: int = 0
    """Keep the k likeliest tokens; 0 is off."""
    concurrency: int = 1024
    """Episodes in flight."""
    overlap: bool = False
    """Sample the next step's episodes while the learner updates, with the weights from before that
    update; needs --engine vllm."""
    max_staleness: int = 1
    """Rows that were sampled more updates ago than this are dropped, and counted."""
    call_deadline_s: float | None = None
    """Seconds after which a policy's answer counts as failed. Time in which this process itself
    computes (a local model) does not count: no answer can come in then."""
    episode_deadline_s: float | None = None
    """Seconds that an episode may wait for its policies, counted in the same way; whoever has not
    answered then counts as failed."""


@dataclass(frozen=True)
class EvalSettings:
    """Evaluation on held-out problems, before and after training."""

    enabled: bool = True
    """Evaluate before and after training."""
    every: int = 0
    """Also evaluate after every so many steps (logged, not in the table); 0: never."""
    temperature: float | None = None
    """Sampling temperature; default: the training temperature."""
    top_p: float | None = None
    """Nucleus filter; default: the training one."""
    resamples: int = 10_000
    """Bootstrap resamples over problems for the intervals."""


@dataclass(frozen=True)
class RunSettings:
    """The run itself."""

    steps: int = 330
    """Training steps."""
    tokens: int = 0
    """Stop sooner: after the step in which the roles that learn have sampled this many tokens, so
    that systems can be compared at equal cost; 0: steps alone decide."""
    seed: int = 0
    """Everything random derives from it."""
    run_dir: Path | None = None
    """Where the run is written; must be new or empty. Default: runs/ENV-ALGO-TIME."""
    checkpoint_every: int = 1
    """Steps between checkpoints."""
    keep_checkpoints: int = 2
    """Older checkpoints are deleted."""
    group_by: str | None = None
    """Which traces are compared with each other; default: the environment's choice."""
    engine: Literal["local", "vllm"] = "local"
    """What samples from models: this process, or vLLM in processes of its own."""
    doctor: bool = False
    """Check this configuration in a minute instead of training it."""
    threads: int = 0
    """CPU threads for tensor operations, 0: one per core; models below 8 MiB take one."""
    episodes_log: bool = True
    """Write every training episode to episodes.jsonl."""
    transcripts_every: int = 10
    """Steps between sample transcripts in TensorBoard; 0: none."""
