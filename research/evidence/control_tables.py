"""Tables of research/2026-11-controls.md, from stored results."""


def write() -> None: ...
