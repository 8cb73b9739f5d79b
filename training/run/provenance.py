"""``environment.json``: where a run comes from, and whether that is still so when it is resumed.

It holds time, command, commit, packages and machine, and checksums of models, problems and
plug-ins. Models and problems must be the same on ``--resume``; changed plug-ins are reported, and
so are changed problems by ``--evaluate``.
"""

import importlib.util
import platform
import shlex
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from coterie.agents.models.checksums import file_sha256, sha256_of
from coterie.agents.models.instructions import described
from coterie.agents.models.locate import DESCRIBING, hub_snapshot, local_folder
from coterie.agents.models.spec import ModelSpec
from coterie.agents.team.model_specs import model_spec
from coterie.agents.team.players import local_models
from coterie.agents.team.settings import AgentSettings
from coterie.cli import plugins
from coterie.datatypes import UserError, user_path
from coterie.problems.opening import is_generator, names_file
from coterie.problems.prepare import ProblemSettings, columns_of, fingerprint_of
from coterie.training.run.directory import RunDirectory

ENVIRONMENT = "environment.json"
_PACKAGES = (
    "coterie", "torch", "transformers", "peft", "tokenizers", "numpy", "pettingzoo", "gymnasium",
    "mpmath", "sentence-transformers", "reasoning-gym", "datasets", "tinker",
)  # fmt: skip
_QUIET: Any = {"capture_output": True, "text": True, "timeout": 10}


def write_environment(
    run: RunDirectory, agents: Mapping[str, AgentSettings], problems: Mapping[str, str]
) -> None:
    """Write ``environment.json``, unless it exists.

    Args:
        run: its models have been loaded, so their files are on this disk.
        agents: settings by role.
        problems: source -> its fingerprint.
    """
    if not (run.path / ENVIRONMENT).is_file():
        origins = {"problems": dict(problems), "models": _models(agents), "plugins": _plugins()}
        run.write_json(ENVIRONMENT, {"begun": _start(), **_machine(), **origins})


def check_unchanged(
    run: RunDirectory, agents: Mapping[str, AgentSettings], problems: Mapping[str, str]
) -> None:
    """Refuse a run whose models or problems have changed.

    Args:
        run: to resume.
        agents: settings by role.
        problems: source -> its fingerprint now.

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


def report_changed_problems(
    run: RunDirectory,
    before: ProblemSettings,
    now: ProblemSettings,
    digests: Mapping[str, str],
    tell: Callable[[str], None],
) -> None:
    """Report evaluation sets whose problems are not those that the run began with.

    Generators are left out, whose problems depend on the seed, and so are all sets if columns are
    read in another way.

    Args:
        run: a finished run.
        before: its settings.
        now: the settings of an evaluation.
        digests: its fingerprints, as :class:`coterie.problems.prepare.HeldOut` has them.
        tell: shows a sentence.
    """
    if columns_of(before) != columns_of(now):
        return
    stored = stored_digests(run)
    for text in now.evaluated:
        digest = fingerprint_of("eval", text, now.evaluated, digests)
        then = fingerprint_of("eval", text, before.evaluated, stored)
        if then is None and names_file(text):
            then = fingerprint_of("train", text, before.sources, stored)
        if then in (None, digest) or is_generator(text.partition("?")[0]):
            continue
        follows = ": these figures are not comparable with its own"
        if text in before.sources:
            follows = ", so that it may have trained on those held out now"
        tell(f"the problems of {text} have changed since the run {run.path} began{follows}")


def stored_digests(run: RunDirectory) -> Mapping[str, str]:
    """Source -> its fingerprint when the run began; empty if it is not known."""
    try:
        before: Any = run.read_json(ENVIRONMENT)
        return {str(name): str(digest) for name, digest in before["problems"].items()}
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return {}


def report_changed_plugins(run: RunDirectory, tell: Callable[[str], None]) -> None:
    """Report plug-ins (environments, reward terms, algorithms) whose source has changed since the
    run began.

    Args:
        run: to resume; :func:`check_unchanged` has read its ``environment.json``.
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


def _machine() -> dict[str, Any]:
    """Versions of packages, and the kind of machine; nothing identifies the user."""
    return {
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.machine()}",
        "packages": {name: installed for name in _PACKAGES if (installed := _version(name))},
        "instructions": described(),
    }


def _start() -> dict[str, str]:
    """Time, command and commit of this start, as far as they are known."""
    program = Path(sys.argv[0]).name
    words = ["python", program] if program.endswith(".py") else [program]
    if program == "__main__.py":
        words = ["coterie"]
    facts = {
        "at": time.strftime("%Y-%m-%d %H:%M %z"),
        "command": shlex.join([*words, *sys.argv[1:]]),
        "commit": _commit(Path(__file__).resolve()),
    }
    return {name: fact for name, fact in facts.items() if fact}


def _commit(file: Path) -> str:
    """The commit of ``file``'s repository, with ``-dirty`` if files were changed since."""
    git = ["git", "-C", str(file.parent)]
    try:
        # An installed package may lie in a folder of somebody else's repository.
        subprocess.run([*git, "ls-files", "--error-unmatch", file.name], check=True, **_QUIET)
        describe = [*git, "describe", "--always", "--dirty", "--abbrev=10", "--exclude=*"]
        return subprocess.run(describe, check=True, **_QUIET).stdout.strip()
    except (OSError, subprocess.SubprocessError):
        return ""


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def _plugins() -> dict[str, str]:
    """Module -> SHA-256 of its source, for every plug-in that this process has loaded."""
    files = dict(sorted(plugins.sources().items()))
    return dict(zip(files, sha256_of(files.values())))


def _digest_of(module: str) -> str | None:
    """SHA-256 of the source that ``import module`` would find; None if there is none."""
    try:
        found = importlib.util.find_spec(module)
        return None if found is None or not found.origin else file_sha256(Path(found.origin))
    except (ImportError, OSError, ValueError, AttributeError):
        return None


def _differing(then: Mapping[str, str], now: Mapping[str, str]) -> list[str]:
    """Files that differ, or exist only then or only now."""
    # Missing weights are downloaded again by their commit; loading refuses a folder without any.
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
    return {
        role: {name: digests[path] for name, path in files.items()} for role, files in paths.items()
    }


def _files(spec: ModelSpec, *, trained: bool) -> Iterator[tuple[str, Path]]:
    """The files that a resumed run reads again."""
    # Full weights that learn come from the checkpoint.
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
