"""GGUF files: each is converted to a checkpoint in the hub's format once, and kept in the cache."""

import os
import shutil
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path

from filelock import FileLock

from coterie.agents.models.cache import converted_folder
from coterie.agents.models.checksums import file_sha256
from coterie.agents.models.gguf_header import WAY_OUT, GgufHeader, read_header
from coterie.agents.models.gguf_tokenizer_repair import check_tokenizer
from coterie.datatypes import UserError, user_path

_FORM = 2
"""Version of the conversion; it increases when the result for a file changes."""


def gguf_file(name: str) -> Path | None:
    """Return ``name`` as a path if it is an existing GGUF file, else None.

    Raises:
        UserError: no file can have that name.
    """
    path = user_path(name)
    return path if path.suffix.lower() == ".gguf" and path.is_file() else None


def is_quantized(name: str) -> bool:
    """Whether ``name`` is a GGUF file whose weights are rounded in blocks.

    Raises:
        UserError: the file has no header that can be read.
    """
    path = gguf_file(name)
    return path is not None and _is_rounded(path)


@lru_cache
def _is_rounded(path: Path) -> bool:
    return read_header(path).quantized


def check_gguf(path: Path) -> GgufHeader:
    """Check the header of a GGUF file without reading weights.

    Raises:
        UserError: the package gguf is missing; the file is damaged, truncated, one of several
            parts, or of an unsupported kind.
    """
    if find_spec("gguf") is None:
        raise UserError(f'{path} cannot be read without an extra: pip install -e ".[gguf]"')
    from transformers.modeling_gguf_pytorch_utils import GGUF_SUPPORTED_ARCHITECTURES

    header = read_header(path)
    metadata, kind = header.metadata, header.metadata.get("general.architecture")
    if metadata.get("split.count", 1) not in (0, 1):
        raise UserError(
            f"{path} is one of {metadata['split.count']} parts; join them with llama.cpp's "
            "gguf-split --merge"
        )
    known = sorted(set(GGUF_SUPPORTED_ARCHITECTURES) - {"general", "tokenizer"})
    if kind not in known or metadata.get("general.type", "model") != "model":
        what = kind if kind not in known else metadata["general.type"]
        raise UserError(f"{path} holds {what!r}; what can be read: models of {', '.join(known)}")
    if metadata.get(f"{kind}.rope.scaling.type", "none") != "none":
        raise UserError(f"{path} has a scaled rotary embedding, which is not supported; {WAY_OUT}")
    check_tokenizer(path, metadata)
    _check_whole(path, header)
    return header


def _check_whole(path: Path, header: GgufHeader) -> None:
    from gguf import GGML_QUANT_SIZES, GGMLQuantizationType

    for tensor in header.tensors:
        try:
            per_block, size = GGML_QUANT_SIZES[GGMLQuantizationType(tensor.kind)]
        except (KeyError, ValueError):
            raise UserError(f"{path}: {tensor.name} is of an unknown type; {WAY_OUT}") from None
        end = header.data_start + tensor.offset + tensor.elements // per_block * size
        if end > header.size:
            raise UserError(
                f"{path} is cut short: {tensor.name} ends at byte {end:,} of {header.size:,}; "
                "fetch the file again"
            )


def converted(path: Path) -> Path:
    """Return the folder with a GGUF file's model as an ordinary checkpoint.

    The first call writes it, named after the file's SHA-256: atomically, and in only one of several
    processes. It takes half a minute for 270 million weights, which a line on stderr announces.
    :func:`coterie.agents.models.gguf_convert.convert` describes the number formats.

    Raises:
        UserError: see :func:`check_gguf`; or the cache cannot be written, or weights would be lost.
    """
    state = path.stat()
    digest = _digest(path.resolve(), state.st_size, state.st_mtime_ns)
    folder = converted_folder() / f"{digest}-{_FORM}"
    if folder.is_dir():
        return folder
    header = check_gguf(path)
    # Imports transformers and gguf.
    from coterie.agents.models.gguf_convert import convert

    draft = folder.with_name(folder.name + ".part")
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        with FileLock(folder.with_name(folder.name + ".lock")):
            if not folder.is_dir():
                shutil.rmtree(draft, ignore_errors=True)  # left by a process that was killed
                try:
                    draft.mkdir()
                    convert(path, header, draft)
                    _sync(draft)
                    draft.rename(folder)
                finally:
                    shutil.rmtree(draft, ignore_errors=True)
    except OSError as error:
        raise UserError(
            f"{path} cannot be converted into {folder.parent} ({error.strerror or error}); "
            "XDG_CACHE_HOME names another place"
        ) from error
    return folder


@lru_cache
def _digest(path: Path, size: int, changed_ns: int) -> str:
    return file_sha256(path)


def _sync(folder: Path) -> None:
    for path in folder.iterdir():
        with path.open("rb+") as file:
            os.fsync(file.fileno())
