"""The beginning-of-sequence token (BOS), for tokenizers whose files ask for it."""

import json
from pathlib import Path
from typing import Any

_SETTINGS = "tokenizer_config.json"


def asks_for_bos(folder: Path | None) -> bool:
    """Whether the tokenizer's settings in ``folder`` have ``add_bos_token``, which transformers
    ignores beside a ``tokenizer.json``."""
    if folder is None or not (folder / _SETTINGS).is_file():
        return False
    return json.loads((folder / _SETTINGS).read_text("utf-8")).get("add_bos_token") is True


def prepend_bos(tokenizer: Any) -> None:
    """Make a fast tokenizer begin every text with its BOS, also after it is saved. Nothing changes
    if it does so already or has no BOS."""
    from tokenizers.processors import Sequence, TemplateProcessing

    mark, backend = tokenizer.bos_token, tokenizer.backend_tokenizer
    if mark is None or backend.encode("a").ids[:1] == [tokenizer.bos_token_id]:
        return
    front = TemplateProcessing(
        single=f"{mark} $A",
        pair=f"{mark} $A {mark}:1 $B:1",
        special_tokens=[(mark, tokenizer.bos_token_id)],
    )
    before = backend.post_processor
    backend.post_processor = front if before is None else Sequence([before, front])
