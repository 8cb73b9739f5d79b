"""Finds a model's folder by its name, and refuses every mistake before weights are loaded."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from safetensors import SafetensorError, safe_open

from coterie.agents.models.cache import converted_folder
from coterie.agents.models.gguf import check_gguf, converted, gguf_file
from coterie.agents.models.spec import IN_CODES, ModelSpec
from coterie.datatypes import UserError, join_or, suggest, user_path

TINY = Path(__file__).parent / "tiny"
_HUB_ID = re.compile(r"[\w][\w.-]*(/[\w][\w.-]*)?")
_PICKLES = ("*.bin", "*.pt", "*.pth", "*.ckpt", "*.pkl")
_ADAPTER = ("adapter_config.json", "adapter_model.safetensors")
# The files of a checkpoint without weights.
_DESCRIPTION = ("*.json", "*.jinja", "*.txt", "*.model")
# Files that contain a JSON object.
_OBJECTS = (
    "config.json",
    "generation_config.json",
    "tokenizer.json",
    "tokenizer_config.json",
    "special_tokens_map.json",
    "added_tokens.json",
    "adapter_config.json",
    "model.safetensors.index.json",
)
ELSEWHERE = "weights-elsewhere.txt"
"""File of a model's folder without weights: half a sentence that says where they are."""
DESCRIBING = (*_OBJECTS, "vocab.json", "vocab.txt", "merges.txt", "*.model", "*.jinja", "*.py")
"""The files that determine a model together with its weights."""


def check_model(
    spec: ModelSpec, *, role: str = "ROLE", trained: bool = False, trust: str = ""
) -> None:
    """Refuse a model that cannot be loaded, without reading weights.

    Args:
        spec: the model.
        role: the role in the flags of error messages.
        trained: whether the role learns.
        trust: what to do where the model comes with code; default: the role's flag.

    Raises:
        UserError: the model cannot be loaded.
    """
    _check_device(spec.device)
    if trained and spec.lora is None and spec.dtype == "float16":
        raise UserError(
            "full weights do not learn in float16, whose smallest gradients are 0: say "
            f"--agents.{role}.dtype bfloat16"
        )
    if spec.dtype in IN_CODES:
        _check_codes(spec, role, trained)
    if spec.lora is not None and spec.lora.adapter is not None:
        _check_adapter(user_path(spec.lora.adapter))
    if (file := gguf_file(spec.model)) is not None:
        check_gguf(file)
        return
    folder = local_folder(spec)
    if folder is None:
        _check_hub(spec)
    else:
        _check_folder(folder, spec.model)
    here = folder or hub_snapshot(spec)
    if here is not None and (here / "config.json").is_file():
        config = _read_json(here / "config.json")
        inner = config.get("text_config")
        most = (inner if isinstance(inner, dict) else config).get("max_position_embeddings")
        if isinstance(most, int):
            spec.check_context(most, f"--agents.{role}.")
        if spec.dtype in IN_CODES and "quantization_config" in config:
            raise UserError(
                f"{spec.model} is quantized already: leave out --agents.{role}.dtype, or name "
                "the model from which it was made"
            )
        if not spec.trust_remote_code:
            trust = trust or f"read it, then say --agents.{role}.trust-remote-code"
            _check_code(config, spec.model, trust)


def _check_codes(spec: ModelSpec, role: str, trained: bool) -> None:
    """Refuse a model whose weights cannot be quantized, or need not be."""
    flag = f"--agents.{role}.dtype {spec.dtype}"
    if trained and spec.lora is None:
        raise UserError(
            f"{flag} freezes the weights, so they cannot learn: say --agents.{role}.tuning lora, "
            f"or --agents.{role}.dtype auto"
        )
    if spec.model.startswith("tiny:"):
        raise UserError(f"{flag} saves nothing with {spec.model}, which is tiny: leave it out")
    if spec.dtype == "int8":
        if spec.device.startswith("cuda"):
            raise UserError(
                f"{flag} computes on a CPU only: leave it out, or say --agents.{role}.dtype nf4"
            )
        return
    if gguf_file(spec.model) is not None:
        raise UserError(
            f"{flag} would round the weights of {spec.model} a second time: leave it out, or name "
            "the model from which the file was made"
        )
    if find_spec("bitsandbytes") is None:
        raise UserError(
            f'{flag} needs bitsandbytes, which is not installed: pip install -e ".[nf4]", or leave '
            "it out"
        )


def _check_code(config: Mapping[str, Any], name: str, trust: str) -> None:
    """Refuse an architecture that needs the code beside its weights."""
    if "auto_map" not in config:
        return
    from transformers import CONFIG_MAPPING

    if config.get("model_type") not in CONFIG_MAPPING:
        raise UserError(
            f"{name} comes with code of its own, which runs only if you trust it: {trust}"
        )


def local_folder(spec: ModelSpec) -> Path | None:
    """Return the folder of ``spec.model``, or None for a hub id; a GGUF file is converted first.

    Raises:
        UserError: an unknown ``tiny:`` name, a path that does not exist, or an unreadable GGUF
            file.
    """
    name = spec.model
    if name.startswith("tiny:"):
        known = sorted(p.parent.name for p in TINY.glob("*/config.json"))
        if name.removeprefix("tiny:") not in known:
            raise UserError(f"unknown tiny model {name!r}; {suggest(name, known)}")
        return TINY / name.removeprefix("tiny:")
    folder = _folder(name)
    if folder.is_dir():
        return folder
    if (file := gguf_file(name)) is not None:
        return converted(file)
    if folder.exists():
        raise UserError(
            f"{name} is a file; name the folder of a checkpoint in the hub's format, or a file "
            "whose name ends in .gguf"
        )
    if folder.parent == converted_folder():
        raise UserError(
            f"{name} was converted from a GGUF file and is no longer in the cache; start any run "
            "with that file as --agents.ROLE.model once, which converts it again"
        )
    if "://" in name:
        raise UserError(
            f"{name} is an address; name a hub id as ORG/NAME, or for a frozen role a model behind "
            "a server as server:ADDRESS?model=NAME"
        )
    if name.startswith((".", "~", "/")) or not _HUB_ID.fullmatch(name):
        raise UserError(f"no model folder {name!r}; name an existing folder, a hub id or tiny:NAME")
    return None


def hub_snapshot(spec: ModelSpec) -> Path | None:
    """Return the folder of ``spec.model`` in the hub's cache, which is named after the commit; None
    for a local model, or before the download."""
    if local_folder(spec) is not None:
        return None
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import HFValidationError

    try:
        return Path(snapshot_download(spec.model, revision=spec.revision, local_files_only=True))
    except (OSError, ValueError, HFValidationError):
        return None


def has_adapter_weights(folder: Path) -> bool:
    """Whether ``folder`` contains an adapter in peft's format, as safetensors."""
    return all((folder / name).is_file() for name in _ADAPTER)


@dataclass(frozen=True)
class NamedAdapter:
    """An adapter that the user named instead of a model."""

    folder: Path
    base: str
    """The model that it was trained on."""
    from_hub: bool
    base_revision: str | None
    """The base's revision in the adapter's configuration."""


def named_adapter(name: str, revision: str | None = None) -> NamedAdapter | None:
    """Return the adapter in a folder or in a downloaded hub repository; None for a model, or before
    the download.

    Raises:
        UserError: the adapter does not name its base model.
    """
    folder: Path | None = _folder(name)
    from_hub = not folder.exists() and bool(_HUB_ID.fullmatch(name))
    if from_hub:
        folder = hub_snapshot(ModelSpec(name, revision=revision))
    if folder is None or not has_adapter_weights(folder) or (folder / "config.json").is_file():
        return None
    config = _read_json(folder / "adapter_config.json")
    base, base_revision = config.get("base_model_name_or_path"), config.get("revision")
    if not isinstance(base, str) or not base:
        raise UserError(
            f"{name} is an adapter that does not say what model it belongs to; write the base as "
            "base_model_name_or_path into its adapter_config.json"
        )
    try:
        local_folder(ModelSpec(base))
    except UserError as missing:
        raise UserError(
            f"{name} is an adapter of a model that is not there: {missing}; if it has moved, write "
            f"its new place as base_model_name_or_path into {folder}/adapter_config.json, and "
            "delete SHA256SUMS beside it"
        ) from missing
    named = base_revision if isinstance(base_revision, str) else None
    return NamedAdapter(folder, base, from_hub, named)


def _folder(name: str) -> Path:
    if not name.strip():
        raise UserError("a model has no name; give a folder, a hub id or tiny:NAME")
    return user_path(name)


def _check_adapter(folder: Path) -> None:
    if not has_adapter_weights(folder):
        raise UserError(
            f"{folder} is not an adapter: it needs adapter_config.json and "
            "adapter_model.safetensors"
        )
    _check_files(folder)


def _check_folder(folder: Path, name: str) -> None:
    _check_no_run(folder, name)
    if not (folder / "config.json").is_file():
        extra = ""
        if (folder / "adapter_config.json").is_file():
            _check_adapter(folder)
            extra = " (it holds a LoRA adapter: name its base model and set lora.adapter)"
        refuse_elsewhere(folder)
        raise UserError(f"{name} is not a checkpoint: it has no config.json{extra}")
    _check_files(folder)
    index = folder / "model.safetensors.index.json"
    if index.is_file():
        named = _read_json(index).get("weight_map")
        shards = set(named.values()) if isinstance(named, dict) else set()
        missing = sorted(s for s in shards if not user_path(folder / str(s)).is_file())
        if missing or not shards:
            what = ", ".join(missing) or "all of them"
            raise UserError(f"{name} lacks weight files that its index names: {what}")
    elif not (folder / "model.safetensors").is_file():
        if any(True for pattern in _PICKLES for _ in folder.glob(pattern)):
            raise UserError(
                f"{name} has its weights as pickles, which may run code; "
                "save them as safetensors (save_pretrained does)"
            )
        raise UserError(f"{name} has no weights: model.safetensors is missing")
    if not any((folder / f).is_file() for f in ("tokenizer.json", "tokenizer_config.json")):
        raise UserError(f"{name} has no tokenizer: tokenizer.json is missing")


def refuse_elsewhere(folder: Path) -> None:
    """Refuse the folder of a model that is on a server.

    Raises:
        UserError: says where it is.
    """
    if (folder / ELSEWHERE).is_file() and not has_adapter_weights(folder):
        where = " ".join((folder / ELSEWHERE).read_text(encoding="utf-8").split())
        raise UserError(f"{folder} has no weights: {where}")


def _check_no_run(folder: Path, name: str) -> None:
    """Refuse the folder of a run, which has a config.json as a model does."""
    is_run = (folder / "metrics.jsonl").is_file() or (folder / "final").is_dir()
    if not is_run or any(folder.glob("*.safetensors")):
        return
    models = sorted(path.name for path in (folder / "final").glob("*") if path.is_dir())
    if not models:
        raise UserError(f"{name} is a run that has no model yet; {name}/final will have them")
    trained = join_or([f"{name.rstrip('/')}/final/{model}" for model in models])
    raise UserError(f"{name} is a run, which may have several models: name {trained}")


def _check_files(folder: Path) -> None:
    """Refuse damaged JSON, and safetensors whose header cannot be read."""
    for name in _OBJECTS:
        if (folder / name).is_file():
            _read_json(folder / name)
    for path in sorted(folder.glob("*.safetensors")):
        try:
            with safe_open(path, "np"):
                pass
        except (OSError, SafetensorError) as error:
            raise UserError(f"{path} cannot be read as safetensors ({error})") from error


def _read_json(path: Path) -> dict[str, Any]:
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise UserError(f"{path} cannot be read as JSON ({error})") from error
    if not isinstance(content, dict):
        raise UserError(f"{path} holds no JSON object")
    return content


def _check_device(name: str) -> None:
    if name == "auto":
        return
    import torch

    here = ["cpu", *(f"cuda:{number}" for number in range(torch.cuda.device_count()))]
    here += ["mps"] * torch.backends.mps.is_available()
    try:
        device = torch.device(name)
        if device.type == "cuda":
            # A tensor on the GPU would take memory, and this process could no longer fork.
            usable = (device.index or 0) < torch.cuda.device_count()
        else:
            usable = device.type != "meta" and torch.empty(0, device=device) is not None
    except (RuntimeError, AssertionError, ImportError):
        usable = False
    if not usable:
        raise UserError(f"there is no device {name!r} here; say auto or {' or '.join(here)}")


def _check_hub(spec: ModelSpec) -> None:
    from huggingface_hub import HfApi, constants, get_session, snapshot_download

    name, cached = spec.model, hub_snapshot(spec)
    if cached is not None and any(cached.glob("*.safetensors")):
        _check_files(cached)
        return
    way_out = "check the name and the network, or give the folder of a local copy"
    if constants.HF_HUB_OFFLINE:
        raise UserError(
            f"{name!r} is not in the local cache and the hub is switched off; {way_out}"
        )
    try:
        # A single request without the client's retries fails at once without a network.
        get_session().head(constants.ENDPOINT, timeout=10)
        files = HfApi().list_repo_files(name, revision=spec.revision)
        wanted = [*_DESCRIPTION, _ADAPTER[1]]
        snapshot_download(name, revision=spec.revision, allow_patterns=wanted)
    except Exception as error:
        # The client raises its own errors and those of three HTTP layers.
        reason = type(error).__name__
        raise UserError(
            f"model {name!r} cannot be downloaded from the hub ({reason}); {way_out}"
        ) from error
    if "config.json" not in files:
        if set(_ADAPTER) <= set(files):
            return
        raise UserError(f"{name!r} on the hub is not a checkpoint: it has no config.json")
    if not any(f.endswith(".safetensors") for f in files):
        raise UserError(f"{name!r} on the hub has no safetensors weights; choose another revision")
