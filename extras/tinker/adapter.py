"""Downloads an adapter from a server, in peft's format."""

import io
import json
import tarfile
from pathlib import Path

import httpx2
from safetensors import SafetensorError, safe_open

from coterie.datatypes import UserError
from coterie.extras.tinker.service import Service

_MOST_BYTES = 8 << 30
_FILES = ("adapter_config.json", "adapter_model.safetensors")
NOTE = "adapter-not-given.txt"


def fetch_adapter(service: Service, path: str, folder: Path) -> None:
    """Write the adapter of the state at ``path`` into ``folder``; a note, if the server does not
    give it out."""
    try:
        content = _archive(service, path)
        _unpack(content, folder)
    except (
        *(UserError, httpx2.HTTPError, tarfile.TarError, OSError, ValueError, SafetensorError),
    ) as error:
        (folder / NOTE).write_text(
            f"The server at {service.url} does not give out the adapter ({error}).\n"
            f"Its state there is {path}.\n",
            encoding="utf-8",
        )


def _archive(service: Service, path: str) -> bytes:
    rest = service.client.create_rest_client()
    limit = min(service.limit_s, 600.0)
    future = rest.get_checkpoint_archive_url_from_tinker_path(path)
    url = service.wait("give out the adapter", future).url
    with httpx2.stream("GET", url, timeout=limit, follow_redirects=True) as answer:
        answer.raise_for_status()
        parts, size = [], 0
        for part in answer.iter_bytes():
            parts.append(part)
            if (size := size + len(part)) > _MOST_BYTES:
                raise ValueError("it is larger than 8 GiB")
    return b"".join(parts)


def _unpack(content: bytes, folder: Path) -> None:
    """Write the two files of an adapter; nothing else of the archive is looked at."""
    found: dict[str, bytes] = {}
    with tarfile.open(fileobj=io.BytesIO(content)) as archive:
        for entry in archive:
            name = Path(entry.name).name
            source = archive.extractfile(entry) if entry.isfile() and name in _FILES else None
            if source is not None:
                found[name] = source.read()
    if missing := [name for name in _FILES if name not in found]:
        raise ValueError(f"its archive has no {missing[0]}")
    json.loads(found[_FILES[0]])
    for name in _FILES:
        (folder / name).write_bytes(found[name])
    try:
        with safe_open(folder / _FILES[1], "np"):
            pass
    except SafetensorError:
        for name in _FILES:
            (folder / name).unlink()
        raise
