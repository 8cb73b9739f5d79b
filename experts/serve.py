"""Serve a model to roles of other runs: ``python -m experts.serve tiny:expert --port 8011``."""

import shutil
import sys
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from agents.engine.orphans import end_with_parent
from experts.serving import ServeSettings, arguments, check_serving, player
from vocabulary import UserError


def main(argv: Sequence[str] | None = None) -> int:
    """Serve until Ctrl-C; returns the exit code: 0 ended, 2 the user's mistake."""
    import tyro

    settings = tyro.cli(
        ServeSettings,
        args=list(sys.argv[1:] if argv is None else argv),
        prog="python -m experts.serve",
    )
    try:
        check_serving(settings)
        if find_spec("vllm") is None:
            raise UserError("serving needs vLLM, which is not installed: docs/vllm.md says how")
        _serve(settings)
    except UserError as mistake:
        print(f"experts.serve: {mistake}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        pass
    return 0


def _serve(settings: ServeSettings) -> None:
    # What takes time to import waits until everything that can be checked has been.
    import torch

    from agents.engine.environment import engine_environment
    from agents.engine.memory import memory_folder
    from agents.engine.settings import VllmSettings
    from models.locate import check, local_folder
    from models.spec import ModelSpec

    gpu = torch.cuda.is_available()
    spec = ModelSpec(
        settings.model,
        context=settings.context,
        revision=settings.revision,
        trust_remote_code=settings.trust_remote_code,
    )
    check(spec)
    source = local_folder(spec)
    served = spec.model if source is None else str(source)
    chat = _has_template(spec, served)
    folder = memory_folder()
    try:
        if source is not None and not gpu:
            served = _wide_enough(source, folder)
        ready = threading.Thread(target=_announce, args=(settings, chat), daemon=True)
        ready.start()
        engine = VllmSettings(cpu_cache_gb=settings.cpu_cache_gb, log=settings.log)
        with engine_environment(engine, on_gpu=gpu, transfer=False):
            _run_vllm(arguments(settings, served, gpu=gpu))
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _wide_enough(source: Path, folder: Path) -> str:
    """The checkpoint, or a copy with heads that vLLM's attention on a CPU has kernels for."""
    import json

    from agents.engine.export import export_checkpoint
    from agents.engine.widen import cpu_width

    config: dict[str, Any] = json.loads((source / "config.json").read_text(encoding="utf-8"))
    width = cpu_width(config)
    if width is None:
        return str(source)
    target = folder / source.name
    export_checkpoint(source, target, width=width, untie=False)
    return str(target)


def _has_template(spec: Any, name: str) -> bool:
    """Whether the tokenizer has a chat template."""
    from transformers import AutoTokenizer

    try:
        tokenizer = AutoTokenizer.from_pretrained(
            name, revision=spec.revision, trust_remote_code=spec.trust_remote_code
        )
    except (OSError, ValueError, KeyError) as error:
        reason = str(error).strip().split("\n", 1)[0][:200] or type(error).__name__
        raise UserError(f"the tokenizer of {spec.model!r} cannot be loaded: {reason}") from error
    return bool(tokenizer.chat_template)


def _announce(settings: ServeSettings, chat: bool) -> None:
    """Say how the model is named, once it answers."""
    host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(settings.host, settings.host)
    place = f"[{host}]" if ":" in host else host
    while True:
        try:
            # Whatever proxy the environment names, this machine is asked directly.
            opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
            with opener.open(f"http://{place}:{settings.port}/health", timeout=5):
                break
        except (urllib.error.URLError, OSError):
            time.sleep(0.5)
    print(
        f"Ready; Ctrl-C ends it. A frozen role is played by it with\n"
        f'  --agents.ROLE.no-trained --agents.ROLE.model "{player(settings, chat=chat)}"',
        flush=True,
    )


def _run_vllm(said: list[str]) -> None:
    """vLLM's server in this process, so that whoever ends this process ends the server."""
    import uvloop  # pyright: ignore[reportMissingImports]
    from vllm.entrypoints.launchers.cli_args import (  # pyright: ignore[reportMissingImports]
        make_arg_parser,
        validate_parsed_serve_args,
    )
    from vllm.entrypoints.openai.api_server import run_server  # pyright: ignore[reportMissingImports]
    from vllm.entrypoints.serve.utils.api_utils import cli_env_setup  # pyright: ignore[reportMissingImports]
    from vllm.utils.argparse_utils import FlexibleArgumentParser  # pyright: ignore[reportMissingImports]

    cli_env_setup()
    # Where vLLM is installed, its types say that this may be None; it never is.
    parsed: Any = make_arg_parser(FlexibleArgumentParser(prog="vllm serve")).parse_args(said)
    validate_parsed_serve_args(parsed)
    try:
        uvloop.run(run_server(parsed))
    except (RuntimeError, ValueError, OSError) as error:
        reason = str(error).strip().split("\n", 1)[0][:300]
        raise UserError(
            f"vLLM could not serve the model: {reason}; --log INFO shows why"
        ) from error


if __name__ == "__mp_main__":  # what the processes that vLLM starts call this module
    end_with_parent()
if __name__ == "__main__":
    sys.exit(main())
