"""Loads the tokenizer of a model alone, for checks before weights are read."""

from typing import Any

from coterie.agents.models.locate import hub_snapshot, local_folder
from coterie.agents.models.spec import ModelSpec


def load_tokenizer(spec: ModelSpec) -> Any:
    """Return the tokenizer of ``spec``, with its chat template.

    Raises:
        UserError: it cannot be loaded.
    """
    # What takes time to import waits until a check needs a tokenizer.
    from transformers import AutoTokenizer

    from coterie.agents.models.damage import in_one_sentence
    from coterie.agents.models.process import quietly

    folder = local_folder(spec) or hub_snapshot(spec)
    with quietly(), in_one_sentence(f"the tokenizer of {spec.model!r} cannot be loaded"):
        return AutoTokenizer.from_pretrained(
            spec.model if folder is None else str(folder),
            mistral_format=False,
            trust_remote_code=spec.trust_remote_code,
        )
