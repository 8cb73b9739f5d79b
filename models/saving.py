"""Full weights to disk, again and again."""

from pathlib import Path
from typing import Any

import torch
from safetensors import safe_open
from safetensors.torch import save_file

from models.bars import without_bars

_WEIGHTS = "model.safetensors"


class CheckpointWriter:
    """Writes one model and its tokenizer in the hub's format.

    Transformers writes the first checkpoint. What training does not change (configuration and
    tokenizer, three quarters of the work for a tiny model) is then copied into every later one,
    which gets its weights straight from the model, where the file has them under the model's own
    names; architectures that are stored in another form, or in several files, go on as they began.
    """

    def __init__(self, module: Any, tokenizer: Any) -> None:
        self._module = module
        self._tokenizer = tokenizer
        self._constant: dict[str, bytes] | None = None
        """File name -> content, once it is known that weights can be written straight."""
        self._names: list[str] = []

    def write(self, folder: Path) -> None:
        """Fill ``folder``, which is there; files of an earlier checkpoint are written over."""
        if self._constant is None:
            with without_bars():
                self._module.save_pretrained(folder)
            self._tokenizer.save_pretrained(folder)
            self._remember(folder)
            return
        for name, content in self._constant.items():
            # Left alone where it stands already: a file that is written again must be synced again.
            if not ((folder / name).is_file() and (folder / name).read_bytes() == content):
                (folder / name).write_bytes(content)
        state = self._module.state_dict()
        weights = {name: state[name].contiguous() for name in self._names}
        save_file(weights, folder / _WEIGHTS, metadata={"format": "pt"})

    def _remember(self, folder: Path) -> None:
        if not (folder / _WEIGHTS).is_file():
            return
        state = self._module.state_dict()
        with safe_open(folder / _WEIGHTS, "pt") as stored:
            # A tied head is stored once.
            self._names = sorted(stored.keys())
            straight = all(
                name in state and _same(stored.get_tensor(name), state[name].cpu())
                for name in self._names
            )
        if straight:
            self._constant = {
                path.name: path.read_bytes()
                for path in folder.iterdir()
                if path.is_file() and path.suffix != ".safetensors"
            }


def _same(stored: torch.Tensor, own: torch.Tensor) -> bool:
    return stored.dtype == own.dtype and torch.equal(stored, own)
