"""Loads the tokenizer of a model."""

from pathlib import Path
from typing import Any

from coterie.agents.models.bos import asks_for_bos, prepend_bos
from coterie.agents.models.locate import hub_snapshot, local_folder
from coterie.agents.models.spec import ModelSpec


def load_tokenizer(spec: ModelSpec) -> Any:
    """Load the tokenizer of a model.

    Raises:
        UserError: it cannot be loaded.
    """
    # What takes time to import waits until a tokenizer is needed.
    from transformers import AutoTokenizer

    from coterie.agents.models.damage import in_one_sentence
    from coterie.agents.models.process import quietly

    folder = local_folder(spec)
    name, common = source_of(spec, folder)
    with (
        quietly(bars=folder is None),
        in_one_sentence(f"the tokenizer of {spec.model!r} cannot be loaded"),
    ):
        # With mistral-common, which vLLM installs, Mistral would get a slow tokenizer.
        tokenizer = AutoTokenizer.from_pretrained(name, mistral_format=False, **common)
        if asks_for_bos(folder or hub_snapshot(spec)):
            prepend_bos(tokenizer)
    return tokenizer


def source_of(spec: ModelSpec, folder: Path | None) -> tuple[str, dict[str, Any]]:
    """The name and the arguments with which transformers finds the files of a model."""
    common: dict[str, Any] = {"trust_remote_code": spec.trust_remote_code}
    if folder is None:
        return spec.model, common | {"revision": spec.revision}
    # Adapters store the name, and are read from other working directories.
    return str(folder.absolute()), common | {"local_files_only": True}
