"""Serve a model to roles of other runs: ``coterie serve tiny:expert --port 8011``."""

import ipaddress
import json
import shlex
import shutil
import socket
import sys
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Sequence
from dataclasses import dataclass, replace
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Any, Literal
from urllib.parse import quote

import tyro
from annotated_types import Ge, Interval

from coterie.agents.models.locate import check_model, local_folder
from coterie.agents.models.spec import ModelSpec
from coterie.agents.team.model_specs import after_training, model_spec
from coterie.agents.team.settings import AgentSettings
from coterie.agents.vllm.spec import PLAIN, is_plain, supported_rank
from coterie.cli.flags import parse_flags
from coterie.datatypes import UserError, Validated, reason_of, refuse, user_path
from coterie.datatypes.validation import PositiveShare
from coterie.evaluation.compare.policies import models_of

# With chunked prefill vLLM draws one random number too many and then rewinds the generator.
# Generators on a CPU cannot rewind, and the server would crash.
_ON_CPU = ["--enforce-eager", "--no-enable-chunked-prefill"]


@dataclass(frozen=True)
class ServeSettings(Validated):
    """Serve a model over HTTP until Ctrl-C, for roles played by server:ADDRESS?model=NAME."""

    model: tyro.conf.Positional[str]
    """Hub id or local path of a model or an adapter, or tiny:NAME for a model that ships with the
    repository."""
    port: Annotated[int, Interval(ge=1, le=65535)] = 8000
    """Port to listen on."""
    host: str = "127.0.0.1"
    """Address to listen on; anything but this machine's own (loopback) needs --public."""
    public: bool = False
    """Allow an address that others reach: there is no key, so whoever reaches the port may use the
    model."""
    name: str = ""
    """The model's name in requests; default: as given, or a folder's last part."""
    context: int | None = None
    """Longest context in tokens, prompt and answer together; default: the model's own limit."""
    dtype: Literal["auto", "float32", "bfloat16"] = "auto"
    """Number format of the weights; auto: the checkpoint's own on a GPU; on a CPU bfloat16 if it
    multiplies in it and the weights are above 8 MiB, else float32."""
    revision: str | None = None
    """Commit, tag or branch on the hub."""
    trust_remote_code: bool = False
    """Run code that comes with the checkpoint. Only for models whose authors you trust."""
    gpu_memory: PositiveShare = 0.4
    """Share of a GPU's memory, for weights and key-value cache together."""
    cpu_cache_gb: Annotated[int, Ge(1)] = 1
    """Key-value cache on a CPU, in GB."""
    max_sequences: Annotated[int, Ge(1)] = 256
    """Sequences that are decoded at the same time."""
    tensor_parallel: Annotated[int, Ge(1)] = 1
    """GPUs over which the model is spread."""
    log: Literal["ERROR", "WARNING", "INFO", "DEBUG"] = "ERROR"
    """Log level of the server in the terminal."""


def main(argv: Sequence[str]) -> int:
    """Serve until Ctrl-C. Returns the exit code: 0 ended, 2 user error."""
    try:
        settings = parse_flags(ServeSettings, argv, prog="coterie serve")
        check_serving(settings)
        if find_spec("vllm") is None:
            raise UserError("serving needs vLLM, which is not installed: docs/vllm.md says how")
        _serve(settings)
    except UserError as mistake:
        print(f"coterie serve: {mistake}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        pass
    return 0


def check_serving(settings: ServeSettings) -> None:
    """Refuse invalid settings, and those that expose the model to others without ``--public``.

    Raises:
        UserError: a setting is refused; the message names the flag.
    """
    s = settings
    refuse(
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
    )
    _check_free(s.host, s.port)


def served_name(settings: ServeSettings) -> str:
    """The model's name in requests."""
    if settings.name:
        return settings.name
    folder = user_path(settings.model)
    return folder.resolve().name if folder.is_dir() else settings.model


def player(settings: ServeSettings, *, chat: bool) -> str:
    """The value for ``--agents.ROLE.model``; without a chat template it uses plain completions."""
    host = settings.host
    if host in ("0.0.0.0", "::"):
        host = socket.gethostname()
    place = f"[{host}]" if ":" in host else host
    api = "" if chat else "&api=completions"
    name = quote(served_name(settings), safe="/:")
    return f"server:http://{place}:{settings.port}/v1?model={name}{api}"


def system_of(model: str) -> str:
    """The system message with which a run trained the model in its folder ``final/ROLE``; empty for
    other models. A server sends none by itself: requests bring it along."""
    trained = _trained_by_a_run(model)
    return trained.system if trained else ""


def _trained_by_a_run(model: str) -> AgentSettings | None:
    """The settings with which the model in a run's folder ``final/ROLE`` is loaded."""
    folder = user_path(model).resolve()
    run = folder.parent.parent
    known = models_of(run) if folder.parent == run / "final" else {}
    return after_training(known[folder.name], folder) if folder.name in known else None


def checked_spec(settings: ServeSettings) -> ModelSpec:
    """The model to serve, or an adapter with its base: on the commit on which its run trained it.

    Raises:
        UserError: it cannot be loaded.
    """
    trained = _trained_by_a_run(settings.model)
    agent = AgentSettings(
        settings.model,
        trained=False,
        context=settings.context,
        revision=settings.revision or (trained.revision if trained else None),
        trust_remote_code=settings.trust_remote_code,
    )
    trust = "read it, then say --trust-remote-code"
    check_model(spec := model_spec(agent), trust=trust)
    # A hub id turns out to be an adapter only after the check has downloaded its description.
    if (known := model_spec(agent)) != spec:
        check_model(known, trust=trust)
    return known


def adapter_arguments(name: str, folder: Path) -> list[str]:
    """Arguments of ``vllm serve`` for the adapter in ``folder``, ``name`` in requests.

    Raises:
        UserError: vLLM does not take such an adapter.
    """
    config = json.loads((folder / "adapter_config.json").read_text(encoding="utf-8"))
    if not is_plain(config):
        raise UserError(
            f"vLLM takes {PLAIN}; {folder} is none: merge it with its model first (peft's "
            "merge_and_unload)"
        )
    said = ["--enable-lora", "--max-lora-rank", str(supported_rank(config["r"]))]
    return [*said, "--lora-modules", json.dumps({"name": name, "path": str(folder)})]


def arguments(settings: ServeSettings, folder: str, *, gpu: bool) -> list[str]:
    """Arguments of ``vllm serve`` for a model in ``folder`` (or a hub id).

    Args:
        settings: settings of the server.
        folder: the folder, or the hub id.
        gpu: whether there is a GPU.
    """
    s = settings
    said = ["--model", folder, "--served-model-name", served_name(s)]
    said += ["--host", s.host, "--port", str(s.port), "--max-num-seqs", str(s.max_sequences)]
    # Parameters missing from a request do not come from the checkpoint's generation settings.
    said += ["--generation-config", "vllm"]
    said += ["--dtype", s.dtype if gpu else _format_on_cpu(s)]
    said += ["--gpu-memory-utilization", str(s.gpu_memory)] if gpu else _ON_CPU
    said += ["--tensor-parallel-size", str(s.tensor_parallel)] if s.tensor_parallel > 1 else []
    said += ["--max-model-len", str(s.context)] if s.context is not None else []
    said += ["--revision", s.revision] if s.revision and folder == s.model else []
    said += ["--trust-remote-code"] if s.trust_remote_code else []
    return said + ([] if s.log in ("INFO", "DEBUG") else ["--disable-uvicorn-access-log"])


def _format_on_cpu(settings: ServeSettings) -> str:
    from coterie.agents.models.number_format import number_format_of

    spec = ModelSpec(settings.model, device="cpu", dtype=settings.dtype, revision=settings.revision)
    return number_format_of(spec).name


def _loopback(host: str) -> bool:
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _check_free(host: str, port: int) -> None:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        with socket.socket(family, socket.SOCK_STREAM) as probe:
            # A port whose last connections are in TIME_WAIT counts as free.
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind((host, port))
    except (OSError, TypeError, ValueError) as error:
        # Other causes than a used port: a machine without IPv6, or an invalid host name.
        raise UserError(
            f"cannot listen on {host[:80]}:{port} ({getattr(error, 'strerror', None) or error}); "
            "choose another --port or --host"
        ) from None


def _serve(settings: ServeSettings) -> None:
    # Slow imports come after all checks.
    import torch

    from coterie.agents.vllm.processes import engine_environment, memory_folder
    from coterie.agents.vllm.settings import VllmSettings

    gpu, count = torch.cuda.is_available(), settings.tensor_parallel
    if count > 1 and torch.cuda.device_count() < count:
        raise UserError(
            f"--tensor-parallel {count} needs that many GPUs, and this machine has "
            f"{torch.cuda.device_count()}"
        )
    spec = checked_spec(settings)
    source = local_folder(spec)
    served = spec.model if source is None else str(source)
    chat = _has_template(spec, served)
    folder = memory_folder()
    try:
        adapter = Path(spec.lora.adapter) if spec.lora and spec.lora.adapter else None
        if not gpu:
            served, adapter = _wide_enough(served, source, adapter, folder)
        if adapter is None:
            said = arguments(settings, served, gpu=gpu)
        else:
            name = served_name(settings)
            # Requests name the adapter; its base needs another name.
            base = replace(settings, model=spec.model, revision=spec.revision, name=f"{name}:base")
            said = [*arguments(base, served, gpu=gpu), *adapter_arguments(name, adapter)]
        ready = threading.Thread(target=_announce, args=(settings, chat), daemon=True)
        ready.start()
        engine = VllmSettings(cpu_cache_gb=settings.cpu_cache_gb, log=settings.log)
        with engine_environment(engine, on_gpu=gpu, transfer=False):
            _run_vllm(said)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _wide_enough(
    served: str, source: Path | None, adapter: Path | None, folder: Path
) -> tuple[str, Path | None]:
    """The checkpoint and an adapter on it, or copies with a head width that vLLM's CPU attention
    supports. ``source`` is the checkpoint's folder, if it has one."""
    from coterie.agents.vllm.export import cpu_width, export_checkpoint, widen_adapter

    if source is None:
        return served, adapter
    config: dict[str, Any] = json.loads((source / "config.json").read_text(encoding="utf-8"))
    width = cpu_width(config)
    if width is None:
        return served, adapter
    export_checkpoint(source, folder / source.name, width=width, untie=False)
    if adapter is not None:
        adapter = Path(shutil.copytree(adapter, folder / "adapter"))
        widen_adapter(adapter, config, width)
    return str(folder / source.name), adapter


def _has_template(spec: Any, name: str) -> bool:
    """Whether the tokenizer has a chat template."""
    from transformers import AutoTokenizer

    try:
        tokenizer = AutoTokenizer.from_pretrained(
            name, revision=spec.revision, trust_remote_code=spec.trust_remote_code
        )
    except (OSError, ValueError, KeyError) as error:
        raise UserError(
            f"the tokenizer of {spec.model!r} cannot be loaded: {reason_of(error)}"
        ) from error
    return bool(tokenizer.chat_template)


def _announce(settings: ServeSettings, chat: bool) -> None:
    """Print how to use the model, once the server answers."""
    host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(settings.host, settings.host)
    place = f"[{host}]" if ":" in host else host
    while True:
        try:
            # Ignore proxies from the environment: the server is on this machine.
            opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
            with opener.open(f"http://{place}:{settings.port}/health", timeout=5):
                break
        except (urllib.error.URLError, OSError):
            time.sleep(0.5)
    line = f'  --agents.ROLE.no-trained --agents.ROLE.model "{player(settings, chat=chat)}"'
    if system := system_of(settings.model):
        line += f" \\\n  --agents.ROLE.system {shlex.quote(system)}"
    print(f"Ready; Ctrl-C ends it. A frozen role is played by it with\n{line}", flush=True)


def _run_vllm(said: list[str]) -> None:
    """Run vLLM's server in this process, so that it ends with the process."""
    import uvloop  # pyright: ignore[reportMissingImports]
    from vllm.entrypoints.launchers.cli_args import (  # pyright: ignore[reportMissingImports]
        make_arg_parser,
        validate_parsed_serve_args,
    )
    from vllm.entrypoints.openai.api_server import run_server  # pyright: ignore[reportMissingImports]
    from vllm.entrypoints.serve.utils.api_utils import cli_env_setup  # pyright: ignore[reportMissingImports]
    from vllm.utils.argparse_utils import FlexibleArgumentParser  # pyright: ignore[reportMissingImports]

    cli_env_setup()
    # vLLM's types allow None here; it never is.
    parsed: Any = make_arg_parser(FlexibleArgumentParser(prog="vllm serve")).parse_args(said)
    validate_parsed_serve_args(parsed)
    try:
        uvloop.run(run_server(parsed))
    except (RuntimeError, ValueError, OSError) as error:
        raise UserError(
            f"vLLM could not serve the model: {reason_of(error)}; --log INFO shows why"
        ) from error
