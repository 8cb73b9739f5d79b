"""Where a run's weights and problems come from: a run that is resumed has the same ones."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from coterie.datatypes import UserError, user_path
from coterie.models.checksums import sha256_of
from coterie.models.locate import DESCRIBING, hub_snapshot, local_folder
from coterie.models.spec import ModelSpec
from coterie.teams.models import model_spec
from coterie.teams.players import local_models
from coterie.teams.settings import AgentSettings
from coterie.training.rundir import RunDirectory
from coterie.training.summary import beginning, surroundings

ENVIRONMENT = "environment.json"


def write_environment(
    run: RunDirectory, agents: Mapping[str, AgentSettings], problems: Mapping[str, str]
) -> None:
    """Note what a run runs on, and what it began with, unless that was noted before.

    Args:
        run: whose models are on this disk by now.
        agents: its settings.
        problems: fingerprints of its sources.
    """
    if not (run.path / ENVIRONMENT).is_file():
        origins = {"problems": dict(problems), "models": _models(agents)}
        run.write_json(ENVIRONMENT, {"begun": beginning(), **surroundings(), **origins})


def check_unchanged(
    run: RunDirectory, agents: Mapping[str, AgentSettings], problems: Mapping[str, str]
) -> None:
    """Compare what a run began with to what there is now; earlier versions noted less.

    Raises:
        UserError: the first file or source that is another one now.
    """
    try:
        before: Any = run.read_json(ENVIRONMENT)
        before = {} if before is None else before
        sources, models = dict(before.get("problems", {})), dict(before.get("models", {}))
        changed = [
            f"what {name if name.startswith('--') else f'--problems.{name}'} names"
            for name in sources
            if sources[name] != problems[name]
        ]
        for role, now in (_models(agents) if models else {}).items():
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


def _differing(then: Mapping[str, str], now: Mapping[str, str]) -> list[str]:
    """Files that are other ones, or there at one time only. Weights that are not here any more come
    from the hub again, by their commit; a local folder without them is refused elsewhere."""
    gone = {name for name in then.keys() - now.keys() if name.endswith(".safetensors")}
    names = sorted((then.keys() | now.keys()) - gone)
    return [name for name in names if then.get(name) != now.get(name)]


def _models(agents: Mapping[str, AgentSettings]) -> dict[str, dict[str, str]]:
    """Role (or seat of a pool) -> file -> SHA-256."""
    paths = {
        role: dict(_files(model_spec(settings), trained=settings.trained))
        for role, settings in local_models(agents).items()
    }
    every = sorted({path for one in paths.values() for path in one.values()})
    digests = dict(zip(every, sha256_of(every)))
    return {role: {n: digests[path] for n, path in one.items()} for role, one in paths.items()}


def _files(spec: ModelSpec, *, trained: bool) -> Iterator[tuple[str, Path]]:
    """What is read again when a run is resumed. Of what learns, a checkpoint has the weights."""
    base = local_folder(spec) or hub_snapshot(spec)
    if base is not None:
        yield from _content(base, weights=not trained or spec.lora is not None)
    if spec.lora is not None and spec.lora.adapter:
        adapter = user_path(spec.lora.adapter)
        yield from ((f"adapter/{n}", path) for n, path in _content(adapter, weights=not trained))


def _content(folder: Path, *, weights: bool) -> Iterator[tuple[str, Path]]:
    found = [path for name in DESCRIBING for path in folder.glob(name)]
    found += folder.glob("*.safetensors") if weights else []
    yield from ((path.name, path) for path in sorted(found))
