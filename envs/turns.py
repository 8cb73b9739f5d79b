"""The parts of a conversation: questions, turns, outcome; their checks."""

from collections.abc import Callable, Collection, Generator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from coterie.datatypes import INFO_KEYS, ScoreRequests
from coterie.envs.contract import CONTEXTS

Answers = Mapping[str, str]
"""Agent -> its answer; failed agents are absent."""
Piece = Literal["message", "continuation", "fresh", "tools"]
"""A chat turn of the user; text inserted into the agent's current turn; a message that begins a
new context; or the results of tool calls, which a conversation does not ask itself."""


@dataclass(frozen=True)
class Ask:
    """A question to one agent; a plain string is a message under the settings' limits."""

    text: str = ""
    """The question; empty only if the agent continues its own turn (a ``continuation``)."""
    piece: Piece = "message"
    """How the text enters the agent's context."""
    max_new_tokens: int | None = None
    """Longest answer; None: the settings' ``max_new_tokens``."""
    stop: Sequence[str] | None = None
    """Strings that end an answer; None: the settings' ``stop``, if there is one."""
    trained: bool = True
    """Whether the answer is learned; otherwise it is only context of later answers."""
    continues: bool = False
    """Whether the agent may be asked again in the same context. A sampler in this process keeps
    what it computed of it then, so that the next turn begins sooner."""


class Fresh(str):
    """A message that begins a new context: short for ``Ask(text, "fresh")``."""


Asks = Mapping[str, str | Ask]
"""Agent -> its question; all agents answer concurrently."""


@dataclass(frozen=True)
class Turn:
    """Questions with the scores that their answers need. A plain mapping of questions means that
    every answer may be graded."""

    asks: Asks
    scores: Callable[[Answers], ScoreRequests] | None = None
    """Answers -> all scores that the conversation may request before it yields again, so that many
    episodes are scored in one batch. The function must not change anything. None: every answer is
    graded."""


@dataclass(frozen=True)
class Outcome:
    """The result of a conversation; mappings need not have every agent."""

    terms: Mapping[str, Mapping[str, float]]
    """Agent -> reward term -> its weighted value. An agent's reward is their sum."""
    measured: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """Agent -> measurements for the log; numbers and booleans are averaged by role."""
    episode: Mapping[str, Any] = field(default_factory=dict)
    """Measurements of the whole episode."""
    groups: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    """Agent -> group key -> group, for the keys of ``metadata["group_keys"]`` besides ``problem``
    and ``problem+role``."""
    turn_rewards: Mapping[str, Sequence[float]] = field(default_factory=dict)
    """Agent -> the part of its reward that each of its answers earned, in order; the rest is for
    the whole conversation. Their sum must be part of its terms."""
    loss_weight: Mapping[str, float] = field(default_factory=dict)
    """Agent -> factor of its loss; default: 1."""
    learned_after: Mapping[str, str] = field(default_factory=dict)
    """Agent -> another context, after which its answers are learned (context distillation)."""
    reread_after: Mapping[str, str] = field(default_factory=dict)
    """Agent -> a context that it did not have, after which its answers are reread, for algorithms
    that distil (``--algo.distillation.beta``)."""
    contrast_after: Mapping[str, str] = field(default_factory=dict)
    """Agent -> a context after which its reread answers are scored for comparison; without one they
    are compared with their own probabilities."""
    truncated: Collection[str] = ()
    """Agents that were cut off."""
    failed: Mapping[str, bool] | None = None
    """Agent -> whether it failed; None: an agent failed if any of its answers is missing."""


Conversation = Generator[Turn | Asks, Answers, Outcome]
"""Yields questions by agent, receives their answers, and returns the outcome."""


def as_asks(asks: Asks) -> dict[str, Ask]:
    """Turn every plain string of ``asks`` into an :class:`Ask`."""
    return {
        agent: Ask(ask, "fresh" if isinstance(ask, Fresh) else "message")
        if isinstance(ask, str)
        else ask
        for agent, ask in asks.items()
    }


def why_no_asks(asks: Any, agents: Collection[str], begun: Collection[str]) -> str:
    """Check the questions of a turn; return an error message, or "".

    Args:
        asks: the yielded value.
        agents: all agents, in order.
        begun: agents with an earlier turn, which a continuation may continue.
    """

    def says_something(agent: str, ask: Any) -> bool:
        if isinstance(ask, Ask) and ask.piece == "tools":
            return False
        text = ask.text if isinstance(ask, Ask) else ask
        goes_on = isinstance(ask, Ask) and ask.piece == "continuation" and agent in begun
        return isinstance(text, str) and (bool(text) or goes_on)

    if isinstance(asks, Outcome):
        return "yielded an Outcome; return it"
    whole = isinstance(asks, Mapping) and asks and set(agents).issuperset(asks)
    if whole and (silent := [a for a, ask in asks.items() if isinstance(ask, str) and not ask]):
        return f"gave {silent[0]} an empty message; an answer may be empty, so put words around it"
    if not whole or not all(says_something(agent, ask) for agent, ask in asks.items()):
        shown = dict(asks) if isinstance(asks, Mapping) else asks
        return f"asked {shown!r:.200}; it must give at least one of {', '.join(agents)} a message"
    return ""


def why_no_outcome(outcome: Any, agents: Sequence[str]) -> str:
    """What is wrong with the form of an outcome; empty if nothing is."""
    if not isinstance(outcome, Outcome):
        return (
            f"ended with {outcome!r:.100}; let it return an Outcome, such as "
            f"Outcome({{{agents[0]!r}: {{'correct': 1.0}}}})"
        )
    known = set(agents)
    for name in ("terms", "measured", "groups"):
        value = getattr(outcome, name)
        inner = value.values() if isinstance(value, Mapping) else [None]
        if not all(isinstance(part, Mapping) for part in inner) or not known.issuperset(value):
            return (
                f"ended with the {name} {value!r:.200}; they must be a dictionary for each of "
                f"{', '.join(agents)}"
            )
    for agent, measured in outcome.measured.items():
        if taken := sorted(measured.keys() & {*INFO_KEYS}):
            return (
                f"measured {taken[0]!r} of {agent}, which is a key of the environment contract; "
                "take another name"
            )
    for name in ("turn_rewards", "loss_weight", *sorted(CONTEXTS), "failed"):
        value = getattr(outcome, name)
        if value is not None and not (isinstance(value, Mapping) and known.issuperset(value)):
            return f"ended with {name} {value!r:.100}; it must be a dictionary by agent"
    cut = outcome.truncated
    if not isinstance(cut, Collection) or isinstance(cut, str) or not known.issuperset(cut):
        return f"ended with truncated {cut!r:.100}; it must be a list of agents"
    if not isinstance(outcome.episode, Mapping):
        return f"ended with the episode {outcome.episode!r:.100}; it must be a dictionary"
    return ""
