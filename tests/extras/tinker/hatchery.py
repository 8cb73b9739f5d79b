"""Hatchery, a server with Tinker's API by others, with a worker on this CPU; and faults in its
answers."""

import asyncio
import json
import shutil
import socket
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import torch

KEY = "tml-test"


@dataclass
class Fault:
    """What happens in place of an answer, a number of times."""

    path: str
    """The end of the paths that it is for."""
    times: int
    status: int = 0
    """0: the request is answered as usual, then changed."""
    hang_s: float = 0.0
    change: Callable[[Any], Any] | None = None
    """From an answer's JSON to another."""
    met: int = 0


@dataclass
class Hatchery:
    """A server in a thread of this process, so that tests can look at its adapters."""

    models: list[str]
    folder: Path | None = None
    """Where it stores its states; None: in memory."""
    workers: list[Any] = field(default_factory=list)
    faults: list[Fault] = field(default_factory=list)
    url: str = ""
    _loop: Any = None
    _server: Any = None
    _thread: Any = None

    def start(self, port: int = 0) -> "Hatchery":
        """Start it, on a free port of the loopback interface."""
        import structlog

        structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(50))
        if not port:
            with socket.socket() as probe:
                probe.bind(("127.0.0.1", 0))
                port = probe.getsockname()[1]
        self.url, ready = f"http://127.0.0.1:{port}", threading.Event()
        self._thread = threading.Thread(
            target=lambda: asyncio.run(self._serve(port, ready)), daemon=True
        )
        self._thread.start()
        assert ready.wait(120)
        return self

    def stop(self) -> None:
        """Stop it; its sessions and states are lost."""
        self._server.should_exit = True
        self._server.force_exit = True
        self._thread.join(30)

    def adapter(self, session: str) -> dict[str, torch.Tensor]:
        """Name -> weight of the adapter of a session."""
        return self._of(session, lambda worker, _: dict(worker._peft.named_parameters()))

    def gradient(self, session: str) -> dict[str, torch.Tensor]:
        """Name -> the gradient that a session has added up."""
        return self._of(session, lambda worker, runtime: runtime.grad_accum)

    def _of(self, session: str, read: Callable[[Any, Any], Any]) -> dict[str, torch.Tensor]:
        for worker in self.workers:
            if (runtime := worker._cache.get(session)) is not None:
                mark = f".{worker._adapter_name(session)}."
                found = read(worker, runtime).items()
                return {name.replace(mark, "."): w for name, w in found if mark in name}
        raise KeyError(session)

    async def _serve(self, port: int, ready: threading.Event) -> None:
        import uvicorn
        from hatchery.core.gateway import create_app, get_config
        from hatchery.core.local_dev import _build_config
        from hatchery.core.session_store import default_local_root
        from hatchery.core.worker import GPUWorker

        config = _build_config(KEY)
        config.auth.add_key(KEY, "test", max_concurrent_sessions=10_000, max_rank=256)
        if self.folder is not None:
            from hatchery.core.backends.metadata.sqlite import SQLiteMetadataStore
            from hatchery.core.backends.object_store.local import LocalObjectStore

            config.objects = LocalObjectStore(str(self.folder / "objects"))
            config.metadata = SQLiteMetadataStore(str(self.folder / "metadata.sqlite"))
        app = create_app()
        # Hatchery keeps one configuration a process; here each server has its own.
        app.dependency_overrides[get_config] = lambda: config
        await config.metadata.initialize()
        await config.queue.initialize()

        async def work(worker: Any, model: str) -> None:
            while True:
                job = await config.queue.dequeue(
                    worker_id=worker.worker_id, model_filter=model, visibility_timeout=3000
                )
                if job is None:
                    await asyncio.sleep(0.002)
                else:
                    await worker._process_one(job)

        tasks = []
        for number, model in enumerate(self.models):
            worker = GPUWorker(
                worker_id=f"test-{port}-{number}",
                base_model_name=model,
                config=config,
                device="cpu",
                dtype=torch.float32,
                # Once Hatchery 0.3 has evicted the active session, it opens no other.
                max_lora_slots=10_000,
            )
            await worker.register()
            self.workers.append(worker)
            tasks.append(asyncio.create_task(work(worker, model)))
        self._server = uvicorn.Server(
            uvicorn.Config(
                self._with_faults(app),
                host="127.0.0.1",
                port=port,
                log_level="critical",
                lifespan="off",
            )
        )
        self._server.install_signal_handlers = lambda: None
        serving = asyncio.create_task(self._server.serve())
        while not self._server.started:
            await asyncio.sleep(0.01)
        ready.set()
        await serving
        for task in tasks:
            task.cancel()
        await config.metadata.close()
        for worker in self.workers:
            shutil.rmtree(default_local_root(worker.worker_id), ignore_errors=True)

    def _with_faults(self, app: Any) -> Any:
        async def answer(scope: Any, receive: Any, send: Any) -> None:
            fault = self._fault(scope.get("path", ""))
            if fault is None:
                await app(scope, receive, send)
                return
            if fault.hang_s:
                await asyncio.sleep(fault.hang_s)
            if fault.status:
                await _respond(send, fault.status, b'{"detail": "a fault"}')
                return
            parts, begun = [], {}
            plain = [(n, v) for n, v in scope["headers"] if n.lower() != b"accept-encoding"]
            scope = {**scope, "headers": plain}

            async def keep(message: Any) -> None:
                if message["type"] == "http.response.start":
                    begun.update(message)
                else:
                    parts.append(message.get("body", b""))

            await app(scope, receive, keep)
            body = b"".join(parts)
            if fault.change is not None:
                body = json.dumps(fault.change(json.loads(body))).encode()
            await _respond(send, begun["status"], body)

        return answer

    def _fault(self, path: str) -> Fault | None:
        for fault in self.faults:
            if path.endswith(fault.path) and fault.times > 0:
                fault.times -= 1
                fault.met += 1
                return fault
        return None


async def _respond(send: Any, status: int, body: bytes) -> None:
    headers = [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(body))]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})


def available() -> bool:
    """Whether Hatchery and the official client are installed."""
    return find_spec("tinker") is not None and find_spec("hatchery") is not None
