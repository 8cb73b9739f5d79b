"""A run whose frozen role's server dies and comes back on the same port."""

import json
import threading
import time
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from coterie.training.session import Session

ANSWER = {"choices": [{"text": " 8 9", "finish_reason": "stop"}]}


class Continues(BaseHTTPRequestHandler):
    """Every context goes on in the same way."""

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["content-length"]))
        body = json.dumps(ANSWER).encode()
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing."""


class Life:
    """The server from one start to the next end."""

    def __init__(self, port: int = 0) -> None:
        self._server = ThreadingHTTPServer(("127.0.0.1", port), Continues)
        self._server.daemon_threads = True
        self.port = self._server.server_port
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,))
        self._thread.start()

    def end(self) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


def test_what_fails_is_counted_and_the_run_goes_on(opened: Callable[..., Session]) -> None:
    life = Life()
    port = life.port
    name = f"server:http://127.0.0.1:{port}/v1?model=x&api=completions"
    session = opened(
        *("--agents.bob.no-trained", "--agents.bob.model"),
        f"{name}&retries=0&breaker_failures=2&breaker_cooldown_s=0.2&timeout_s=5",
        *("--steps", "4", "--rollout.problems-per-step", "4"),
    )
    with session.open_logbook() as logbook:
        for step in session.steps_left():
            if step == 2:
                life.end()
            if step == 3:
                life = Life(port)
                time.sleep(0.25)
            batch = session.sample(step)
            credit = session.credit(batch)
            session.record(step, batch, credit, session.update(batch, credit), logbook)
    life.end()
    lines = (session.run.path / "metrics.jsonl").read_text().splitlines()
    failed = [json.loads(line)["rollout/failed"] for line in lines]
    bob = [row for episode in batch.episodes for row in episode.trajectories if row.role == "bob"]
    # All of bob's rows while nobody listens; one call finds the server again, then all do.
    assert failed[0] == 0
    assert failed[1] == len(bob)
    assert 0 <= failed[2] < len(bob)
    assert failed[3] == 0
    last = json.loads(lines[-1])
    assert last["player/bob/failed/circuit_open"] > 0
    assert last["player/bob/failed/connect"] + last.get("player/bob/failed/broken", 0) >= 2
