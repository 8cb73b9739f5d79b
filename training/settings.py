"""What a run can be told, apart from its environment and its algorithm.

Each field's docstring is its help text on the command line; each class refuses values that cannot
work.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from coterie.datatypes import UserError, check_literals, check_numbers, refuse
from coterie.datatypes.missing_extras import check_fields_of_extras, of_extra
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
"""What an environment that sets no limit of its own lets an agent write."""


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
    max_prompt_tokens: int | None = None
    """Training problems whose prompt is longer, in tokens of any role's model and by its chat
    template, are left out before the run begins, and counted; default: none are."""
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
    """Also evaluate after every so many steps (logged, not in the table); 0: never."""
    temperature: float | None = None
    """Sampling temperature; default: the training temperature."""
    top_p: float | None = None
    """Nucleus filter; default: the training one."""
    resamples: int = 10_000
    """Bootstrap resamples over problems for the intervals."""

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
    doctor: bool = of_extra("ops", False)
    """Check this configuration in a minute instead of training it."""
    plan: bool = of_extra("ops", False)
    """Say what this run would take on each device, and about how long, instead of training it: by
    each model's config.json alone, without weights and without a GPU."""
    card: float | None = of_extra("ops", None)
    """GiB of each GPU that --plan reckons with; default: what is here."""
    threads: int = 0
    """CPU threads for tensor operations; 0: as many as other programs leave free while the models
    are loaded. Models below 8 MiB take one."""
    episodes_log: bool = True
    """Write every training episode to episodes.jsonl."""
    transcripts_every: int = 10
    """Steps between sample transcripts in TensorBoard; 0: none."""
    track: tuple[Literal["wandb", "trackio"], ...] = of_extra("ops", ())
    """Where numbers and tables of episodes go besides: wandb, trackio. Offline without a login."""

    def __post_init__(self) -> None:
        check_literals(self, "--")
        check_fields_of_extras(self, "--")
        refuse(
            (self.steps < 1, f"--steps is {self.steps}; it must be at least 1"),
            (self.tokens < 0, "--tokens must not be negative; 0 leaves the end to --steps"),
            (self.checkpoint_every < 1, "--checkpoint-every must be at least 1"),
            (self.keep_checkpoints < 1, "--keep-checkpoints must be at least 1"),
            (self.threads < 0, "--threads must not be negative; 0 is one for each core"),
            (self.transcripts_every < 0, "--transcripts-every must not be negative"),
            (
                self.plan and self.doctor,
                "--plan reckons without a model, --doctor tries the models: leave out one of the "
                "two, and run it after the other",
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
