"""Origins of a run: its weights and problems, which must be the same when it is resumed, and the
sources of plug-ins, whose changes are reported."""

import importlib.util
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from coterie.agents.models.checksums import file_sha256, sha256_of
from coterie.agents.models.locate import DESCRIBING, hub_snapshot, local_folder
from coterie.agents.models.spec import ModelSpec
from coterie.agents.team.model_specs import model_spec
from coterie.agents.team.players import local_models
from coterie.agents.team.settings import AgentSettings
from coterie.cli import plugins
from coterie.datatypes import UserError, user_path
from coterie.training.run.directory import RunDirectory
from coterie.training.run.summary import beginning, surroundings

ENVIRONMENT = "environment.json"


def write_environment(
    run: RunDirectory, agents: Mapping[str, AgentSettings], problems: Mapping[str, str]
) -> None:
    """Write ``environment.json`` with packages, models, problems and sources of plug-ins, unless it
    exists.

    Args:
        run: whose models are on this disk by now.
        agents: settings by role.
        problems: fingerprints of its sources.
    """
    if not (run.path / ENVIRONMENT).is_file():
        origins = {"problems": dict(problems), "models": _models(agents), "plugins": _plugins()}
        run.write_json(ENVIRONMENT, {"begun": beginning(), **surroundings(), **origins})


def check_unchanged(
    run: RunDirectory, agents: Mapping[str, AgentSettings], problems: Mapping[str, str]
) -> None:
    """Refuse a run whose models or problems have changed.

    Args:
        run: to resume.
        agents: settings by role.
        problems: fingerprints of its sources now.

    Raises:
        UserError: names the first file or source that has changed.
    """
    try:
        before: Any = run.read_json(ENVIRONMENT)
        if before is None:
            return
        sources, models = before["problems"], before["models"]
        changed = [
            f"what {name if name.startswith('--') else f'--problems.{name}'} names"
            for name in sources
            if sources[name] != problems[name]
        ]
        for role, now in _models(agents).items():
            changed += [f"{name} of {role}'s model" for name in _differing(models[role], now)]
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise UserError(
            f"{run.path / ENVIRONMENT} is damaged; delete it to continue without checking that "
            "models and problems are the same"
        ) from None
    if changed:
        raise UserError(
            f"{changed[0]} has changed since the run {run.path} began; restore it, or start a new "
            "run with another --run-dir"
        )


def report_changed_plugins(run: RunDirectory, tell: Callable[[str], None]) -> None:
    """Say which sources of plug-ins (environments, reward terms, algorithms) are others than those
    that the run began with.

    Args:
        run: to resume; its ``environment.json`` can be read.
        tell: shows a sentence.
    """
    stored: Any = run.read_json(ENVIRONMENT)
    before = (stored or {}).get("plugins")
    if not isinstance(before, dict):
        return
    changed = [name for name, digest in before.items() if _digest_of(str(name)) != digest]
    if changed:
        several = len(changed) > 1
        tell(
            f"{', '.join(changed)} {'have' if several else 'has'} changed since the run {run.path} "
            "began: from here on it learns by the new source"
        )


def _plugins() -> dict[str, str]:
    """Module -> SHA-256 of its source, of every plug-in that this process has loaded."""
    files = dict(sorted(plugins.sources().items()))
    return dict(zip(files, sha256_of(files.values())))


def _digest_of(module: str) -> str | None:
    """SHA-256 of the source that ``import module`` would find; None where there is none."""
    try:
        found = importlib.util.find_spec(module)
        return None if found is None or not found.origin else file_sha256(Path(found.origin))
    except (ImportError, OSError, ValueError, AttributeError):
        return None


def _differing(then: Mapping[str, str], now: Mapping[str, str]) -> list[str]:
    """Files that differ, or exist at one time only. Missing weights come from the hub again, by
    their commit; a local folder without weights is refused elsewhere."""
    gone = {name for name in then.keys() - now.keys() if name.endswith(".safetensors")}
    names = sorted((then.keys() | now.keys()) - gone)
    return [name for name in names if then.get(name) != now.get(name)]


def _models(agents: Mapping[str, AgentSettings]) -> dict[str, dict[str, str]]:
    """Role (or seat of a pool) -> file -> SHA-256."""
    paths = {
        role: dict(_files(model_spec(settings), trained=settings.trained))
        for role, settings in local_models(agents).items()
    }
    every = sorted({path for files in paths.values() for path in files.values()})
    digests = dict(zip(every, sha256_of(every)))
    return {role: {n: digests[path] for n, path in files.items()} for role, files in paths.items()}


def _files(spec: ModelSpec, *, trained: bool) -> Iterator[tuple[str, Path]]:
    """The files that a resumed run reads again; weights that learn come from its checkpoint."""
    base = local_folder(spec) or hub_snapshot(spec)
    if base is not None:
        yield from _content(base, weights=not trained or spec.lora is not None)
    if spec.lora is not None and spec.lora.adapter:
        adapter = user_path(spec.lora.adapter)
        yield from ((f"adapter/{n}", path) for n, path in _content(adapter, weights=not trained))


def _content(folder: Path, *, weights: bool) -> Iterator[tuple[str, Path]]:
    paths = [path for name in DESCRIBING for path in folder.glob(name)]
    paths += folder.glob("*.safetensors") if weights else []
    yield from ((path.name, path) for path in sorted(paths))
