"""The conversion of a GGUF file's weights and tokenizer to the format of transformers."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import gguf
import torch
from transformers import (
    AutoModelForCausalLM,
    AutoTokenizer,
    GgufConfig,
    modeling_gguf_pytorch_utils,
)

from coterie.agents.models.cache import SOURCE
from coterie.agents.models.damage import check_complete, in_one_sentence
from coterie.agents.models.gguf_header import WAY_OUT, GgufHeader
from coterie.agents.models.gguf_tokenizer_repair import repair_tokenizer
from coterie.agents.models.process import quietly, replaced
from coterie.agents.models.saving import disk_errors
from coterie.datatypes import UserError


def convert(path: Path, header: GgufHeader, folder: Path) -> None:
    """Write a GGUF file's model and tokenizer into ``folder``, and announce it on stderr.

    Matrices are written in bfloat16 if that changes no value, or if the file is quantized: rounding
    to bfloat16 changes a weight by at most 1/256 of itself, while the finest blocks (Q8_0) have
    changed it by up to 1/254 of the largest weight of its block. Everything else, such as norms and
    biases, is written in float32.

    Raises:
        UserError: transformers cannot read the file, or would lose weights or tokens.
        OSError: the folder cannot be written.
    """
    weights = sum(tensor.elements for tensor in header.tensors)
    print(
        f"{path}: converting it, once, into {folder.parent} "
        f"({weights * (2 if header.quantized else 4) / 1e6:,.0f} MB)",
        file=sys.stderr,
        flush=True,
    )
    with in_one_sentence(f"{path} cannot be read; {WAY_OUT}"):
        tokenizer, module, info = _read(path)
        repair_tokenizer(tokenizer, header.metadata)
    check_complete(info, str(path), None)
    taken = sum(weight.numel() for weight in module.parameters())
    if taken != weights or len(tokenizer) != header.metadata["tokenizer.ggml.tokens"]:
        raise UserError(
            f"{path} holds {weights:,} weights and {header.metadata['tokenizer.ggml.tokens']:,} "
            f"tokens, of which {taken:,} and {len(tokenizer):,} would be read; {WAY_OUT}"
        )
    # transformers refuses to save a model that is marked as quantized.
    if hasattr(module.config, "quantization_config"):
        del module.config.quantization_config
    module.hf_quantizer, module.is_quantized = None, False
    _round_matrices(module, quantized=header.quantized)
    with quietly(), disk_errors(folder):
        module.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    (folder / SOURCE).write_text(f"{path.resolve()}\n", encoding="utf-8")


def _round_matrices(module: torch.nn.Module, *, quantized: bool) -> None:
    """Round matrices to bfloat16 if the file is ``quantized`` or no value changes."""
    matrices = {id(weight): weight for weight in module.parameters() if weight.dim() > 1}.values()
    if quantized or all(torch.equal(w.bfloat16().float(), w) for w in matrices):
        for weight in matrices:
            weight.data = weight.data.bfloat16()


def _read(path: Path) -> tuple[Any, Any, Any]:
    """Tokenizer, model, and transformers' ``output_loading_info``."""
    auto: Any = AutoModelForCausalLM
    with TemporaryDirectory() as alone, quietly(), _read_once():
        # transformers would also read other files of the folder.
        (Path(alone) / path.name).symlink_to(path.resolve())
        source: dict[str, Any] = {"gguf_file": path.name, "local_files_only": True}
        tokenizer = AutoTokenizer.from_pretrained(alone, **source)
        module, info = auto.from_pretrained(
            alone,
            dtype=torch.float32,
            quantization_config=GgufConfig(dequantize=True),
            output_loading_info=True,
            ignore_mismatched_sizes=True,
            **source,
        )
    return tokenizer, module, info


@contextmanager
def _read_once() -> Iterator[None]:
    """Cache gguf's reader inside the block: it takes ten seconds for a large vocabulary, and
    transformers calls it repeatedly. Also hide transformers' progress bar, which covers only the
    shortest part of the work."""

    def without_bar(items: Any, **_: Any) -> Any:
        return items

    with (
        replaced(gguf, "GGUFReader", lru_cache(gguf.GGUFReader)),
        replaced(modeling_gguf_pytorch_utils, "tqdm", without_bar),
    ):
        yield
