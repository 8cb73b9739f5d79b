"""Processes of a run that die."""

from coterie.datatypes import UserError


class Died(UserError):
    """Raised where a process has gone that was asked."""


def died(name: str) -> str:
    """What is said of the process ``name``."""
    return f"{name} has died, or its node has"
