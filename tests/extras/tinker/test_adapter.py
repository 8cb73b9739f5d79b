"""An adapter is taken over in peft's format, or a note says where it is."""

import io
import json
import random
import tarfile
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread
from types import SimpleNamespace as record
from typing import Any

import pytest

from coterie.agents.models.locate import ELSEWHERE, check_model, named_adapter
from coterie.agents.models.spec import ModelSpec
from coterie.datatypes import UserError
from coterie.extras.tinker.adapter import fetch_adapter
from tests.extras.tinker.conftest import Done, FakeService

CONFIG, WEIGHTS = "adapter_config.json", "adapter_model.safetensors"
OF_THE_SERVER = json.dumps({"base_model_name_or_path": "/models/on/server", "r": 16}).encode()


def archive(kind: str = "w", **files: bytes) -> bytes:
    content = io.BytesIO()
    with tarfile.open(fileobj=content, mode=kind) as tar:
        for name, data in files.items():
            entry = tarfile.TarInfo(f"some/folder/{name}")
            entry.size = len(data)
            tar.addfile(entry, io.BytesIO(data))
    return content.getvalue()


def linked() -> bytes:
    """Both files as links out of the folder."""
    content = io.BytesIO()
    with tarfile.open(fileobj=content, mode="w") as tar:
        for kind, name in ((tarfile.SYMTYPE, CONFIG), (tarfile.LNKTYPE, WEIGHTS)):
            entry = tarfile.TarInfo(f"../{name}")
            entry.type, entry.linkname = kind, "/etc/passwd"
            tar.addfile(entry)
    return content.getvalue()


WHOLE = archive("w:gz", **{CONFIG: OF_THE_SERVER, WEIGHTS: random.Random(0).randbytes(90_000)})
FLIPPED = WHOLE[:50_000] + bytes([WHOLE[50_000] ^ 255]) + WHOLE[50_001:]


@pytest.fixture
def fetch(server_model: Any, tmp_path: Path) -> Iterator[Callable[..., Path]]:
    """Fetches what a server gives as an archive; returns the folder."""
    given, servers = [b""], list[HTTPServer]()
    named: list[Any] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200 if self.path == "/tinker://x/sampler_weights/run-final" else 404)
            self.end_headers()
            self.wfile.write(given[0])

        def log_message(self, *_: Any) -> None:
            pass

    servers.append(server := HTTPServer(("127.0.0.1", 0), Handler))
    Thread(target=server.serve_forever, daemon=True).start()
    address = f"http://127.0.0.1:{server.server_port}"

    def url_of(path: str) -> Any:
        return Done(record(url=named[0] if named else f"{address}/{path}"))

    def save(name: str) -> Any:
        return Done(record(path=f"tinker://x/sampler_weights/{name}"))

    def run(content: bytes, *urls: Any) -> Path:
        given[0] = content
        named[:] = urls
        service: Any = FakeService()
        service.url, service.limit_s = "http://there", 5.0
        rest = record(get_checkpoint_archive_url_from_tinker_path=url_of)
        service.client = record(create_rest_client=lambda: rest)
        client = record(save_weights_for_sampler=save)
        weights: Any = record(service=service, client=client, model=server_model)
        fetch_adapter(weights, "run-final", "tinker://x/weights/run-final", tmp_path)
        return tmp_path

    yield run
    server.shutdown()
    server.server_close()


def test_the_adapter_belongs_to_the_model_as_it_is_called_here(fetch) -> None:
    files = {CONFIG: OF_THE_SERVER, WEIGHTS: b"weights", "other": b"x"}
    folder = fetch(archive("w:gz", **files))
    assert {path.name for path in folder.iterdir()} == {CONFIG, WEIGHTS}
    assert (folder / WEIGHTS).read_bytes() == b"weights"
    config = json.loads((folder / CONFIG).read_text())
    assert config == {"base_model_name_or_path": "tiny:alice", "r": 16}
    adapter = named_adapter(str(folder))
    assert adapter is not None
    assert adapter.base == "tiny:alice"


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b"no archive", "file could not be opened"),
        (WHOLE[: len(WHOLE) // 2], "Compressed file ended before the end-of-stream marker"),
        (FLIPPED, "CRC check failed"),
        (archive(**{CONFIG: OF_THE_SERVER}), f"its archive has no {WEIGHTS}"),
        (linked(), f"its archive has no {CONFIG}"),
        (
            archive("w:gz", **{CONFIG: OF_THE_SERVER, WEIGHTS: bytes(2**22)}),
            f"its {WEIGHTS} is larger than its archive can hold",
        ),
        (archive(**{CONFIG: b"[]", WEIGHTS: b""}), "it is incomplete"),
        (archive(**{CONFIG: b"{", WEIGHTS: b""}), "Expecting property name"),
        (archive(**{CONFIG: b"\xff", WEIGHTS: b""}), "can't decode byte"),
    ],
    ids=[
        "no-archive",
        "half",
        "flipped",
        "no-weights",
        "links",
        "bomb",
        "list",
        "no-json",
        "no-text",
    ],
)
def test_a_folder_without_the_adapter_says_where_it_is(content, why, fetch) -> None:
    folder = fetch(content)
    assert [path.name for path in folder.iterdir()] == [ELSEWHERE]
    with pytest.raises(UserError) as refused:
        check_model(ModelSpec(str(folder)))
    (said,) = str(refused.value).splitlines()
    assert said.startswith(
        f"{folder} has no weights: they are the state tinker://x/weights/run-final of the server "
        "at http://there, which does not give out the adapter ("
    )
    assert why in said
    assert said.endswith(f"put its {CONFIG} and {WEIGHTS} into this folder")


@pytest.mark.parametrize("url", [None, "http://[::1", "http://a\x00b", "/x"])
def test_an_address_that_is_none_is_noted_too(url, fetch) -> None:
    folder = fetch(WHOLE, url)
    assert [path.name for path in folder.iterdir()] == [ELSEWHERE]
