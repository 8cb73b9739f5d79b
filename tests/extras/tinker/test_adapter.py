"""The adapter of a trained role, from servers that give it out and from those that do not."""

import io
import json
import tarfile
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save

from coterie.datatypes import UserError
from coterie.extras.tinker.adapter import NOTE, fetch_adapter
from tests.extras.tinker.conftest import Done, FakeService

CONFIG = json.dumps({"peft_type": "LORA", "r": 16}).encode()
WEIGHTS = save({"base_model.model.q_proj.lora_A.weight": torch.ones(2, 3)})


def archive(**files: bytes) -> bytes:
    """A tar file; ``__`` in names stands for a slash."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as tar:
        for name, content in files.items():
            entry = tarfile.TarInfo(name.replace("__", "/").replace("_json", ".json"))
            entry.name = entry.name.replace("_safetensors", ".safetensors")
            entry.size = len(content)
            tar.addfile(entry, io.BytesIO(content))
    return packed.getvalue()


@pytest.fixture
def served() -> Iterator[Callable[[bytes, int], Any]]:
    """Starts a server with one file; returns a service whose archives it has."""
    servers = []

    def start(body: bytes, status: int = 200) -> Any:
        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                self.send_response(status)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, format: str, *args: Any) -> None:
                pass

        servers.append(server := HTTPServer(("127.0.0.1", 0), Handler))
        Thread(target=server.serve_forever, daemon=True).start()
        url = f"http://127.0.0.1:{server.server_port}/adapter.tar"
        rest = SimpleNamespace(
            get_checkpoint_archive_url_from_tinker_path=lambda path: Done(SimpleNamespace(url=url))
        )
        service: Any = FakeService()
        service.url, service.limit_s = "http://the-server", 5.0
        service.client = SimpleNamespace(create_rest_client=lambda: rest)
        return service

    yield start
    for server in servers:
        server.shutdown()
        server.server_close()


def test_an_adapter_is_written_in_the_format_of_peft(served, tmp_path: Path) -> None:
    packed = archive(
        state__adapter_config_json=CONFIG,
        state__adapter_model_safetensors=WEIGHTS,
        README=b"not wanted",
        up__passwd=b"not wanted either",
    )
    fetch_adapter(served(packed), "tinker://x/weights/final", tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "adapter_config.json",
        "adapter_model.safetensors",
    ]
    (weight,) = load_file(tmp_path / "adapter_model.safetensors").values()
    assert weight.shape == (2, 3)


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (b"", 200),
        (b"no archive", 200),
        (archive(adapter_config_json=CONFIG), 200),
        (archive(adapter_config_json=b"{", adapter_model_safetensors=WEIGHTS), 200),
        (archive(adapter_config_json=CONFIG, adapter_model_safetensors=b"none"), 200),
        (archive(adapter_config_json=CONFIG, adapter_model_safetensors=WEIGHTS), 404),
    ],
    ids=["nothing", "no archive", "no weights", "broken", "broken weights", "404"],
)
def test_a_note_says_why_there_is_none(body, status, served, tmp_path: Path) -> None:
    fetch_adapter(served(body, status), "tinker://x/weights/final", tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == [NOTE]
    note = (tmp_path / NOTE).read_text()
    assert "The server at http://the-server does not give out the adapter" in note
    assert "Its state there is tinker://x/weights/final." in note


def test_a_server_that_refuses(served, tmp_path: Path) -> None:
    service = served(b"")
    refusal = UserError("the server refuses to give out the adapter: no such route")
    rest = SimpleNamespace(get_checkpoint_archive_url_from_tinker_path=lambda path: Done(refusal))
    service.client = SimpleNamespace(create_rest_client=lambda: rest)
    fetch_adapter(service, "tinker://x/weights/final", tmp_path)
    assert "no such route" in (tmp_path / NOTE).read_text()
