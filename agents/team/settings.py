"""Who plays a role, and who grades answers.

Each field's docstring is its help text on the command line.
"""

from dataclasses import dataclass
from typing import Annotated, Literal

import tyro
from annotated_types import Ge, Interval

from coterie.agents.models.spec import MOST_RANK
from coterie.algorithms import Algorithm, LearnerSettings
from coterie.cli.text_or_file import TextOrFile
from coterie.datatypes import Needs, Validated, idle_fields, refuse
from coterie.datatypes.validation import PositiveShare


@dataclass(frozen=True)
class AgentSettings(Validated):
    """The model that plays a role."""

    model: str
    """Hub id, local folder, GGUF file, or tiny:NAME for a model that ships with the repository. A
    frozen role may be played by scripted:KIND, server:ADDRESS?model=NAME or pool:ONE|TWO
    instead, and outside of training by human:, which asks in the terminal."""
    trained: bool = True
    """Train this role; a frozen role only answers."""
    temperature: Annotated[float | None, Ge(0)] = None
    """Sampling temperature of this role; default: --rollout.temperature. In an evaluation
    --eval.temperature comes first."""
    top_p: PositiveShare | None = None
    """Nucleus sampling of this role; default: --rollout.top-p. In an evaluation --eval.top-p comes
    first."""
    warmup: str = ""
    """Worked solutions that this role alone imitates (--warmup.steps), in place of
    --warmup.problems; the word none: no imitation."""
    tuning: Literal["auto", "full", "lora"] = "auto"
    """Full weights or LoRA; auto: full for tiny models, LoRA for all others."""
    lora_rank: Annotated[int, Interval(ge=1, le=MOST_RANK)] = 16
    """Rank of the LoRA update."""
    lora_alpha: Annotated[int, Ge(1)] = 32
    """LoRA scale is alpha / rank."""
    lora_targets: tuple[str, ...] = ()
    """Linear layers with an adapter, by the last part of their names, or all-linear for all but the
    head; default: the attention and feed-forward projections of Llama, else all-linear."""
    chat: Literal["auto", "template", "plain"] = "auto"
    """How prompts are written: through the tokenizer's chat template, or as plain text; auto: the
    template if there is one."""
    system: TextOrFile = ""
    """System message at the beginning of every context of this role: a text, or @FILE for a text
    file; empty: what the chat template writes by itself. Needs a template with a system role; a
    role that server:... plays sends it along."""
    dtype: Literal["auto", "float32", "bfloat16", "int8", "nf4"] = "auto"
    """Number format of the computation; auto: bfloat16 on a GPU, and on a CPU that multiplies in it
    for weights above 8 MiB, else float32. Full weights that learn are always stored in float32,
    since bfloat16 would round their updates away. int8: the base of LoRA, or a frozen model, stores
    and multiplies 8 bits a weight, on a CPU; auto does so with a quantized GGUF file if the CPU has
    avx512_vnni or avx_vnni but no bfloat16. nf4: as auto, with 4 bits a weight (QLoRA,
    arXiv:2305.14314); pip install -e ".[nf4]"."""
    recompute: Literal["auto", "always", "never"] = "auto"
    """Recompute activations in the backward pass to save memory (activation checkpointing); auto:
    where those of a micro-batch would exceed 2 GiB. On a CPU auto makes micro-batches smaller
    instead, if each row fits."""
    device: str = "auto"
    """Device of the model: cpu, cuda, cuda:1, ...; auto: a GPU if there is one."""
    engine_device: str = "auto"
    """Device of its vLLM engine (--engine vllm): cpu, cuda:0, ...; auto: the device of the
    model."""
    engine_replicas: Annotated[int, Ge(0)] = 0
    """Number of processes that sample from this model. 0: the learner's process samples; with
    --engine vllm, one engine on the learner's device."""
    learner_devices: Annotated[int, Ge(1)] = 1
    """Devices over which its learner is sharded (FSDP2), with a process each. Roles that share a
    base take the largest of their numbers."""
    tensor_parallel: Annotated[int, Ge(1)] = 1
    """GPUs of one machine over which its vLLM engine is spread (--engine vllm), from engine-device
    on."""
    context: Annotated[int | None, Ge(2)] = None
    """Longest context in tokens, prompt and answer together; default: the model's own limit."""
    revision: str | None = None
    """Commit, tag or branch on the hub."""
    trust_remote_code: bool = False
    """Run code that comes with the checkpoint. Only for models whose authors you trust."""
    # training/config/role_learning.py parses the flags of these three; local_backend.py uses them.
    algorithm: tyro.conf.Fixed[str] = ""
    """Name of the algorithm of this role (--agents.ROLE.algo NAME); default: --algo."""
    algo: tyro.conf.Fixed[Algorithm | None] = None
    """Settings of its algorithm (--agents.ROLE.algo.*) if they differ from --algo.*."""
    learner: tyro.conf.Fixed[LearnerSettings | None] = None
    """Settings of its learner (--agents.ROLE.learner.*) if they differ from --learner.*."""

    def learner_at(self, role: str) -> str:
        """What the flags of the learner of ``role``, whose settings these are, begin with."""
        return f"--agents.{role}.learner." if self.learner else "--learner."

    def check(self) -> None:
        given = self.temperature is not None or self.top_p is not None
        refuse(
            (
                given and self.model.startswith(("scripted:", "human:")),
                f"{self.model} samples nothing: leave out --agents.ROLE.temperature and top-p",
            ),
            (
                self.temperature == 0 and self.trained,
                "--agents.ROLE.temperature must be above 0 for a role that learns: it has to "
                "explore; or freeze it with --agents.ROLE.no-trained",
            ),
            (
                bool(self.system) and self.chat == "plain",
                "--agents.ROLE.system needs the chat template, which --agents.ROLE.chat plain does "
                "not use: leave out one of the two, or write the text into the environment's "
                "prompt",
            ),
        )


@dataclass(frozen=True)
class ScoringSettings(Validated):
    """Checking of answers and comparison of texts."""

    checker: str = "default"
    """What decides whether an answer is right: default, math-verify for kinds math, number and
    list, or a function of yours for every kind, pkg.module:function, which gets (answer, problem)
    and gives true, false or a number from 0 to 1. It runs in processes of its own."""
    encoder: Literal["hashed", "minilm"] = "hashed"
    """Text encoder for distances: MiniLM as in the papers, or hashed n-grams, which need no
    model."""
    workers: Annotated[int, Ge(1)] = 1
    """Processes for answers that need algebra, or for the checker, started on demand."""
    deadline_s: Annotated[float, Interval(gt=0, le=86_400)] = 5.0
    """Seconds for one answer; a longer check is killed and counts as wrong."""
    programs: bool = False
    """Run the programs that models write (humaneval, mbppplus, ...) against their tests, without
    files, network or other processes. Linux only; without it such problems are refused."""
    program_deadline_s: Annotated[float, Interval(gt=0, le=86_400), Needs("programs")] = 10.0
    """Seconds for one program and all of its tests; a longer run is killed and counts as wrong."""
    program_memory_mb: Annotated[int, Ge(64), Needs("programs")] = 1024
    """Memory of one program in MiB."""
    judge: str = ""
    """Model that grades answers which no rule can compare (simpleqa, hle): as for
    --agents.ROLE.model, or server:..., pool:... or scripted:.... Without it such problems are
    refused."""
    judge_max_new_tokens: Annotated[int, Ge(1), Needs("judge")] = 256
    """Longest reply of the judge; a grade beyond it does not count."""

    def check(self) -> None:
        refuse(*idle_fields(self, "scoring"))
        if self.checker != "default":
            # What takes time to import waits until it is needed.
            from coterie.rewards.grading.checkers import check_name

            check_name(self.checker)
