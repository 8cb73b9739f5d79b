"""How long anything may take."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Deadlines:
    """Wall-clock limits; None means no limit. What misses one is recorded as a failure."""

    call_s: float | None = None
    """Seconds for one policy call."""
    episode_s: float | None = None
    """Seconds for one episode; agents that are still waiting then have failed."""
    turns: int = 256
    """Environment steps after which an episode is cut off."""
