"""What a source of problems is."""

from typing import Protocol

from vocabulary import Problem


class ProblemSource(Protocol):
    """Problems by index: the same index is the same problem, always.

    A finite set has a ``size``; a generator has ``None`` and answers every index >= 0.
    """

    @property
    def name(self) -> str:
        """How the user named it."""
        ...

    @property
    def size(self) -> int | None:
        """Number of problems, or None when they are generated without end."""
        ...

    @property
    def fingerprint(self) -> str:
        """SHA-256 (hex) of the canonical content, or of the generator's name and settings."""
        ...

    def __getitem__(self, index: int) -> Problem:
        """The problem at ``index``; IndexError past the end of a finite set."""
        ...
