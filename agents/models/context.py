"""The longest context of a model, in tokens."""

from typing import Any

from coterie.agents.models.load_tokenizer import source_of
from coterie.agents.models.locate import local_folder
from coterie.agents.models.spec import ModelSpec

_NO_LIMIT = 1 << 20


def context_of(spec: ModelSpec) -> int:
    """Return the longest context of a model whose description is on this disk; reads no weights.

    Raises:
        UserError: its config.json cannot be used, or ``spec.context`` is beyond it.
    """
    # What takes time to import waits until a model is needed.
    from transformers import AutoConfig

    from coterie.agents.models.damage import in_one_sentence

    name, common = source_of(spec, local_folder(spec))
    with in_one_sentence(f"the config.json of {spec.model!r} cannot be used"):
        config: Any = AutoConfig.from_pretrained(name, **common)
    return longest_context(config, spec)


def longest_context(config: Any, spec: ModelSpec) -> int:
    """Return the longest context of a model with transformers' ``config``.

    Raises:
        UserError: ``spec.context`` is beyond it.
    """
    most = getattr(config.get_text_config(), "max_position_embeddings", None) or _NO_LIMIT
    spec.check_context(most)
    return spec.context or most
