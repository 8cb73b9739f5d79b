"""Checkpoints: directories that are written completely or not at all.

::

    checkpoints/step-000150/            during the warm-up: warmup-000020/
        state.json
            step, warmed, cursor        steps of training and warm-up, problems taken
            logs                        bytes of each log, to which a resumed run cuts it back
            counters                    seconds, tokens of all roles and of those that learn
            averages                    role -> running average of its rewards
            difficulty                  rank of each problem that was played, under an order by
                                        difficulty (problems/curriculum.py)
            learners                    role -> updates, skipped, lost and version; steps and format
                                        of its moments; number format of the computation; during
                                        the warm-up, the same counts under imitation
        rng.safetensors                 torch's generator
        alice/model.safetensors ...     weights in their own format, configuration and tokenizer;
                                        peft's files for an adapter
        alice/optimizer.safetensors     moments by parameter name; copies of past weights under
                                        reference/ and average/, where the algorithm keeps them;
                                        moments of the warm-up under imitation/
        SHA256SUMS                      of all these, config.json and the stored evaluations

Who writes it: ``Session.checkpoint`` every ``--checkpoint-every`` steps and after the last one,
``Session.warm_up`` likewise, and ``train.py`` when the user interrupts. All call
``Checkpointer.save``, which adds the log sizes and the token counts and calls :func:`save`. A
role's folder is filled by :class:`coterie.agents.team.trained_role.TrainedRole`; on a cluster
:mod:`coterie.extras.cluster.remote_roles` may bring it here. Frozen models, also the bases of
adapters, are not in it: they are loaded from where they came from, and ``environment.json`` has the
checksums of their files.

A checkpoint is written to a hidden folder and renamed, so a kill leaves the previous one
intact. It is synced to the disk before the newest of those is deleted, so a power cut leaves one,
too.
"""

import json
import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol, get_type_hints

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file

from coterie.agents.models import checksums
from coterie.agents.models.saving import store
from coterie.agents.team.backend import Died
from coterie.agents.team.trained_role import OtherFormat
from coterie.datatypes import UserError, fits
from coterie.problems.curriculum import Difficulty
from coterie.training.config.serialize import to_plain
from coterie.training.run.checkpoint_paths import complete, name_of, position_of, step_in_words
from coterie.training.run.durable_files import make_folder, not_written, sync, sync_tree

# Files of the run that a resumed run reads again, as paths from the checkpoint.
_RUN_FILES = tuple(
    f"../../{name}"
    for name in ("config.json", "evaluation/before.json", "evaluation/warmed-up.json")
)


class Restorable(Protocol):
    """A trained role, as a checkpoint saves and restores it."""

    def save(self, directory: Path) -> dict[str, Any]: ...

    def load(self, directory: Path, plain: dict[str, Any]) -> None: ...


@dataclass(frozen=True)
class Progress:
    """The position of a run: all that a step depends on, apart from weights and optimizers."""

    step: int
    """Training steps done."""
    cursor: int
    """Training problems taken from the stream."""
    logs: Mapping[str, int]
    """Log -> its size in bytes."""
    counters: Mapping[str, float]
    """Tokens and seconds (:class:`coterie.training.run.summary.Tally`)."""
    warmed: int = 0
    """Warm-up steps done."""
    averages: Mapping[str, float] = field(default_factory=dict)
    """Role -> the running average of its rewards, where that is the baseline."""
    difficulty: Difficulty = field(default_factory=dict)
    """What the order of the training problems depends on; empty if they are shuffled."""

    @property
    def name(self) -> str:
        """The name of its checkpoint's folder."""
        warming = not self.step and self.warmed > 0
        return name_of(self.warmed if warming else self.step, warming=warming)


_FIELDS = get_type_hints(Progress)
# RuntimeError: a tensor that does not fit, and JSON that is nested too deeply.
_DAMAGED = (OSError, ValueError, KeyError, TypeError, AttributeError, RuntimeError, SafetensorError)


def save(root: Path, progress: Progress, roles: Mapping[str, Restorable], *, keep: int) -> Path:
    """Write a checkpoint and delete all but the newest ``keep``; an existing one stays.

    Args:
        root: folder of a run's checkpoints.
        progress: position of the run.
        roles: those that learn, by name.
        keep: number of checkpoints that stay.

    Returns:
        The folder of the checkpoint.

    Raises:
        UserError: the disk is full or cannot be written.
    """
    target = root / progress.name
    draft = root / f".{target.name}.part"
    if target.is_dir():
        # Nothing has changed since; writing it again would leave a moment without it.
        return target
    try:
        _make_room(root, draft, keep)
        learners = {}
        for name, role in roles.items():
            (draft / name).mkdir(exist_ok=True)
            learners[name] = role.save(draft / name)
        store({"torch": torch.get_rng_state()}, draft / "rng.safetensors")
        state = to_plain(progress) | {"learners": learners}
        (draft / "state.json").write_text(json.dumps(state))
        checksums.write_checksums(draft, beside=_RUN_FILES)
        sync_tree(draft)
        draft.rename(target)
        sync(root)
    except (OSError, SafetensorError) as error:
        what = f"the checkpoint of {step_in_words(target)}"
        raise not_written(what, error, root.parent) from None
    for old in complete(root)[:-keep]:
        shutil.rmtree(old, ignore_errors=True)
    return target


def check(path: Path, tell: Callable[[str], None]) -> None:
    """Compare every file of ``path`` with its checksum; needs no model.

    Args:
        path: the checkpoint.
        tell: shows a sentence on each file of the run that has changed.

    Raises:
        UserError: a file is missing or damaged.
    """
    with _refusing(path):
        changed = checksums.changed_files(path)
    if changed is None:
        raise _refusal(path, f"{checksums.NAME} is missing")
    if damaged := [name for name in changed if name not in _RUN_FILES]:
        names = ", ".join(damaged)
        raise _refusal(path, f"{names}: does not match its checksum in {checksums.NAME}")
    for name in changed:
        tell(
            f"{(path / name).resolve()} has changed since {step_in_words(path)} (edited or "
            "damaged); the run continues with its present contents."
        )


def load(path: Path, roles: Mapping[str, Restorable]) -> Progress:
    """Restore every role and torch's generator; returns the run's position.

    Args:
        path: the checkpoint, which has passed :func:`check`.
        roles: those that learn, by name.

    Raises:
        UserError: its content is damaged.
    """
    with _refusing(path):
        state = json.loads((path / "state.json").read_text(encoding="utf-8"))
        progress = _progress(state)
        load_roles(path, roles)
        torch.set_rng_state(load_file(path / "rng.safetensors")["torch"])
        return progress


@contextmanager
def _refusing(path: Path) -> Iterator[None]:
    """Turn errors into a sentence about the checkpoint."""
    try:
        yield
    except Died:
        raise  # it says nothing about the files
    except OtherFormat as error:
        raise UserError(f"{path} cannot be resumed here: {error}") from None
    except UserError as error:
        raise _refusal(path, f"{error}") from None
    except _DAMAGED as error:
        raise _refusal(path, f"{type(error).__name__}: {error}") from error


def load_roles(path: Path, roles: Mapping[str, Restorable]) -> None:
    """Restore only ``roles``, from files that :func:`load` or :func:`save` has just handled."""
    learners = json.loads((path / "state.json").read_text(encoding="utf-8"))["learners"]
    for name, role in roles.items():
        role.load(path / name, learners[name])


def _refusal(path: Path, reason: str) -> UserError:
    earlier = [other for other in complete(path.parent) if position_of(other) < position_of(path)]
    then = f"continues from {step_in_words(earlier[-1])}" if earlier else "starts again"
    return UserError(
        f"the checkpoint {path} is damaged ({reason}); delete that folder, and --resume "
        f"{path.parent.parent} {then}"
    )


def _progress(state: Any) -> Progress:
    progress = Progress(**{name: state[name] for name in _FIELDS})
    wrong = [name for name, hint in _FIELDS.items() if not fits(getattr(progress, name), hint)]
    if wrong or min(progress.step, progress.cursor, progress.warmed, *progress.logs.values()) < 0:
        raise ValueError(f"{wrong[0] if wrong else 'a count'} does not belong in a checkpoint")
    return progress


def _make_room(root: Path, draft: Path, keep: int) -> None:
    """Make the draft's folder, and delete checkpoints beyond ``keep``."""
    make_folder(root)
    whole = complete(root)
    # At least one complete checkpoint stays until the draft is renamed.
    spare = whole[: max(0, len(whole) - max(keep - 1, 1))]
    for old in spare[:-1]:
        shutil.rmtree(old, ignore_errors=True)
    shutil.rmtree(draft, ignore_errors=True)
    if spare:
        # Overwriting the files of an old checkpoint is faster than making and deleting them.
        spare[-1].rename(draft)
        for name in ("state.json", checksums.NAME):
            (draft / name).unlink(missing_ok=True)
    else:
        draft.mkdir()
