"""Who plays a role, and who grades answers.

Each field's docstring is its help text on the command line.
"""

from dataclasses import dataclass
from typing import Literal

from coterie.datatypes import check_literals, check_numbers, refuse
from coterie.datatypes.missing_extras import check_fields_of_extras, of_extra


@dataclass(frozen=True)
class AgentSettings:
    """One role's model."""

    model: str
    """Hub id, local folder, GGUF file, or tiny:NAME for a model that ships with the repository. A
    frozen role may be played by scripted:KIND, server:ADDRESS?model=NAME or pool:ONE|TWO
    instead."""
    trained: bool = True
    """Whether this role learns; a frozen role only answers."""
    warmup: str = ""
    """Worked solutions that this role alone imitates before reward training (--warmup.steps), in
    place of --warmup.problems; none: it imitates nothing."""
    tuning: Literal["auto", "full", "lora"] = "auto"
    """Full weights or LoRA; auto: full for tiny models, LoRA for all others."""
    lora_rank: int = 16
    """Rank of the LoRA update."""
    lora_alpha: int = 32
    """LoRA scale is alpha / rank."""
    lora_targets: tuple[str, ...] = ()
    """Linear layers that get an adapter, by the last part of their names, or all-linear: all but
    the head; none named: the projections of attention and feed-forward where they are called as in
    Llama, else all-linear."""
    chat: Literal["auto", "template", "plain"] = "auto"
    """Prompt through the tokenizer's chat template, or as plain text; auto: if it has one."""
    dtype: Literal["auto", "float32", "bfloat16"] = "auto"
    """What is computed in; auto: bfloat16 on a GPU, and on a CPU whose processor multiplies in it
    for weights above 8 MiB; else float32. Full weights that learn are held in float32 in any case:
    bfloat16 would round their updates away."""
    recompute: Literal["auto", "always", "never"] = "auto"
    """Compute activations once more in the backward pass and keep few of them (activation
    checkpointing); auto: where those of a micro-batch would take more than 2 GiB. On a CPU auto
    makes micro-batches smaller instead, if each row fits."""
    device: str = "auto"
    """Where the model lives: cpu, cuda, cuda:1, ...; auto: a GPU if there is one."""
    engine_device: str = "auto"
    """Where its vLLM engine runs (--engine vllm): cpu, cuda:0, ...; auto: where the model lives."""
    engine_replicas: int = of_extra("cluster", 0)
    """Processes of their own that answer for this model, here or on a cluster; 0: the one in which
    it learns answers too, with --engine vllm by an engine on the same device."""
    learner_devices: int = of_extra("cluster", 1)
    """Devices over which its learner lies in shards (FSDP2), each with a process of its own; a
    base that several roles share is sharded as the largest of theirs says."""
    tensor_parallel: int = 1
    """GPUs of one machine that a vLLM engine of it spans (--engine vllm), from engine-device on."""
    context: int | None = None
    """Longest context in tokens, prompt and answer together; default: what the model allows."""
    revision: str | None = None
    """Commit, tag or branch on the hub."""
    trust_remote_code: bool = False
    """Run code that comes with the checkpoint. Only for models whose authors you trust."""

    def __post_init__(self) -> None:
        check_literals(self)
        check_fields_of_extras(self, "--agents.ROLE.")


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
    programs: bool = of_extra("programs", False)
    """Run the programs that models write (humaneval, mbppplus, ...) against their tests, without
    files, network or other processes. Linux only; without it such problems are refused."""
    program_deadline_s: float = of_extra("programs", 10.0)
    """Seconds for one program and all of its tests; then it is killed and counts as wrong."""
    program_memory_mb: int = of_extra("programs", 1024)
    """Memory of one program."""
    judge: str = ""
    """Who grades answers that no rule can compare (simpleqa, hle): a model, server:..., pool:...
    or scripted:..., as for --agents.ROLE.model. Without it such problems are refused."""
    judge_max_new_tokens: int = 256
    """Longest reply of the judge; a grade that does not fit is none."""

    def __post_init__(self) -> None:
        check_literals(self, "scoring.")
        check_fields_of_extras(self, "--scoring.")
        check_numbers(self, "--scoring.")
        refuse(
            (self.workers < 1, "--scoring.workers must be at least 1"),
            (not self.deadline_s > 0, "--scoring.deadline-s must be above 0"),
            (self.judge_max_new_tokens < 1, "--scoring.judge-max-new-tokens must be at least 1"),
        )
