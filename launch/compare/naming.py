"""What a user names in a comparison: numbers that must be positive, runs in place of models."""

from pathlib import Path
from typing import Any

from experts.naming import is_player
from launch.numbers import check_resamples
from vocabulary import UserError, user_path


def check_positive(settings: Any, *names: str) -> None:
    """Raises:
    UserError: one of these settings is below 1, or there are too many resamples.
    """
    for name in names:
        if getattr(settings, name) < 1:
            raise UserError(f"--{name.replace('_', '-')} must be at least 1")
    if "resamples" in names:
        check_resamples(settings.resamples, "--resamples")


def trained_in(value: str, role: str) -> Path | None:
    """The folder of the trained ``role``, if ``value`` is a run's directory.

    Raises:
        UserError: a run that has not ended.
    """
    if is_player(value):
        return None
    run = user_path(value)
    trained = run / "final" / role
    if trained.is_dir():
        return trained
    if (run / "checkpoints").is_dir():
        raise UserError(f"{value} is a run that has not ended: python train.py --resume {value}")
    return None
