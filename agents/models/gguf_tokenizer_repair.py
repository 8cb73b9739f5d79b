"""Repairs the tokenizer that transformers reads from a GGUF file: its pre-tokenizer and its BOS.

A GGUF file names its pre-tokenizer (``tokenizer.ggml.pre``) but does not contain the rules.
transformers knows some of the names, reads all others as GPT-2's, and ignores ``add_bos_token``.
The groups below are those of llama.cpp (``src/llama-vocab.cpp``).
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from coterie.agents.models.bos import prepend_bos
from coterie.agents.models.gguf_header import WAY_OUT
from coterie.datatypes import UserError

_GPT2 = frozenset({"gpt-2", "mpt", "olmo", "phi-2"})
"""Pre-tokenized by GPT-2's rule."""
_SINGLE_DIGITS = frozenset(
    {"codeshell", "command-r", "exaone", "minerva-7b", "refact", "smollm", "starcoder"}
)
"""Pre-tokenized digit by digit, and by GPT-2's rule between digits."""
_WHOLE_WORDS = frozenset(
    {
        *("falcon-h1", "falcon3", "lfm2", "llama-bpe", "llama-v3", "llama3", "midm-2.0", "pixtral"),
        "tekken",
    }
)
"""Words of the vocabulary stay whole, whatever the merges; texts begin with a BOS by default."""
_SENTENCEPIECE, _BYTES = "llama", "gpt2"


def check_tokenizer(path: Path, metadata: Mapping[str, Any]) -> None:
    """Refuse a tokenizer that cannot be read as its model was trained with it.

    Raises:
        UserError: names the file and the reason.
    """
    kind, cut = metadata.get("tokenizer.ggml.model"), metadata.get("tokenizer.ggml.pre")
    if kind is None or not isinstance(metadata.get("tokenizer.ggml.tokens"), int):
        raise UserError(f"{path} holds no tokenizer; {WAY_OUT}")
    if kind not in (_SENTENCEPIECE, _BYTES):
        raise UserError(
            f"{path} has a tokenizer of the kind {kind!r}, not llama or gpt2; {WAY_OUT}"
        )
    if kind == _BYTES and cut not in _known_cuts():
        raise UserError(
            f"{path} has an unknown pre-tokenizer {cut!r} and would be read wrongly; {WAY_OUT}"
        )
    spaceless = metadata.get("tokenizer.ggml.add_space_prefix") is False
    if kind == _SENTENCEPIECE and spaceless and not _is_gemma(metadata):
        raise UserError(
            f"{path} puts no space before its texts, and would be read wrongly; {WAY_OUT}"
        )


def repair_tokenizer(tokenizer: Any, metadata: Mapping[str, Any]) -> None:
    """Set the pre-tokenizer and the BOS of transformers' ``tokenizer`` by the file's metadata."""
    from tokenizers import pre_tokenizers

    backend, cut = tokenizer.backend_tokenizer, metadata.get("tokenizer.ggml.pre")
    if metadata["tokenizer.ggml.model"] == _BYTES:
        if cut in _SINGLE_DIGITS:
            backend.pre_tokenizer = pre_tokenizers.Sequence(
                [
                    pre_tokenizers.Digits(individual_digits=True),
                    pre_tokenizers.ByteLevel(add_prefix_space=False),
                ]
            )
        if cut in _WHOLE_WORDS:
            model = backend.model
            model.ignore_merges = True
            backend.model = model
    if _begins(metadata):
        prepend_bos(tokenizer)


def _begins(metadata: Mapping[str, Any]) -> bool:
    """Whether texts begin with a BOS."""
    sentencepiece = metadata["tokenizer.ggml.model"] == _SENTENCEPIECE
    usual = sentencepiece or metadata.get("tokenizer.ggml.pre") in _WHOLE_WORDS
    return bool(metadata.get("tokenizer.ggml.add_bos_token", usual))


def _is_gemma(metadata: Mapping[str, Any]) -> bool:
    return str(metadata.get("general.architecture")).startswith("gemma")


def _known_cuts() -> frozenset[str]:
    from transformers.integrations.gguf.gguf_tokenizer_mapping import GGUF_PRE_TOKENIZER_SPLITS

    return _GPT2 | _SINGLE_DIGITS | frozenset(GGUF_PRE_TOKENIZER_SPLITS)
