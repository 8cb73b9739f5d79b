"""Every knob of learning from peers."""

from dataclasses import dataclass
from typing import Literal

from coterie.datatypes import check_least
from coterie.envs.prompts import ExpertStyle
from coterie.envs.settings import require_countable, require_known

Router = Literal["dispersed", "clustered", "hybrid", "random"]


@dataclass(frozen=True)
class LeapSettings:
    """LeaP (arXiv:2505.07787). The defaults suit tiny models; its own numbers stand behind."""

    paths: int = 4
    """n: paths about one problem (4)."""
    block_tokens: int = 12
    """T: tokens after which a path pauses (2048)."""
    summary_tokens: int = 16
    """Longest summary (256)."""
    peers: int = 2
    """Summaries that each path is shown (2)."""
    router: Router = "dispersed"
    """Whose they are: the least similar ones to its own, the most similar ones, half of each, or
    drawn by the seed."""
    pauses: int = 5
    """Most pauses of a path (5 or 6)."""
    max_new_tokens: int = 96
    """Tokens that a path may write, summaries included."""
    prompt_style: ExpertStyle = "plain"
    """How the question is put, as in eapo-consultation."""

    def __post_init__(self) -> None:
        ones = dict.fromkeys(("block_tokens", "summary_tokens", "peers", "max_new_tokens"), 1)
        check_least(self, {"paths": 2, "pauses": 0, **ones}, at="leap: ")
        require_countable("leap", self, "paths")
        require_known("leap", self)
