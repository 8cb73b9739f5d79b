"""Settings of sd-e2."""

from dataclasses import dataclass
from typing import Annotated

from annotated_types import Ge, Interval

from coterie.datatypes import Validated
from coterie.envs.prompts import StrategyStyle
from coterie.envs.settings import Several

_Reward = Annotated[float, Ge(0)]


@dataclass(frozen=True)
class SdE2Settings(Validated):
    """SD-E2 (arXiv:2601.17982) on one problem, each role by itself."""

    traces: Several = 6
    """Traces per role in training, compared as a group."""
    eval_traces: Several = 2
    """Traces per role in evaluation."""
    max_new_tokens: Annotated[int, Ge(1)] = 48
    """Longest trace in training."""
    eval_max_new_tokens: Annotated[int, Ge(0)] = 0
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

    w_outcome: _Reward = 1.0
    """Weight of a right final answer."""
    w_explore: _Reward = 1.0
    """Weight of exploration: a right strategy, or else several different ones."""
    w_exploit: _Reward = 1.0
    """Weight of the share of strategies that are right."""
    w_format: _Reward = 1.0
    """Weight of the format."""
    gamma_correct: _Reward = 1.0
    """Exploration of a trace in which any strategy is right."""
    gamma_rate: _Reward = 0.1
    """Exploration of any other trace: this, times its number of distinct strategies, times their
    diversity."""
    gamma_cap: _Reward = 0.5
    """Most exploration by diversity."""
    same_above: Annotated[float, Interval(ge=-1, le=1)] = 0.8
    """Cosine of two reasonings above which their strategies count as the same."""
    format_strategy: _Reward = 0.2
    """Format: for each closed strategy block."""
    format_answer: _Reward = 0.3
    """Format: for an answer after the blocks."""
    format_complete: _Reward = 0.1
    """Format: if all blocks have reasoning and result, and an answer follows."""
