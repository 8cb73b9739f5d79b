"""Track a run with other services than TensorBoard: ``--track wandb trackio``.

A tracker gets the same scalars as TensorBoard, and a table of episodes at each step where
TensorBoard gets a transcript. If a tracker fails, one message says so and the run goes on without.
"""

import contextlib
import inspect
import io
import os
import secrets
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from importlib.util import find_spec
from typing import Any

from coterie.algorithms.batching import by_agent
from coterie.datatypes import Episode, UserError
from coterie.envs.contract import as_unicode
from coterie.training.config.run_settings import RunSettings
from coterie.training.run.directory import RunDirectory

_ID = "trackers.json"
_COLUMNS = ("problem", "gold", "agent", "status", "reward", "advantage", "text")


def check_trackers(names: Sequence[str]) -> None:
    """Check that the packages of all trackers are installed.

    Raises:
        UserError: a package is missing.
    """
    for name in names:
        if find_spec(name) is None:
            raise UserError(f"--track {name}: it is not installed; pip install 'coterie[track]'")


def open_trackers(
    settings: RunSettings, run: RunDirectory, tell: Callable[[str], None]
) -> "Trackers | None":
    """The trackers of a new or resumed run; None without ``--track``."""
    return Trackers(settings.track, run, tell) if settings.track else None


def episode_rows(
    episodes: Sequence[Episode], advantages: Mapping[int, float]
) -> list[list[str | float | None]]:
    """One row per agent, whose reward is the mean over its trajectories; all text is valid Unicode.

    Args:
        episodes: finished episodes.
        advantages: ``id(trajectory)`` -> advantage, for trajectories that entered a loss.
    """
    table: list[list[str | float | None]] = []
    for episode in episodes:
        for indices in by_agent(episode.trajectories):
            # Every row of an agent has all of its texts.
            rows = [episode.trajectories[index] for index in indices]
            first, reward = rows[0], sum(float(row.reward) for row in rows) / len(rows)
            of_rows = (advantages.get(id(row)) for row in rows)
            advantage = next((value for value in of_rows if value is not None), None)
            table.append(
                as_unicode(
                    [episode.problem_id, episode.gold, first.agent, first.status, reward,
                     advantage, "".join(first.texts)]
                )
            )  # fmt: skip
    return table


class Trackers:
    """All trackers of one run."""

    def __init__(
        self, names: Sequence[str], run: RunDirectory, tell: Callable[[str], None]
    ) -> None:
        """Start tracking, or continue after a resume; ``tell`` shows a message to the user."""
        self._tell = tell
        self._open: dict[str, tuple[Any, Any]] = {}
        """Name -> (package, its run object)."""
        if (known := run.read_json(_ID)) is None:
            run.write_json(_ID, known := {"id": secrets.token_hex(4)})
        for name in names:
            with self._watched(name):
                package = import_module(name)
                self._open[name] = package, _BEGIN[name](package, run, known["id"])

    def scalars(self, step: int, values: Mapping[str, float]) -> None:
        """Log scalars; ``values`` maps names to numbers."""
        self._log(step, lambda _: dict(values))

    def episodes(
        self, step: int, episodes: Sequence[Episode], advantages: Mapping[int, float]
    ) -> None:
        """Log the episodes of a step as a table."""
        columns, data = list(_COLUMNS), episode_rows(episodes, advantages)
        self._log(step, lambda package: {"episodes": package.Table(columns=columns, data=data)})

    def close(self) -> None:
        """Wait until all data is written or sent."""
        for name, (_, run) in list(self._open.items()):
            with self._watched(name):
                run.finish()
        self._open.clear()

    def _log(self, step: int, content: Callable[[Any], dict[str, Any]]) -> None:
        for name, (package, run) in list(self._open.items()):
            with self._watched(name):
                run.log(content(package), step=step)

    @contextlib.contextmanager
    def _watched(self, name: str):  # type: ignore[no-untyped-def]
        """Drop the tracker's output; switch it off if it raises an exception."""
        try:
            with contextlib.redirect_stdout(io.StringIO()):
                yield
        except Exception as error:
            self._open.pop(name, None)
            why = " ".join(f"{type(error).__name__}: {error}".split())
            self._tell(f"{name} failed and is switched off ({why[:200]}); the run continues")


def _begin_wandb(wandb: Any, run: RunDirectory, name: str) -> Any:
    """Start online if there is a login or ``WANDB_MODE`` says so; otherwise write files to the run
    directory, which ``wandb sync`` uploads."""
    mode = None if "WANDB_MODE" in os.environ or _has_login(wandb) else "offline"
    return wandb.init(
        project="coterie",
        name=run.path.name,
        id=name,
        resume="allow",
        dir=str(run.path),
        config=run.config(),
        mode=mode,
        settings=wandb.Settings(console="off", silent=True),
    )


def _has_login(wandb: Any) -> bool:
    """Whether there is a login; nobody is asked for one."""
    if "prompt" in inspect.signature(wandb.login).parameters:
        return wandb.login(prompt=False)
    return bool(wandb.api.api_key)  # before 0.30


def _begin_trackio(trackio: Any, run: RunDirectory, name: str) -> Any:
    """Track on this machine, in ``TRACKIO_DIR``, unless ``TRACKIO_SPACE_ID`` names a space."""
    return trackio.init(
        project="coterie",
        name=f"{run.path.name}-{name}",
        resume="allow",
        config=run.config(),
        embed=False,
        auto_log_gpu=False,
        auto_log_cpu=False,
    )


_BEGIN = {"wandb": _begin_wandb, "trackio": _begin_trackio}
