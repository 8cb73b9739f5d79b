"""Settings of a run, apart from its environment and its algorithm.

Each field's docstring is its help text on the command line; each class refuses values that cannot
work.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from coterie.datatypes import UserError, check_literals, check_numbers, refuse
from coterie.envs.settings import MOST
from coterie.evaluation.metrics.intervals import MOST_RESAMPLES


def check_seeds(seeds: Iterable[int], flag: str = "--seed") -> None:
    """Raises:
    UserError: a seed that no generator takes.
    """
    if not all(0 <= seed < 2**63 for seed in seeds):
        raise UserError(f"{flag} must be 0 to 2^63 - 1")


def check_temperature(temperature: float, flag: str = "--temperature") -> None:
    """Raises:
    UserError: a sampling temperature that cannot be; 0 is greedy.
    """
    if not 0 <= temperature < math.inf:
        raise UserError(f"{flag} must not be negative, and finite")


def check_resamples(count: int, flag: str) -> None:
    """Raises:
    UserError: more resamples than fit into memory.
    """
    if count > MOST_RESAMPLES:
        raise UserError(f"{flag} is {count}; it must be at most {MOST_RESAMPLES}")


MOST_PROBLEMS = 65_536
"""In one step; papers take up to 1024. More take hours to be asked."""

MAX_NEW_TOKENS = 256
"""Longest answer in tokens, in an environment that sets no limit of its own."""


@dataclass(frozen=True)
class RolloutSettings:
    """Sampling of training episodes."""

    problems_per_step: int = 16
    """Problems in one training step."""
    replicas: int = 0
    """Episodes per problem; 0: the environment's number."""
    temperature: float = 1.0
    """Sampling temperature."""
    learner_temperature: float | None = None
    """Temperature of the learner's probabilities; default: the sampling temperature, which
    importance ratios need. The papers take 1 at any sampling temperature."""
    top_p: float = 1.0
    """Nucleus sampling; 1 is off. Other values bias the importance ratios."""
    top_k: int = 0
    """Sample from the k most likely tokens; 0 is off."""
    max_prompt_tokens: int | None = None
    """Leave out training problems with longer prompts, in tokens of any role's model with its chat
    template; default: no limit."""
    concurrency: int = 1024
    """Episodes that are played at the same time."""
    overlap: bool = False
    """Sample the next step's episodes while the learner updates, with weights one update old; needs
    --engine vllm."""
    max_staleness: int = 1
    """Rows sampled more updates ago than this are dropped and counted."""
    call_deadline_s: float | None = None
    """Seconds after which a policy's answer counts as failed; default: no limit. Computation of a
    local model in this process does not count."""
    episode_deadline_s: float | None = None
    """Seconds that an episode may wait for its policies; answers still missing then count as
    failed. Counted as for --rollout.call-deadline-s."""

    def __post_init__(self) -> None:
        check_numbers(self, "--rollout.")
        limits, learned = (self.call_deadline_s, self.episode_deadline_s), self.learner_temperature
        refuse(
            (
                not 1 <= self.problems_per_step <= MOST_PROBLEMS,
                f"--rollout.problems-per-step must be 1 to {MOST_PROBLEMS}",
            ),
            (
                not 0 <= self.replicas <= MOST,
                f"--rollout.replicas must not be negative, and {MOST} at most",
            ),
            (
                self.max_prompt_tokens is not None and self.max_prompt_tokens < 1,
                "--rollout.max-prompt-tokens must be at least 1",
            ),
            (self.concurrency < 1, "--rollout.concurrency must be at least 1"),
            (self.max_staleness < 0, "--rollout.max-staleness must not be negative"),
            (
                self.overlap and self.max_staleness < 1,
                "--rollout.overlap samples with weights one update old; --rollout.max-staleness "
                "must allow 1",
            ),
            (
                not 0 < self.temperature < math.inf,
                "--rollout.temperature must be above 0 to explore, and finite",
            ),
            (
                learned is not None and not 0 < learned < math.inf,
                "--rollout.learner-temperature must be above 0, and finite",
            ),
            (
                any(limit is not None and not limit > 0 for limit in limits),
                "--rollout.call-deadline-s and --rollout.episode-deadline-s must be above 0; "
                "without them there is no limit",
            ),
            (not 0 < self.top_p <= 1, "--rollout.top-p must be above 0 and at most 1"),
            (self.top_k < 0, "--rollout.top-k must not be negative"),
        )


@dataclass(frozen=True)
class EvalSettings:
    """Evaluation on held-out problems, before and after training."""

    enabled: bool = True
    """Evaluate before and after training."""
    every: int = 0
    """Evaluate after every N steps, too; logged, not in the table. 0: never."""
    temperature: float | None = None
    """Sampling temperature; default: the training temperature."""
    top_p: float | None = None
    """Nucleus sampling; default: the training value."""
    resamples: int = 10_000
    """Bootstrap resamples over problems, for the intervals."""

    def __post_init__(self) -> None:
        check_numbers(self, "--eval.")
        refuse(
            (
                self.top_p is not None and not 0 < self.top_p <= 1,
                "--eval.top-p must be above 0 and at most 1",
            ),
            (self.every < 0, "--eval.every must not be negative"),
            (self.every > 0 and not self.enabled, "--eval.every needs --eval.enabled"),
            (self.resamples < 1, "--eval.resamples must be at least 1"),
        )
        check_temperature(self.temperature or 0.0, "--eval.temperature")
        check_resamples(self.resamples, "--eval.resamples")


@dataclass(frozen=True)
class RunSettings:
    """The run itself."""

    steps: int = 330
    """Training steps."""
    tokens: int = 0
    """Stop early, after the step in which the trained roles have sampled this many tokens, to
    compare systems at equal cost; 0: --steps decides."""
    seed: int = 0
    """Seed of everything random."""
    run_dir: Path | None = None
    """Folder of the run, new or empty. Default: runs/ENV-ALGO-TIME."""
    checkpoint_every: int = 1
    """Steps between checkpoints."""
    keep_checkpoints: int = 2
    """Number of checkpoints to keep; older ones are deleted."""
    group_by: str | None = None
    """Key of the groups in which traces are compared; default: the environment's."""
    engine: Literal["local", "vllm"] = "local"
    """What samples from models: this process, or vLLM engines in processes of their own."""
    doctor: bool = False
    """Test this configuration in a minute instead of training."""
    plan: bool = False
    """Print memory and time of this run instead of training, from each model's config.json alone;
    needs no weights and no GPU."""
    card: float | None = None
    """GiB of each GPU for --plan; default: those of this machine."""
    threads: int = 0
    """CPU threads for tensor operations; 0: as many as are idle while the models load. Models below
    8 MiB take one."""
    episodes_log: bool = True
    """Write every training episode to episodes.jsonl."""
    transcripts_every: int = 10
    """Steps between sample transcripts in TensorBoard; 0: none."""
    track: tuple[Literal["wandb", "trackio"], ...] = ()
    """Also log metrics and tables of episodes to wandb or trackio; offline without a login."""

    def __post_init__(self) -> None:
        check_literals(self, "--")
        refuse(
            (self.steps < 1, f"--steps is {self.steps}; it must be at least 1"),
            (self.tokens < 0, "--tokens must not be negative; 0 leaves the end to --steps"),
            (self.checkpoint_every < 1, "--checkpoint-every must be at least 1"),
            (self.keep_checkpoints < 1, "--keep-checkpoints must be at least 1"),
            (self.threads < 0, "--threads must not be negative; 0 is one for each core"),
            (self.transcripts_every < 0, "--transcripts-every must not be negative"),
            (
                self.plan and self.doctor,
                "--plan needs no model, --doctor runs the models: use one after the other",
            ),
            (
                self.card is not None and not 0 < self.card < math.inf,
                "--card is the memory of a GPU in GiB: above 0, and finite",
            ),
            (
                self.card is not None and not self.plan,
                "--card is for --plan: a run takes the devices that are there",
            ),
        )
        check_seeds([self.seed])
