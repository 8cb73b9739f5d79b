"""What a run can be told, apart from its environment and its algorithm.

Each field's docstring is its help text on the command line.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal


@dataclass(frozen=True)
class AgentSettings:
    """One role's model."""

    model: str
    """Hub id, local path, or tiny:NAME for a model that ships with the repository. A frozen role
    may be played by scripted:KIND, server:ADDRESS?model=NAME or pool:ONE|TWO instead."""
    trained: bool = True
    """Whether this role learns; a frozen role only answers."""
    tuning: Literal["auto", "full", "lora"] = "auto"
    """Full weights or LoRA; auto: full for tiny models, LoRA for all others."""
    lora_rank: int = 16
    """Rank of the LoRA update."""
    lora_alpha: int = 32
    """LoRA scale is alpha / rank."""
    chat: Literal["auto", "template", "plain"] = "auto"
    """Prompt through the tokenizer's chat template, or as plain text; auto: if it has one."""
    dtype: Literal["auto", "float32", "bfloat16"] = "auto"
    """Weights' number format; auto: float32 on a CPU, and for full weights that learn, whose
    updates bfloat16 would round away; all others are bfloat16 on a GPU."""
    device: str = "auto"
    """Where the model lives: cpu, cuda, cuda:1, ...; auto: a GPU if there is one."""
    engine_device: str = "auto"
    """Where its vLLM engine runs (--engine vllm): cpu, cuda:0, ...; auto: where the model lives."""
    context: int | None = None
    """Longest context in tokens, prompt and answer together; default: what the model allows."""
    revision: str | None = None
    """Commit, tag or branch on the hub."""
    trust_remote_code: bool = False
    """Run code that comes with the checkpoint. Only for models whose authors you trust."""


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
class ScoringSettings:
    """How answers are checked and texts compared."""

    encoder: Literal["hashed", "minilm"] = "hashed"
    """Text encoder for distances: MiniLM as in the papers, or hashed n-grams, which cost nothing
    beside a tiny model."""
    workers: int = 1
    """Processes that check answers which need algebra; started when first needed."""
    deadline_s: float = 5.0
    """Seconds for one answer; a check that takes longer is killed and counts as wrong."""
    programs: bool = False
    """Run the programs that models write (humaneval, mbppplus, ...) against their tests, without
    files, network or other processes. Linux only; without it such problems are refused."""
    program_deadline_s: float = 10.0
    """Seconds for one program and all of its tests; then it is killed and counts as wrong."""
    program_memory_mb: int = 1024
    """Memory of one program."""
    judge: str = ""
    """Who grades answers that no rule can compare (simpleqa, hle): a model, server:..., pool:...
    or scripted:..., as for --agents.ROLE.model. Without it such problems are refused."""
    judge_max_new_tokens: int = 256
    """Longest reply of the judge; a grade that does not fit is none."""


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
