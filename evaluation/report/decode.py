"""Decode the log's token ids one by one, with the tokenizers of the run."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from coterie.agents.models.locate import local_folder
from coterie.agents.models.spec import ModelSpec
from coterie.datatypes import UserError
from coterie.experts.naming import is_player

_FILE = "tokenizer.json"
_LONGEST_CHARACTER = 4
"""Bytes of one character in UTF-8, and so at most as many tokens."""


class RoleTokenizers:
    """Decodes token ids by role; ``missing`` has the roles without a tokenizer here."""

    def __init__(self, run: Path, agents: Mapping[str, Any]) -> None:
        """Find tokenizers without loading weights and without a network.

        Args:
            run: the run's directory; trained models in it have their tokenizers.
            agents: role -> settings, from the run's configuration.
        """
        self.missing: set[str] = set()
        self._run = run
        self._models = {role: settings["model"] for role, settings in agents.items()}
        self._loaded: dict[str, Any] = {}

    def tokens(self, role: str, ids: Sequence[int]) -> list[str] | None:
        """The text of each id, special tokens included; None without the role's tokenizer.

        A character of several tokens stands at the last of them.
        """
        tokenizer = self._tokenizer(role)
        return None if tokenizer is None else token_texts(tokenizer, ids)

    def agrees(self, role: str, ids: Sequence[int], texts: Sequence[str]) -> bool:
        """Whether sampled ids decode to the logged texts.

        They do not if the tokenizer has been replaced since the run.
        """
        tokenizer = self._tokenizer(role)
        if tokenizer is None:
            return False
        logged = _squeeze("".join(texts))
        ways = ((ids, True), (ids, False), (ids[:-1], False))
        return not logged or any(
            _squeeze(tokenizer.decode(list(sampled), skip_special_tokens=skip)) in logged
            for sampled, skip in ways
        )

    def _tokenizer(self, role: str) -> Any:
        if role not in self._loaded:
            self._loaded[role] = self._load(role)
            if self._loaded[role] is None:
                self.missing.add(role)
        return self._loaded[role]

    def _load(self, role: str) -> Any:
        model = self._models.get(role)
        if model is None or is_player(model):
            # A role without a model uses the tokenizer of the first role with one.
            role = next((r for r, m in self._models.items() if not is_player(m)), "")
            model = self._models.get(role)
        file = self._run / "final" / role / _FILE
        if not file.is_file() and model is not None:
            file = _of_model(model)
        if file is None or not file.is_file():
            return None
        from tokenizers import Tokenizer

        try:
            return Tokenizer.from_file(str(file))
        except Exception:
            # tokenizers has no exception class; an unreadable file counts as missing.
            return None


def token_texts(tokenizer: Any, ids: Sequence[int]) -> list[str]:
    """The text of each id in its context: spaces, and characters of several tokens."""
    from tokenizers.decoders import DecodeStream

    texts: list[str] = []
    stream, pending = DecodeStream(skip_special_tokens=False), 0
    for index, token in enumerate(ids):
        pending += 1
        try:
            text, stuck = stream.step(tokenizer, token), pending >= _LONGEST_CHARACTER
        except Exception:
            # The library raises for bytes that are not UTF-8.
            text, stuck = None, True
        if text is None and (stuck or index == len(ids) - 1):
            text = tokenizer.decode(list(ids[index + 1 - pending : index + 1]))
            stream = DecodeStream(skip_special_tokens=False)
        if text is not None:
            pending = 0
        texts.append(text or "")
    return texts


def _of_model(model: str) -> Path | None:
    """The tokenizer file of a model on this machine."""
    try:
        folder = local_folder(ModelSpec(model))
    except UserError:
        return None
    if folder is not None:
        return folder / _FILE
    from huggingface_hub import try_to_load_from_cache

    cached = try_to_load_from_cache(model, _FILE)
    return Path(cached) if isinstance(cached, str) else None


def _squeeze(text: str) -> str:
    return "".join(text.split())
