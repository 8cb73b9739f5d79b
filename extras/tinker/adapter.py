"""Downloads an adapter from a server, in peft's format."""

import io
import json
import tarfile
from pathlib import Path
from typing import Any

import httpx2

from coterie.agents.models.locate import ELSEWHERE, has_adapter_weights
from coterie.extras.tinker.learner import ServerWeights
from coterie.extras.tinker.service import Service, one_line

_CONFIG, _WEIGHTS = _FILES = ("adapter_config.json", "adapter_model.safetensors")
_MOST_PER_BYTE = 16
"""Most bytes of a file for each byte of its archive: weights hardly shrink."""


def note_state(service: Service, path: str, folder: Path, why: str = "") -> None:
    """Note in ``folder`` where its weights are, for whoever loads it as a model."""
    (folder / ELSEWHERE).write_text(
        f"they are the state {path} of the server at {service.url}{why}; put its {_CONFIG} and "
        f"{_WEIGHTS} into this folder\n",
        encoding="utf-8",
    )


def fetch_adapter(weights: ServerWeights, name: str, state: str, folder: Path) -> None:
    """Write the adapter into ``folder``; a note, if the server does not give it out.

    Args:
        weights: of a role.
        name: of the copy that is given out: servers do so with weights that sample, not with those
            that learn.
        state: path of the state with the same weights that learn.
        folder: gets the two files.
    """
    service, model = weights.service, weights.model
    try:
        saved = weights.client.save_weights_for_sampler(name)
        path = service.wait(f"save the weights of {model.role}", saved).path
        _unpack(_archive(service, path), folder, model.local_name)
        (folder / ELSEWHERE).unlink(missing_ok=True)
    except Exception as error:  # whatever the server gave out, the run has its result
        for file in _FILES:
            (folder / file).unlink(missing_ok=True)
        reason = one_line(str(error.__cause__ or "") or str(error))
        note_state(service, state, folder, f", which does not give out the adapter ({reason})")


def _archive(service: Service, path: str) -> bytes:
    rest = service.client.create_rest_client()
    limit = min(service.limit_s, 600.0)
    future = rest.get_checkpoint_archive_url_from_tinker_path(path)
    url = service.wait("give out the adapter", future).url
    return httpx2.get(url, timeout=limit, follow_redirects=True).raise_for_status().content


def _unpack(content: bytes, folder: Path, base: str) -> None:
    """Write the two files of an adapter of the model ``base``; nothing else of the archive is
    looked at. No path of it is used, and no link followed."""
    with tarfile.open(fileobj=io.BytesIO(content)) as archive:
        found = {Path(entry.name).name: entry for entry in archive if entry.isfile()}
        for name in _FILES:
            entry = found.get(name)
            source = None if entry is None else archive.extractfile(entry)
            if entry is None or source is None:
                raise ValueError(f"its archive has no {name}")
            if entry.size > _MOST_PER_BYTE * len(content) + 2**20:
                raise ValueError(f"its {name} is larger than its archive can hold")
            (folder / name).write_bytes(source.read())
        # The checksum of a compressed archive is compared at its end.
        assert archive.fileobj is not None
        while archive.fileobj.read(1 << 20):
            pass
    config: Any = json.loads((folder / _CONFIG).read_text(encoding="utf-8"))
    if not isinstance(config, dict) or not has_adapter_weights(folder):
        raise ValueError("it is incomplete")
    # The server's name of the model may say nothing here.
    config["base_model_name_or_path"] = base
    (folder / _CONFIG).write_text(json.dumps(config, indent=2) + "\n", encoding="utf-8")
