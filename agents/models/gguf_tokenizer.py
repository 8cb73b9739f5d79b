"""The tokenizer of a GGUF file: its pre-tokenizer and its BOS, as the model was trained with.

A GGUF names the rule by which text is cut before merging (``tokenizer.ggml.pre``) and does not hold
it. transformers knows some of these names and reads every other as GPT-2's; it does not read
``add_bos_token``. The groups are llama.cpp's (``src/llama-vocab.cpp``).
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from coterie.agents.models.gguf_header import WAY_OUT
from coterie.agents.models.start import put_in_front
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
"""Words of the vocabulary are kept whole, whatever the merges; a BOS stands in front by default."""
_SENTENCEPIECE, _BYTES = "llama", "gpt2"


def check_tokenizer(path: Path, metadata: Mapping[str, Any]) -> None:
    """Refuse a tokenizer that would be read differently from how its model was trained.

    Raises:
        UserError: one sentence that names it.
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


def mend(tokenizer: Any, metadata: Mapping[str, Any]) -> None:
    """Set the pre-tokenizer and the BOS of transformers' ``tokenizer`` to what the file says."""
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
        put_in_front(tokenizer)


def _begins(metadata: Mapping[str, Any]) -> bool:
    """Whether a BOS belongs in front of a text."""
    sentencepiece = metadata["tokenizer.ggml.model"] == _SENTENCEPIECE
    usual = sentencepiece or metadata.get("tokenizer.ggml.pre") in _WHOLE_WORDS
    return bool(metadata.get("tokenizer.ggml.add_bos_token", usual))


def _is_gemma(metadata: Mapping[str, Any]) -> bool:
    return str(metadata.get("general.architecture")).startswith("gemma")


def _known_cuts() -> frozenset[str]:
    from transformers.integrations.gguf.gguf_tokenizer_mapping import GGUF_PRE_TOKENIZER_SPLITS

    return _GPT2 | _SINGLE_DIGITS | frozenset(GGUF_PRE_TOKENIZER_SPLITS)
