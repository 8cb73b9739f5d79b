"""Stored responses: sampled once, then scored as often as one likes."""

import hashlib
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from vocabulary import UserError

Responses = dict[str, Any]
"""``correct``, ``confidence``, ``prompt``, ``output``, ``probability``, ``answer`` and ``text``:
one list per question, with one value per response."""


class Store:
    """Responses of models to questions, one file per (model, questions, sampling)."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def get(self, name: str, what: Mapping[str, Any], sample: Callable[[], Responses]) -> Responses:
        """The responses described by ``what`` (plain data); sampled if they are not there yet.

        A file appears whole or not at all, so that a kill costs the pass in flight and no more.
        """
        key = hashlib.sha256(json.dumps(what, sort_keys=True).encode()).hexdigest()[:16]
        path = self.folder / f"{name}-{key}.json"
        if path.is_file():
            try:
                return json.loads(path.read_text(encoding="utf-8"))["responses"]
            except (ValueError, KeyError):
                raise UserError(f"{path} is damaged; delete it to sample again") from None
        responses = sample()
        self.folder.mkdir(parents=True, exist_ok=True)
        part = path.with_suffix(".part")
        part.write_text(json.dumps({"what": dict(what), "responses": responses}), encoding="utf-8")
        part.replace(path)
        return responses


def fingerprint(folder: Path) -> str:
    """SHA-256 of a model's weights, by which stored responses are told apart."""
    digest = hashlib.sha256()
    for path in sorted(folder.glob("*.safetensors")):
        digest.update(path.name.encode())
        digest.update(path.read_bytes())
    return digest.hexdigest()
