"""The settings of LeaP."""

from dataclasses import dataclass
from typing import Annotated, Literal

from annotated_types import Ge, Interval

from coterie.datatypes import Validated
from coterie.envs.prompts import ExpertStyle
from coterie.envs.settings import MOST

Router = Literal["dispersed", "clustered", "hybrid", "random"]


@dataclass(frozen=True)
class LeapSettings(Validated):
    """LeaP (arXiv:2505.07787). The defaults suit tiny models; the paper's values are in
    brackets."""

    paths: Annotated[int, Interval(ge=2, le=MOST)] = 4
    """n: paths about one problem (4)."""
    block_tokens: Annotated[int, Ge(1)] = 12
    """T: tokens between pauses (2048)."""
    summary_tokens: Annotated[int, Ge(1)] = 16
    """Longest summary (256)."""
    peers: Annotated[int, Ge(1)] = 2
    """Summaries that each path reads (2)."""
    router: Router = "dispersed"
    """Which summaries a path reads: the least similar to its own, the most similar, half of each,
    or random ones."""
    pauses: Annotated[int, Ge(0)] = 5
    """Most pauses of a path (5 or 6)."""
    max_new_tokens: Annotated[int, Ge(1)] = 96
    """Most tokens of a path, summaries included."""
    prompt_style: ExpertStyle = "plain"
    """Style of the prompt, as in eapo-consultation."""

    @classmethod
    def published(cls) -> dict[str, int]:
        """The paper's numbers (arXiv:2505.07787) by name."""
        return {"paths": 4, "block_tokens": 2048, "summary_tokens": 256, "peers": 2, "pauses": 5}
