"""Writes weights during a run: checkpoints of full weights, and safetensors files."""

import json
import os
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import load_file, save, save_file

from coterie.agents.models.process import quietly

_WEIGHTS = "model.safetensors"
_METADATA = {"format": "pt"}
_SMALL = 1 << 26
"""Largest file in bytes that is serialized in memory first."""


@contextmanager
def disk_errors(path: Path) -> Iterator[None]:
    """Turn safetensors' errors of a full or failing disk into :class:`OSError`."""
    try:
        yield
    except SafetensorError as error:
        number = re.search(r"os error (\d+)", str(error))
        if number is None:
            raise
        raise OSError(int(number[1]), os.strerror(int(number[1])), str(path)) from error


def store(tensors: Mapping[str, torch.Tensor], path: Path) -> None:
    """Write safetensors. Small files are overwritten in place, which takes half the time of a new
    file."""
    tensors = {name: tensor.contiguous() for name, tensor in tensors.items()}
    if sum(tensor.nbytes for tensor in tensors.values()) > _SMALL:
        with disk_errors(path):
            save_file(tensors, path, metadata=_METADATA)
        return
    content = save(tensors, metadata=_METADATA)
    with open(os.open(path, os.O_WRONLY | os.O_CREAT, 0o666), "wb") as file:
        file.write(content)
        file.truncate()


def round_checkpoint(folder: Path, dtype: torch.dtype) -> None:
    """Round the weights of a checkpoint, in place."""
    for path in folder.glob("*.safetensors"):
        tensors = load_file(path).items()
        draft = path.with_suffix(".part")
        store({name: t.to(dtype) if t.is_floating_point() else t for name, t in tensors}, draft)
        draft.replace(path)
    config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    config["dtype"] = str(dtype).rpartition(".")[2]
    (folder / "config.json").write_text(json.dumps(config, indent=2), encoding="utf-8")


class CheckpointWriter:
    """Writes a model and its tokenizer in the hub's format.

    transformers writes the first checkpoint. Later ones get copies of the files that training does
    not change (configuration and tokenizer, three quarters of the work for a tiny model), and the
    weights directly from the model. This requires that the file uses the model's names;
    transformers keeps writing architectures that are stored otherwise, or in several files.
    """

    def __init__(self, module: Any, tokenizer: Any) -> None:
        self._module = module
        self._tokenizer = tokenizer
        self._constant: dict[str, bytes] | None = None
        """Path in a checkpoint -> content; None until it is known that weights can be written
        directly."""
        self._names: list[str] = []

    def write(self, folder: Path, state: Mapping[str, torch.Tensor]) -> None:
        """Write a checkpoint.

        Args:
            folder: an existing folder; files of an earlier checkpoint are overwritten.
            state: the model's state, not sharded.
        """
        if self._constant is None:
            with quietly(), disk_errors(folder):
                self._module.save_pretrained(folder, state_dict=state)
            self._tokenizer.save_pretrained(folder)
            self._remember(folder, state)
            return
        for name, content in self._constant.items():
            # An unchanged file is not rewritten, because it would have to be synced again.
            if not ((folder / name).is_file() and (folder / name).read_bytes() == content):
                (folder / name).parent.mkdir(exist_ok=True)  # of additional chat templates
                (folder / name).write_bytes(content)
        store({name: state[name] for name in self._names}, folder / _WEIGHTS)

    def _remember(self, folder: Path, state: Mapping[str, torch.Tensor]) -> None:
        if not (folder / _WEIGHTS).is_file():
            return
        with safe_open(folder / _WEIGHTS, "pt") as stored:
            # A tied head is stored once.
            self._names = sorted(stored.keys())
            direct = all(
                name in state and _same(stored.get_tensor(name), state[name].cpu())
                for name in self._names
            )
        if direct:
            self._constant = {
                str(path.relative_to(folder)): path.read_bytes()
                for path in folder.rglob("*")
                if path.is_file() and path.suffix != ".safetensors"
            }


def _same(stored: torch.Tensor, own: torch.Tensor) -> bool:
    return stored.dtype == own.dtype and torch.equal(stored, own)
