"""Token ids of the log as text, token by token, with the tokenizers that the run itself used."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from coterie.agents.models.locate import local_folder
from coterie.agents.models.spec import ModelSpec
from coterie.datatypes import UserError
from coterie.experts.naming import is_player

_FILE = "tokenizer.json"
_LONGEST_CHARACTER = 4
"""Bytes, and so tokens, that one character of UTF-8 can take."""


class RoleTokenizers:
    """Roles' ids as text. A role whose tokenizer is not at hand is in ``missing``."""

    def __init__(self, run: Path, agents: Mapping[str, Any]) -> None:
        """Find tokenizers without loading weights and without a network.

        Args:
            run: the run's directory; a trained model stored there has its tokenizer.
            agents: role -> its settings, of the run's configuration.
        """
        self.missing: set[str] = set()
        self._run = run
        self._models = {
            role: settings["model"]
            for role, settings in agents.items()
            if isinstance(settings, Mapping) and isinstance(settings.get("model"), str)
        }
        self._loaded: dict[str, Any] = {}

    def tokens(self, role: str, ids: Sequence[int]) -> list[str] | None:
        """The text of each id, special tokens included; None without the role's tokenizer.

        A character that takes several tokens stands at its last one.
        """
        tokenizer = self._tokenizer(role)
        return None if tokenizer is None else token_texts(tokenizer, ids)

    def agrees(self, role: str, ids: Sequence[int], texts: Sequence[str]) -> bool:
        """Whether what was sampled decodes to what was logged: a tokenizer that has been replaced
        since would tell something else, and nobody would notice."""
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
            # Whoever has no model of its own speaks the vocabulary of the first role that has.
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
            # The library has no error of its own; a file that it cannot read is as good as none.
            return None


def token_texts(tokenizer: Any, ids: Sequence[int]) -> list[str]:
    """Each id's text in its context (spaces, characters of several tokens)."""
    from tokenizers.decoders import DecodeStream

    texts: list[str] = []
    stream, pending = DecodeStream(skip_special_tokens=False), 0
    for place, token in enumerate(ids):
        pending += 1
        try:
            text, stuck = stream.step(tokenizer, token), pending >= _LONGEST_CHARACTER
        except Exception:
            # The library's word for bytes that are no text at all.
            text, stuck = None, True
        if text is None and (stuck or place == len(ids) - 1):
            text = tokenizer.decode(list(ids[place + 1 - pending : place + 1]))
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
