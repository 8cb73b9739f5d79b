"""The model of a role as plain settings; nothing is loaded here."""

from dataclasses import dataclass
from typing import Annotated, Literal

from annotated_types import Ge, Interval

from coterie.datatypes import UserError, Validated

ChatMode = Literal["auto", "template", "plain"]
DtypeName = Literal["auto", "float32", "bfloat16", "float16", "int8", "nf4"]
IN_CODES = ("int8", "nf4")
"""Those in which frozen linear layers hold codes of 8 or 4 bits."""

ALL_LINEAR = "all-linear"
CHANGE_BASE = ("pissa", "corda", "olora", "loftq", "lora_ga")
"""Initializations of adapters that take from the base what they give to the adapter."""
TINY_BYTES = 8 << 20
"""Weights of a tiny model at most: it computes in float32, on one thread of a CPU."""


MOST_RANK = 4096
"""Above the width of a layer an adapter has more weights than the layer."""


@dataclass(frozen=True)
class LoraSpec(Validated):
    """Low-rank adapters (arXiv:2106.09685) instead of full weights.

    There is no dropout: the ratio of new to old probabilities compares one function with itself.
    """

    rank: Annotated[int, Interval(ge=1, le=MOST_RANK)] = 16
    """Rank of every update."""
    alpha: float = 32.0
    """The update is scaled by alpha / rank."""
    targets: tuple[str, ...] = ()
    """Linear layers that get an adapter, or ``all-linear``: all but the head; none named: the
    projections of attention and feed-forward where they are called as in Llama, else all-linear.
    Where an architecture fuses several of them into one layer (Phi-3), naming all of its parts
    names the fused layer."""
    adapter: str | None = None
    """Folder of an adapter in peft's format to start from; its own settings then hold."""

    def check(self) -> None:
        if ALL_LINEAR in self.targets and len(self.targets) > 1:
            raise UserError(f"LoRA targets are {ALL_LINEAR} or names of layers, not both")


@dataclass(frozen=True)
class ModelSpec(Validated):
    """One role's model.

    Example: ``ModelSpec("Qwen/Qwen2.5-3B-Instruct", lora=LoraSpec(rank=8))``
    """

    model: str
    """A hub id, a local folder in the hub's format, a GGUF file, or ``tiny:NAME`` for a shipped
    checkpoint."""
    lora: LoraSpec | None = None
    """Train low-rank adapters on a frozen base; without, the full weights. Roles that name the
    same model with LoRA share one base in memory."""
    chat: ChatMode = "auto"
    """How messages are rendered: through the tokenizer's chat template, as plain text, or by the
    template where the tokenizer has one."""
    system: str = ""
    """System message of every context; empty: what the template writes by itself."""
    dtype: DtypeName = "auto"
    """What is computed in; auto: bfloat16 on a GPU and on a processor that multiplies in it,
    float32 on others and for tiny models. Weights are held in it too; full weights that learn, in
    float32. int8, nf4: frozen linear layers hold 8 or 4 bits a weight (:mod:`..number_format`)."""
    device: str = "auto"
    """``cpu``, ``cuda``, ``cuda:1``; auto: a GPU if there is one."""
    recompute: Literal["auto", "always", "never"] = "auto"
    """Compute activations once more in the backward pass and keep few (activation checkpointing);
    auto: where those of a micro-batch would take more than 2 GiB."""
    context: Annotated[int | None, Ge(2)] = None
    """Longest context in tokens, prompt and answer together; without, what the model allows."""
    trust_remote_code: bool = False
    """Run modelling code that comes with the checkpoint."""
    revision: str | None = None
    """Branch, tag or commit on the hub."""

    def check_context(self, most: int, at: str = "") -> None:
        """Refuse a ``context`` beyond the model's ``most`` tokens; ``at`` begins its flag."""
        if self.context is not None and self.context > most:
            raise UserError(
                f"{at}context {self.context} is more than the {most} tokens of {self.model!r}; "
                "lower it, or leave it out"
            )
