"""Push trained models to the Hugging Face Hub: ``coterie push runs/x ORG/NAME``.

Only this command uploads anything. It first writes all files to the run's folder ``hub``; with
``--dry-run`` it stops there.
"""

import json
import os
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro

from coterie.agents.models.checksums import NAME, changed_files, write_checksums
from coterie.agents.models.locate import DESCRIBING, hub_snapshot, local_folder, refuse_elsewhere
from coterie.agents.team.model_specs import model_spec
from coterie.agents.team.settings import AgentSettings
from coterie.cli.command_line import read_run as read_settings
from coterie.cli.commands import run_command
from coterie.cli.flags import parse_flags
from coterie.cli.output_paths import check_folder
from coterie.datatypes import UserError, user_path
from coterie.evaluation.report.rundata import CONFIG, ENVIRONMENT, SUMMARY, RunData, read_run
from coterie.extras.ops.model_card import model_card, name_of

_FOLDER = "hub"
_OF_MODELS = (
    *("config.json", "generation_config.json", "*.py"),
    *("adapter_config.json", "model.safetensors.index.json"),
)
_OF_TOKENIZERS = tuple(name for name in DESCRIBING if name not in _OF_MODELS)


@dataclass(frozen=True)
class Push:
    """Upload what a run has trained to the Hugging Face Hub: final models or adapters, tokenizers
    and a model card. A new repository is private."""

    run: Annotated[Path, tyro.conf.Positional]
    """The run's directory, such as runs/x."""
    repo: Annotated[str, tyro.conf.Positional]
    """ORG/NAME on the hub."""
    public: bool = False
    """Make a new repository public."""
    licence: str | None = None
    """The hub's name of the models' licence, such as apache-2.0; default: the card refers to the
    licence of the base models."""
    dry_run: bool = False
    """Write everything to RUN/hub and upload nothing."""


def main(argv: Sequence[str]) -> int:
    """Run the command. Returns the exit code: 0 success, 2 user error, 130 interrupted."""
    return run_command(
        lambda: _push(parse_flags(Push, argv, prog="coterie push")),
        program="coterie push",
        interrupted="stopped; the same command sends what is missing",
    )


def _push(settings: Push) -> int:
    from huggingface_hub.utils import HFValidationError, validate_repo_id

    try:
        validate_repo_id(settings.repo)
    except HFValidationError:
        raise UserError(
            f"{settings.repo} is not the name of a repository; write ORG/NAME"
        ) from None
    if settings.repo.count("/") != 1:
        raise UserError(f"{settings.repo} names no owner; write ORG/NAME")
    run = read_run(user_path(settings.run))
    folder = write_folder(run, settings.repo, settings.licence)
    size = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
    if settings.dry_run:
        print(f"{folder} is what would be sent ({size / 2**20:.1f} MiB); nothing was sent")
        return 0
    print(f"sending {folder} ({size / 2**20:.1f} MiB) to {settings.repo}", flush=True)
    print(f"sent: {send(folder, settings.repo, private=not settings.public)}")
    return 0


def write_folder(run: RunData, repo: str, licence: str | None) -> Path:
    """Write the content of the repository to the run's folder ``hub``.

    Args:
        run: a finished run.
        repo: ``ORG/NAME``.
        licence: the hub's licence identifier; None: that of the base models.

    Raises:
        UserError: the run has not ended, or its models have changed since.
    """
    settings = read_settings(run.path)
    roles = [role for role, agent in settings.agents.items() if agent.trained]
    for role in roles:
        source = run.path / "final" / role
        if not source.is_dir() or run.summary is None:
            raise UserError(f"{run.path} has not ended: coterie train --resume {run.path}")
        refuse_elsewhere(source)
        if changed := changed_files(source, new=False):
            raise UserError(f"{source / changed[0]} is not what its run wrote; nothing was sent")
    folder = run.path / _FOLDER
    check_folder(folder, f"the run's folder {_FOLDER}")
    shutil.rmtree(folder, ignore_errors=True)
    folders = {role: role if len(roles) > 1 else "" for role in roles}
    adapters: dict[str, str] = {}
    for role, place in folders.items():
        source = run.path / "final" / role
        shutil.copytree(source, folder / place, copy_function=_link, dirs_exist_ok=True)
        if (source / "adapter_config.json").is_file():
            base = model_spec(settings.agents[role]).model
            adapters[role] = base
            _complete_adapter(settings.agents[role], name_of(base), folder / place)
    (folder / "run").mkdir()
    for name in (CONFIG, SUMMARY):
        shutil.copy(run.path / name, folder / "run" / name)
    noted = run.path / ENVIRONMENT
    card = model_card(
        run,
        repo,
        folders,
        adapters=adapters,
        environment=json.loads(noted.read_text(encoding="utf-8")) if noted.is_file() else {},
        licence=licence,
    )
    (folder / "README.md").write_text(card, encoding="utf-8")
    return folder


def send(folder: Path, repo: str, *, private: bool) -> str:
    """Create the repository if it does not exist, and add one commit. Returns its URL.

    Args:
        folder: the content of the repository.
        repo: ``ORG/NAME``.
        private: whether a new repository is private.

    Raises:
        UserError: there is no login or no write access, or the hub cannot be reached.
    """
    import httpx2
    from huggingface_hub import HfApi, get_token
    from huggingface_hub.errors import HfHubHTTPError, OfflineModeIsEnabled

    if not get_token():
        raise UserError("not logged in to the hub: run `hf auth login`, or set HF_TOKEN")
    api = HfApi()
    try:
        api.create_repo(repo, private=private, exist_ok=True)
        api.upload_folder(repo_id=repo, folder_path=folder, commit_message="Trained with Coterie")
    except HfHubHTTPError as error:
        status = error.response.status_code
        if status in (401, 403):
            raise UserError(
                f"the hub does not let this token write to {repo} ({status}); name a repository "
                "of yours, or log in with `hf auth login`"
            ) from None
        raise UserError(f"the hub does not take {repo}: {error.server_message or error}") from None
    except (httpx2.TransportError, OfflineModeIsEnabled) as error:
        raise UserError(f"{api.endpoint} cannot be reached ({error})") from None
    return f"{api.endpoint}/{repo}"


def _complete_adapter(agent: AgentSettings, base_name: str, place: Path) -> None:
    """Replace the local path of the adapter's base model by its public name and commit. Where the
    adapter has no tokenizer, add the base's if the base is still on this machine."""
    spec = model_spec(agent)
    base = local_folder(spec)
    config = place / "adapter_config.json"
    content = json.loads(config.read_text(encoding="utf-8"))
    config.unlink()  # it may be a hard link to the run's own file
    content["base_model_name_or_path"] = base_name
    if base is None and spec.revision:
        content["revision"] = spec.revision
    config.write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")
    lacking = not any(place.glob("tokenizer*"))
    if lacking and (base := base or hub_snapshot(spec)) is not None:
        for path in {path for pattern in _OF_TOKENIZERS for path in base.glob(pattern)}:
            _link(path, place / path.name)
    (place / NAME).unlink(missing_ok=True)
    write_checksums(place)


def _link(source: str | Path, target: str | Path) -> None:
    """Hard-link a file, so that weights take no extra space; copy it to another file system."""
    try:
        os.link(os.path.realpath(source), target)
    except OSError:
        shutil.copy(source, target)
