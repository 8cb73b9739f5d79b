"""One trace and the strategies in it."""

import re
from dataclasses import dataclass

from envs.core_teaching.strategies import strategies
from rewards.answers import after_thinking, extract
from vocabulary import Verdict

# Bounds on garbage, far beyond what a trace in any sensible budget of tokens reaches.
MOST_STRATEGIES = 32
LONGEST_REASONING = 1 << 14
SHORTEST_REASONING = 11
"""Characters; the public code of SD-E2 takes less for no reasoning."""

_REASONING = re.compile(r"<reasoning(?:\s[^<>]*)?>", re.IGNORECASE)
_END = re.compile(r"</reasoning>", re.IGNORECASE)
_LAST_BLOCK = re.compile(r"</strategy>", re.IGNORECASE)


@dataclass(frozen=True)
class Parsed:
    """What a text consists of."""

    blocks: tuple[str, ...]
    """Content of each closed strategy block, at most ``MOST_STRATEGIES``."""
    reasonings: tuple[str, ...]
    """The reasoning of each block that has one of some length."""
    answered: bool
    """Whether an answer stands after the last block."""
    complete: bool
    """Whether there are blocks, all with reasoning and result, and an answer after them."""


@dataclass(frozen=True)
class Trace:
    """One answer that was really given."""

    agent: str
    role: str
    text: str
    verdict: Verdict
    parsed: Parsed
    right: tuple[bool, ...] = ()
    """Of each block, whether its own result is right."""


def parse(text: str) -> Parsed:
    """Take a text apart; thoughts do not count."""
    text = after_thinking(text)
    found = strategies(text)[:MOST_STRATEGIES]
    reasonings = [_reasoning(block.text) for block in found]
    answered = extract(_LAST_BLOCK.split(text)[-1]) is not None
    tagged = all(_REASONING.search(block.text) and block.outcome for block in found)
    return Parsed(
        blocks=tuple(block.text for block in found),
        reasonings=tuple(text for text in reasonings if len(text) >= SHORTEST_REASONING),
        answered=answered,
        complete=bool(found) and answered and tagged,
    )


def _reasoning(block: str) -> str:
    """What stands between the tags, or the whole block without them."""
    inside = _REASONING.split(block, maxsplit=1)[-1]
    return " ".join(_END.split(inside, maxsplit=1)[0][:LONGEST_REASONING].split())
