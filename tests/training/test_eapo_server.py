"""A training run whose expert is a real HTTP server that does everything wrong in turn."""

import json
import threading
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import count
from typing import Any

import pytest

from coterie.training.session import Session

GOOD = {"choices": [{"message": {"content": "<think> hm </think> 8 9"}, "finish_reason": "stop"}]}
KINDS = {
    "http_500": 500,
    "bad_json": json.dumps(GOOD)[:40],
    "html": "<html>busy</html>",
    "too_large": "x" * 10_000_000,
    "broken": None,
    "timeout": 0.6,
}


class Misbehaving(BaseHTTPRequestHandler):
    """A good reply, then each mischief, and from the beginning again."""

    protocol_version = "HTTP/1.1"
    turn = count()

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["content-length"]))
        deeds: list[Any] = [json.dumps(GOOD), *KINDS.values()]
        deed = deeds[next(self.turn) % len(deeds)]
        if deed is None:  # it dies
            self.close_connection = True
            return
        if isinstance(deed, float):  # it hangs
            time.sleep(deed)
            self.close_connection = True
            return
        body = (deed if isinstance(deed, str) else "").encode()
        try:
            self.send_response(deed if isinstance(deed, int) else 200)
            kind = "text/html" if body.startswith(b"<") else "application/json"
            self.send_header("content-type", kind)
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)
        except OSError:  # nobody reads ten megabytes
            self.close_connection = True

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing."""


@pytest.fixture
def address() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Misbehaving)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, args=(0.05,))
    thread.start()
    yield f"server:http://127.0.0.1:{server.server_port}/v1?model=x"
    server.shutdown()
    thread.join()
    server.server_close()


def test_training_goes_on_whatever_the_expert_does(
    opened: Callable[..., Session], train: Callable[[Session], list[Any]], address: str
) -> None:
    impatient = "retries=0&read_timeout_s=0.3&timeout_s=2&breaker_failures=1000&concurrency=4"
    session = opened(
        *("--env", "eapo-consultation", "--algo", "grpo", "--rollout.problems-per-step", "4"),
        *("--agents.expert.model", f"{address}&{impatient}"),
    )
    lines = train(session)
    assert [line["step"] for line in lines] == [1, 2]
    last = lines[-1]
    for kind in KINDS:
        assert last[f"player/expert/failed/{kind}"] > 0, kind
    assert last["player/expert/answered"] > 0
    # What failed is an entry of its own; what came is there; everyone was trained on.
    assert last["measured/policy/unavailable"] > 0
    assert last["measured/policy/accepted"] > 0
    assert last["measured/policy/failed"] == 0
    assert last["credit/group_size"] == 8
