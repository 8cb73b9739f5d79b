"""Every knob of the sd-e2 environment."""

from dataclasses import dataclass, fields

from coterie.datatypes import check_least
from coterie.envs.prompts import StrategyStyle
from coterie.envs.settings import require, require_finite, require_known, require_traces


@dataclass(frozen=True)
class SdE2Settings:
    """SD-E2 (arXiv:2601.17982) on one problem, each role by itself."""

    traces: int = 6
    """Traces per role in training, compared as a group."""
    eval_traces: int = 2
    """Traces per role in evaluation."""
    max_new_tokens: int = 48
    """Longest trace in training."""
    eval_max_new_tokens: int = 0
    """Longest trace in evaluation; 0: as in training."""
    stop: tuple[str, ...] = ()
    """Strings that end a trace."""
    prompt_style: StrategyStyle = "plain"
    """strategies: asks for strategy blocks, as the method needs; plain: a prompt that tiny models
    can read, and answer without blocks; answer: the question, and a sentence that asks for a last
    line with the answer."""
    normalise: bool = True
    """Standardise each term before the sum: its distance from the mean of the role's traces of the
    question, in standard deviations."""

    w_outcome: float = 1.0
    """Weight of a right final answer."""
    w_explore: float = 1.0
    """Weight of exploration: a right strategy, or else several different ones."""
    w_exploit: float = 1.0
    """Weight of the share of strategies that are right."""
    w_format: float = 1.0
    """Weight of the format."""
    gamma_correct: float = 1.0
    """Exploration of a trace in which any strategy is right."""
    gamma_rate: float = 0.1
    """Exploration of any other trace: this, times its number of distinct strategies, times their
    diversity."""
    gamma_cap: float = 0.5
    """Most exploration by diversity."""
    same_above: float = 0.8
    """Cosine of two reasonings above which their strategies count as the same."""
    format_strategy: float = 0.2
    """Format: for each closed strategy block."""
    format_answer: float = 0.3
    """Format: for an answer after the blocks."""
    format_complete: float = 0.1
    """Format: if all blocks have reasoning and result, and an answer follows."""

    def __post_init__(self) -> None:
        require_traces("sd-e2", self)
        worth = [f.name for f in fields(self) if f.name.startswith(("w_", "gamma_", "format_"))]
        check_least(self, dict.fromkeys(worth, 0), at="sd-e2: ")
        require(
            "sd-e2",
            -1 <= self.same_above <= 1,
            f"same_above is {self.same_above}: a cosine lies between -1 and 1",
        )
        require_finite("sd-e2", self)
        require_known("sd-e2", self)
