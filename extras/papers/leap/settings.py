"""Every knob of learning from peers."""

from dataclasses import dataclass
from typing import Literal

from coterie.datatypes import check_least
from coterie.envs.prompts import ExpertStyle
from coterie.envs.settings import require_countable, require_known

Router = Literal["dispersed", "clustered", "hybrid", "random"]


@dataclass(frozen=True)
class LeapSettings:
    """LeaP (arXiv:2505.07787). The defaults suit tiny models; the paper's values are in
    brackets."""

    paths: int = 4
    """n: paths about one problem (4)."""
    block_tokens: int = 12
    """T: tokens between pauses (2048)."""
    summary_tokens: int = 16
    """Longest summary (256)."""
    peers: int = 2
    """Summaries that each path reads (2)."""
    router: Router = "dispersed"
    """Which summaries a path reads: the least similar to its own, the most similar, half of each,
    or random ones."""
    pauses: int = 5
    """Most pauses of a path (5 or 6)."""
    max_new_tokens: int = 96
    """Most tokens of a path, summaries included."""
    prompt_style: ExpertStyle = "plain"
    """Style of the prompt, as in eapo-consultation."""

    @classmethod
    def published(cls) -> dict[str, int]:
        """Return the paper's numbers (arXiv:2505.07787) by name."""
        return {"paths": 4, "block_tokens": 2048, "summary_tokens": 256, "peers": 2, "pauses": 5}

    def __post_init__(self) -> None:
        ones = dict.fromkeys(("block_tokens", "summary_tokens", "peers", "max_new_tokens"), 1)
        check_least(self, {"paths": 2, "pauses": 0, **ones}, at="leap: ")
        require_countable("leap", self, "paths")
        require_known("leap", self)
