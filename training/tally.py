"""What a run has cost so far, over all its starts."""

import time
from collections.abc import Collection, Mapping, Sequence

from training import STARTED
from vocabulary import Trajectory


class Tally:
    """Seconds and sampled tokens; a checkpoint holds them as plain numbers."""

    def __init__(self, counters: Mapping[str, float]) -> None:
        """Take up where :meth:`counters` stood; a new run has none."""
        self.tokens = int(counters.get("tokens", 0))
        """Tokens that anybody sampled."""
        self.learner_tokens = int(counters.get("learner_tokens", 0))
        """Those of them that a role learned from."""
        self._wall_before = float(counters.get("wall_s", 0.0))

    def add(self, rows: Sequence[Trajectory], trained: Collection[str]) -> int:
        """Count one step's rows; how many tokens were sampled in them."""
        tokens = sum(int(row.mask.sum()) for row in rows)
        self.tokens += tokens
        self.learner_tokens += sum(int(row.mask.sum()) for row in rows if row.role in trained)
        return tokens

    def wall_s(self) -> float:
        """Seconds since the process began, and those of the runs that this one goes on from."""
        return self._wall_before + time.perf_counter() - STARTED

    def counters(self) -> dict[str, float]:
        """What a checkpoint saves."""
        return {
            "wall_s": self.wall_s(),
            "tokens": self.tokens,
            "learner_tokens": self.learner_tokens,
        }
