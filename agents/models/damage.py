"""Checks for damaged files of models; each error is one sentence that names the file."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import torch
from safetensors import safe_open
from torch import Tensor

from coterie.agents.models.checksums import NAME, changed_files
from coterie.datatypes import UserError


@contextmanager
def in_one_sentence(what: str) -> Iterator[None]:
    """Turn any exception inside the block into one sentence.

    Raises:
        UserError: ``what``, with the exception's type and first line.
    """
    try:
        yield
    except UserError:
        raise
    except Exception as error:
        first = str(error).strip().replace(":\n", ": ").partition("\n")[0]
        reason = " ".join(first.split())[:200]
        raise UserError(f"{what} ({type(error).__name__}: {reason})") from error


def check_sums(folder: Path) -> None:
    """Refuse changed files in a folder with checksums.

    Raises:
        UserError: names the file.
    """
    if changed := changed_files(folder, new=False):
        raise UserError(
            f"{folder / changed[0]} does not match its checksum in {NAME}; take another copy of "
            f"that folder, or delete {NAME} if the change is intended"
        )


def all_finite(tensor: Tensor) -> bool:
    """Whether no element is infinite or NaN."""
    # A sum takes one pass and no memory; a sum of finite numbers can still overflow.
    total = tensor.detach().sum(dtype=torch.float32)
    return bool(torch.isfinite(total)) or bool(torch.isfinite(tensor).all())


def check_finite(tensors: Mapping[str, Tensor], model: str, folder: Path | None) -> None:
    """Refuse weights that are infinite or NaN, whose model would only answer noise.

    Args:
        tensors: by their names in memory.
        model: the user's name of the model.
        folder: the folder of a local model.

    Raises:
        UserError: names the file and the tensor.
    """
    wrong = next((name for name, tensor in tensors.items() if not all_finite(tensor)), None)
    if wrong is not None:
        found = ((path, name) for path, name, read in _stored(folder) if not all_finite(read()))
        file, name = next(found, (model, wrong))
        raise UserError(
            f"{file}: the weights {name} are not finite; take another copy of that checkpoint"
        )


def check_complete(info: Mapping[str, Any], model: str, folder: Path | None) -> None:
    """Refuse weights that do not match the architecture; missing ones would be random.

    Args:
        info: transformers' ``output_loading_info``.
        model: the user's name of the model.
        folder: the folder of a local model.

    Raises:
        UserError: names the file and the tensors.
    """
    for wrong, stored, wanted in info["mismatched_keys"]:
        file = next((path for path, name, _ in _stored(folder) if name == wrong), model)
        raise UserError(
            f"{file}: the weights {wrong} are of shape {tuple(stored)}, and its config.json wants "
            f"{tuple(wanted)}"
        )
    if lacking := sorted(info["missing_keys"]):
        raise UserError(
            f"the weights of {model!r} do not fit its config.json; missing: "
            f"{', '.join(lacking[:3])}"
        )


def _stored(folder: Path | None) -> Iterator[tuple[Path, str, Callable[[], Tensor]]]:
    """Yield (file, name, a function that reads it) of each tensor of a checkpoint."""
    for path in sorted(folder.glob("*.safetensors")) if folder else ():
        with safe_open(path, "pt") as file:
            for name in sorted(file.keys()):
                yield path, name, partial(file.get_tensor, name)
