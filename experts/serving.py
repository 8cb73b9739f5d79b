"""What ``python -m experts.serve`` is told, and what vLLM is told of it."""

import ipaddress
import socket
from dataclasses import dataclass
from typing import Literal
from urllib.parse import quote

import tyro

from vocabulary import UserError, user_path

# A prompt that is read in parts costs its request a number of its stream, which vLLM then winds
# back: something that generators on a CPU cannot do, and the server ends.
_ON_CPU = ["--enforce-eager", "--no-enable-chunked-prefill"]


@dataclass(frozen=True)
class ServeSettings:
    """Serve a model over HTTP until Ctrl-C, for roles played by server:ADDRESS?model=NAME."""

    model: tyro.conf.Positional[str]
    """Hub id, local path, or tiny:NAME for a model that ships with the repository."""
    port: int = 8000
    """Port to listen on."""
    host: str = "127.0.0.1"
    """Address to listen on; anything but this machine's own (loopback) needs --public."""
    public: bool = False
    """Whoever reaches this machine may use the model."""
    name: str = ""
    """The model's name in requests; default: as it was given, a folder by its last part."""
    context: int | None = None
    """Longest context in tokens, prompt and answer together; default: what the model allows."""
    dtype: Literal["auto", "float32", "bfloat16"] = "auto"
    """Weights' number format; auto: float32 on a CPU, the checkpoint's own on a GPU."""
    revision: str | None = None
    """Commit, tag or branch on the hub."""
    trust_remote_code: bool = False
    """Run code that comes with the checkpoint. Only for models whose authors you trust."""
    gpu_memory: float = 0.4
    """Share of a GPU's memory: weights and key-value cache."""
    cpu_cache_gb: int = 1
    """Gigabytes of key-value cache on a CPU."""
    max_sequences: int = 256
    """Sequences that are decoded side by side."""
    log: Literal["ERROR", "WARNING", "INFO", "DEBUG"] = "ERROR"
    """What the server writes to the terminal."""


def check_serving(settings: ServeSettings) -> None:
    """Refuse what cannot work, or what opens the model to others without being asked to.

    Raises:
        UserError: one sentence that names the flag.
    """
    s = settings
    for wrong, sentence in [
        (not 0 < s.port < 65536, f"--port is {s.port}; ports go from 1 to 65535"),
        (not 0 < s.gpu_memory <= 1, "--gpu-memory is a share: above 0, at most 1"),
        (s.cpu_cache_gb < 1, "--cpu-cache-gb must be at least 1"),
        (s.max_sequences < 1, "--max-sequences must be at least 1"),
        (
            s.public and _loopback(s.host),
            f"--public serves others, but --host {s.host} is this machine alone; leave out one "
            "or the other",
        ),
        (
            not s.public and not _loopback(s.host),
            f"--host {s.host} opens the model to everybody who reaches this machine; say --public "
            "too if that is meant",
        ),
    ]:
        if wrong:
            raise UserError(sentence)
    _check_free(s.host, s.port)


def served_name(settings: ServeSettings) -> str:
    """The model's name in requests."""
    if settings.name:
        return settings.name
    folder = user_path(settings.model)
    return folder.resolve().name if folder.is_dir() else settings.model


def player(settings: ServeSettings, *, chat: bool) -> str:
    """What ``--agents.ROLE.model`` is given; without a chat template contexts are continued."""
    host = settings.host
    if host in ("0.0.0.0", "::"):
        host = socket.gethostname()
    place = f"[{host}]" if ":" in host else host
    api = "" if chat else "&api=completions"
    name = quote(served_name(settings), safe="/:")
    return f"server:http://{place}:{settings.port}/v1?model={name}{api}"


def arguments(settings: ServeSettings, folder: str, *, gpu: bool) -> list[str]:
    """What follows ``vllm serve`` for a model in ``folder`` (or a hub id)."""
    s = settings
    said = ["--model", folder, "--served-model-name", served_name(s)]
    said += ["--host", s.host, "--port", str(s.port), "--max-num-seqs", str(s.max_sequences)]
    # Nothing that a request leaves open is taken from the checkpoint's generation settings.
    said += ["--generation-config", "vllm"]
    said += ["--dtype", "float32" if s.dtype == "auto" and not gpu else s.dtype]
    said += ["--gpu-memory-utilization", str(s.gpu_memory)] if gpu else _ON_CPU
    said += ["--max-model-len", str(s.context)] if s.context is not None else []
    said += ["--revision", s.revision] if s.revision and folder == s.model else []
    said += ["--trust-remote-code"] if s.trust_remote_code else []
    return said + ([] if s.log in ("INFO", "DEBUG") else ["--disable-uvicorn-access-log"])


def _loopback(host: str) -> bool:
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _check_free(host: str, port: int) -> None:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        with socket.socket(family, socket.SOCK_STREAM) as probe:
            # A port whose last connections are still fading is free.
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind((host, port))
    except (OSError, TypeError, ValueError) as error:
        # Not only what is taken: a machine without IPv6, a host that no name can be.
        reason = getattr(error, "strerror", None) or error
        raise UserError(
            f"cannot listen on {host[:80]}:{port} ({reason}); choose another --port or --host"
        ) from None
