"""Settings of a run, apart from its environment and its algorithm.

The docstring of a field is its help text on the command line, and its bounds stand beside it. Each
class refuses values that do not go together.
"""

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

from annotated_types import Ge, Gt, Interval, Le

from coterie.datatypes import UserError, Validated, refuse
from coterie.datatypes.validation import PositiveShare, Seed
from coterie.envs.settings import MOST
from coterie.evaluation.metrics.intervals import MOST_RESAMPLES

MOST_PROBLEMS = 65_536
"""Largest number of problems in one step. Papers take up to 1024; more would take hours."""

MAX_NEW_TOKENS = 256
"""Limit of tokens in an answer, in an environment that sets no limit."""

ProblemsPerStep = Annotated[int, Interval(ge=1, le=MOST_PROBLEMS)]
Resamples = Annotated[int, Interval(ge=1, le=MOST_RESAMPLES)]
_Deadline = Annotated[float | None, Gt(0), Le(math.inf)]


@dataclass(frozen=True)
class RolloutSettings(Validated):
    """Sampling of training episodes."""

    problems_per_step: ProblemsPerStep = 16
    """Problems in one training step."""
    replicas: Annotated[int, Interval(ge=0, le=MOST)] = 0
    """Episodes per problem; 0: the environment's number."""
    temperature: Annotated[float, Gt(0)] = 1.0
    """Sampling temperature."""
    learner_temperature: Annotated[float | None, Gt(0)] = None
    """Temperature of the learner's probabilities; default: the sampling temperature, which
    importance ratios need. The papers take 1 at any sampling temperature."""
    top_p: PositiveShare = 1.0
    """Nucleus sampling; 1 is off. Other values bias the importance ratios."""
    top_k: Annotated[int, Ge(0)] = 0
    """Sample from the k most likely tokens; 0 is off."""
    max_prompt_tokens: Annotated[int | None, Ge(1)] = None
    """Leave out training problems with longer prompts, in tokens of any role's model with its chat
    template; default: no limit."""
    concurrency: Annotated[int, Ge(1)] = 1024
    """Episodes that are played at the same time."""
    overlap: bool = False
    """Sample the next step's episodes while the learner updates, with weights one update old; needs
    --engine vllm or tinker."""
    call_deadline_s: _Deadline = None
    """Seconds after which a policy's answer counts as failed; default: no limit. Computation of a
    local model in this process does not count."""
    episode_deadline_s: _Deadline = None
    """Seconds that an episode may wait for its policies; answers still missing then count as
    failed. Computation of a local model in this process does not count."""


@dataclass(frozen=True)
class EvalSettings(Validated):
    """Evaluation on held-out problems, before and after training."""

    enabled: bool = True
    """Evaluate before and after training."""
    every: Annotated[int, Ge(0)] = 0
    """Evaluate after every N steps, too; logged, not in the table. 0: never."""
    temperature: Annotated[float | None, Ge(0)] = None
    """Sampling temperature; default: the training temperature."""
    top_p: PositiveShare | None = None
    """Nucleus sampling; default: the training value."""
    resamples: Resamples = 10_000
    """Bootstrap resamples over problems, for the intervals."""

    def check(self) -> None:
        if self.every and not self.enabled:
            raise UserError("--eval.every needs --eval.enabled")


@dataclass(frozen=True)
class RunSettings(Validated):
    """The run itself."""

    steps: Annotated[int, Ge(1)] = 330
    """Training steps."""
    tokens: Annotated[int, Interval(ge=0, lt=2**63)] = 0
    """Stop early, after the step in which the trained roles have sampled this many tokens, to
    compare systems at equal cost; 0: --steps decides."""
    seed: Seed = 0
    """Seed of everything random."""
    run_dir: Path | None = None
    """Folder of the run, new or empty. Default: runs/ENV-ALGO-TIME."""
    checkpoint_every: Annotated[int, Ge(1)] = 1
    """Steps between checkpoints."""
    keep_checkpoints: Annotated[int, Ge(1)] = 2
    """Number of checkpoints to keep; older ones are deleted."""
    group_by: str | None = None
    """Key of the groups in which traces are compared; default: the environment's."""
    engine: Literal["local", "vllm", "tinker"] = "local"
    """What samples from models: this process, vLLM engines in processes of their own, or a server
    with Tinker's API, which then trains them, too (--tinker.url)."""
    doctor: bool = False
    """Run the doctor's checks on this configuration instead of training."""
    plan: bool = False
    """Print memory and time of this run instead of training. It reads each model's config.json, and
    needs no weights and no GPU."""
    card: Annotated[float | None, Gt(0)] = None
    """GiB of each GPU for --plan; default: those of this machine."""
    threads: Annotated[int, Ge(0)] = 0
    """CPU threads for tensor operations. 0 uses the cores that are idle while models load; models
    below 8 MiB use one thread."""
    episodes_log: bool = True
    """Write every training episode to episodes.jsonl."""
    transcripts_every: Annotated[int, Ge(0)] = 10
    """Steps between sample transcripts in TensorBoard; 0: none."""
    track: tuple[Literal["wandb", "trackio"], ...] = ()
    """Also log metrics and tables of episodes to wandb or trackio; offline without a login."""

    def check(self) -> None:
        refuse(
            (
                self.plan and self.doctor,
                "--plan needs no model, --doctor runs the models: use one after the other",
            ),
            (
                self.engine == "tinker" and (self.plan or self.doctor),
                f"{'--plan' if self.plan else '--doctor'} is about models on this machine, and "
                "--engine tinker has them on a server: leave out one of the two",
            ),
            (
                self.card is not None and not self.plan,
                "--card is for --plan, and a run has the memory of its devices: leave it out",
            ),
        )
