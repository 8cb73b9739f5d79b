"""The parts of a conversation: questions, turns and an outcome.

Further, what is wrong with a turn or an outcome, and an episode as text for a human reader.
"""

import math
from collections.abc import Callable, Collection, Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from coterie.datatypes import Problem, ScoreRequests
from coterie.envs.contract import CONTEXTS

Answers = Mapping[str, str]
"""Agent -> its answer. Whoever failed to answer is not in it."""
Piece = Literal["message", "continuation", "fresh"]
"""A chat turn of the user; text inserted into the agent's current turn; or a message with which its
context begins anew."""


@dataclass(frozen=True)
class Ask:
    """What one agent is asked; a plain string is a message under the settings' limits."""

    text: str = ""
    """Empty only where an agent goes on with its own turn (a ``continuation``)."""
    piece: Piece = "message"
    """What the text is to the agent's context."""
    max_new_tokens: int | None = None
    """Longest answer; None: the settings' ``max_new_tokens``."""
    stop: Sequence[str] | None = None
    """Strings that end an answer; None: the settings' ``stop``, where they have one."""
    trained: bool = True
    """Whether the answer is learned; one that is not is context of the others."""


class Fresh(str):
    """A message with which its reader's context begins anew: short for ``Ask`` with that piece."""


Asks = Mapping[str, str | Ask]
"""Agent -> what it is asked now; all of them are asked at once."""


@dataclass(frozen=True)
class Turn:
    """Questions, and what their answers will be scored by; the plain mapping ``asks`` means that
    each answer may be graded."""

    asks: Asks
    scores: Callable[[Answers], ScoreRequests] | None = None
    """The coming answers -> all that the conversation may ask of the scorer before it yields again,
    so that many episodes are scored in one batch. It may only look. None: each answer."""


@dataclass(frozen=True)
class Outcome:
    """What a conversation ends with; an agent that a mapping leaves out has nothing there."""

    terms: Mapping[str, Mapping[str, float]]
    """Agent -> reward term -> its weighted value. An agent's reward is their sum."""
    measured: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """Agent -> what else is to be logged of it; numbers and booleans are averaged by role."""
    episode: Mapping[str, Any] = field(default_factory=dict)
    """Measurements of the whole episode."""
    groups: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    """Agent -> group key -> the group that it is compared in, for the keys of
    ``metadata["group_keys"]`` beside ``problem`` and ``problem+role``."""
    turn_rewards: Mapping[str, Sequence[float]] = field(default_factory=dict)
    """Agent -> what of its reward it earned with each of its answers, in order; what is left is
    for the whole conversation. Their sum must be among its terms."""
    loss_weight: Mapping[str, float] = field(default_factory=dict)
    """Agent -> what its loss is multiplied by; 1 for all others."""
    learned_after: Mapping[str, str] = field(default_factory=dict)
    """Agent -> another context, after which it learns what it wrote (context distillation)."""
    reread_after: Mapping[str, str] = field(default_factory=dict)
    """Agent -> a context that it did not have, after which what it wrote is read once more, for
    algorithms that distil (``--algo.distillation.beta``)."""
    truncated: Collection[str] = ()
    """Agents that were cut off and did not come to an end."""
    failed: Mapping[str, bool] | None = None
    """Agent -> whether it failed; None: whoever was asked failed if any answer was missing."""


Conversation = Generator[Turn | Asks, Answers, Outcome]
"""Yields questions by agent, is sent their answers, and returns the outcome."""


def as_asks(asks: Asks) -> dict[str, Ask]:
    """``asks`` with an :class:`Ask` in place of every plain string."""
    return {
        agent: Ask(ask, "fresh" if isinstance(ask, Fresh) else "message")
        if isinstance(ask, str)
        else ask
        for agent, ask in asks.items()
    }


def why_no_asks(asks: Any, agents: Collection[str], begun: Collection[str]) -> str:
    """What is wrong with the questions of a turn; empty if nothing is.

    Args:
        asks: whatever was yielded.
        agents: everyone who may be asked, in order.
        begun: who was asked before, and may be asked to go on.
    """

    def says_something(agent: str, ask: Any) -> bool:
        text = ask.text if isinstance(ask, Ask) else ask
        goes_on = isinstance(ask, Ask) and ask.piece == "continuation" and agent in begun
        return isinstance(text, str) and (bool(text) or goes_on)

    whole = isinstance(asks, Mapping) and asks and set(agents).issuperset(asks)
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


def agent_by_agent(
    problem: Problem,
    turns: Iterable[tuple[Mapping[str, Ask], Mapping[str, str] | None]],
    infos: Mapping[str, Mapping[str, Any]],
    *,
    marks: Sequence[str] = (),
    prompt: str = "",
) -> str:
    """An episode in which nobody is asked twice.

    Args:
        problem: what it is about.
        turns: see :meth:`coterie.envs.conversation.ConversationEnv.turns`.
        infos: those of the last step, empty before it.
        marks: what is said of a trace whose info has it.
        prompt: the one that everybody is given: it is shown once.
    """
    lines = [f"{problem.id}: {problem.question}", f"gold answer: {' or '.join(problem.golds)}", ""]
    if prompt:
        lines += [prompt, ""]
    asked = [
        (agent, ask.text, (answers or {}).get(agent, "(no answer)"))
        for asks, answers in turns
        for agent, ask in asks.items()
    ]
    for agent, question, answer in asked:
        lines += [f"== {agent} ==", *(() if prompt else (question, "--")), answer]
        if info := infos.get(agent):
            terms = info["reward_terms"]
            parts = ", ".join(f"{name} {value:+.3f}" for name, value in terms.items() if value)
            verdict = ["right" if info.get("correct") else "wrong", *filter(info.get, marks)]
            total = math.fsum(terms.values())
            lines.append(f"-- {', '.join(verdict)}; reward {total:+.3f} ({parts})")
        lines.append("")
    return "\n".join(lines)


def piece_by_piece(problem: Problem, pieces: Iterable[tuple[str, str]]) -> str:
    """A conversation: who wrote what, in order."""
    lines = [f"{problem.id}: gold answer {' or '.join(problem.golds)}", ""]
    for who, text in pieces:
        lines += [f"== {who} ==", text, ""]
    return "\n".join(lines)
