"""Every knob of the sd-e2 environment."""

from dataclasses import dataclass, fields

from coterie.datatypes import check_least
from coterie.envs.prompts import StrategyStyle
from coterie.envs.settings import require, require_finite, require_known, require_traces


@dataclass(frozen=True)
class SdE2Settings:
    """SD-E2 (arXiv:2601.17982) on one problem: each role on its own."""

    traces: int = 6
    """Traces per role in training: the group that is compared."""
    eval_traces: int = 2
    """Traces per role in evaluation."""
    max_new_tokens: int = 48
    """Longest trace when training."""
    eval_max_new_tokens: int = 0
    """Longest trace in evaluation; 0 means as in training."""
    stop: tuple[str, ...] = ()
    """Strings that end a trace."""
    prompt_style: StrategyStyle = "plain"
    """strategies: asks for strategy blocks, which is what the method is about; plain: the prompt
    that the tiny team can read, and which it answers without blocks; answer: the question, and one
    sentence that asks for a last line with the answer."""
    normalise: bool = True
    """Put each term on one scale before they are added up: its distance from the mean of the role's
    traces of the question, in standard deviations."""

    w_outcome: float = 1.0
    """Weight of a right final answer."""
    w_explore: float = 1.0
    """Weight of exploration: a right strategy, or else several different ones."""
    w_exploit: float = 1.0
    """Weight of the share of strategies that are right."""
    w_format: float = 1.0
    """Weight of the form."""
    gamma_correct: float = 1.0
    """Exploration of a trace in which any strategy is right."""
    gamma_rate: float = 0.1
    """Exploration of any other trace: this times its distinct strategies times their diversity."""
    gamma_cap: float = 0.5
    """The most that diversity earns."""
    same_above: float = 0.8
    """Two strategies are the same if the cosine of their reasonings is above this."""
    format_strategy: float = 0.2
    """Form: for each strategy block that is closed."""
    format_answer: float = 0.3
    """Form: for an answer after the blocks."""
    format_complete: float = 0.1
    """Form: for blocks that all have reasoning and result, with an answer after them."""

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
