"""Why a request does not go on with a known conversation."""

from collections.abc import Sequence

import numpy as np
import pytest

from coterie.envs.bytes_codec import END, BytesCodec
from coterie.extras.gateway.contexts import Contexts
from coterie.extras.gateway.messages import Message, Request, Tool

TOOL, OTHER = (Tool(name, "", "{}") for name in ("add", "multiply"))
SYSTEM = Message("system", "be kind")
THOUGHT = "<think>7 + 8</think>\n\nIt is 15."


def says(text: str) -> Message:
    return Message("user", text)


def said(text: str) -> Message:
    return Message("assistant", text)


def play(requests: Sequence[Request], answers: Sequence[str]) -> Contexts:
    contexts = Contexts(BytesCodec())
    for request, answer in zip(requests, answers, strict=True):
        ids = np.array([*answer.encode(), END])
        contexts.close(request, contexts.open(request), ids, limit=100)
    return contexts


def kinds(
    *conversations: Sequence[Message], tools: Sequence[Tool] = (), last: str = ""
) -> list[str]:
    """Kinds of requests that are answered a0, a1, ...; ``last`` in place of the answer before
    the last."""
    answers = [f"a{turn}" for turn in range(len(conversations))]
    if last:
        answers[-2] = last
    requests = [Request(tuple(messages)) for messages in conversations]
    if tools:
        requests = [Request(r.messages, tools=(tool,)) for r, tool in zip(requests, tools)]
    counts = play(requests, answers).counts
    # Counted in the order in which each came first.
    return [kind for kind, count in counts.items() for _ in range(count)]


A0, A1, A2 = said("a0"), said("a1"), said("a2")
LONG = (
    (SYSTEM, says("0")),
    (SYSTEM, says("0"), A0, says("1")),
    (SYSTEM, says("0"), A0, says("1"), A1, says("2")),
)


@pytest.mark.parametrize(
    ("request_", "kind"),
    [
        ([*LONG[2], A2, says("3")], "bridged"),
        ([SYSTEM, says("0"), A0, says("other")], "branch"),
        (LONG[1], "repeated"),
        (LONG[0], "repeated"),
        # An earlier message is another: of the user, of the system, of the role itself.
        ([SYSTEM, says("zero"), A0, says("1"), A1, says("2"), A2, says("3")], "rewritten"),
        ([Message("system", "day 2"), says("0"), A0, says("1")], "rewritten"),
        ([SYSTEM, says("0"), said("other"), says("1")], "rewritten"),
        # Another's answer stands behind its own.
        ([SYSTEM, says("0"), A0, says("bob?"), said("bob"), says("1")], "rewritten"),
        # The first turns are dropped; a summary takes their place; no answer is left.
        ([SYSTEM, says("1"), A1, says("2"), A2, says("3")], "compacted"),
        ([SYSTEM, says("so far: 0"), says("2"), A2, says("3")], "compacted"),
        ([SYSTEM, says("0"), says("so far: a0, a1"), says("3")], "compacted"),
        ([Message("system", "search"), says("find")], "subagent"),
        ([says("no system prompt")], "subagent"),
        ([SYSTEM, says("another task")], "new"),
        # Examples are no answers of the role.
        ([SYSTEM, says("1 + 1"), said("2"), says("2 + 2")], "new"),
    ],
)
def test_the_reason_why_a_request_begins_a_context(request_: list[Message], kind: str) -> None:
    first = ["new", "bridged", "bridged"]
    assert sorted(kinds(*LONG, request_)) == sorted([*first, kind])


def test_other_tools() -> None:
    goes_on, other = [says("0"), A0, says("1")], [says("0"), said("no"), says("1")]
    assert kinds([says("0")], goes_on, tools=[TOOL, OTHER]) == ["new", "tools_changed"]
    assert kinds([says("0")], goes_on, tools=[TOOL, TOOL]) == ["new", "bridged"]
    assert kinds([says("0")], other, tools=[TOOL, OTHER]) == ["new", "rewritten"]


@pytest.mark.parametrize(
    ("answer", "shown", "kind"),
    [
        (THOUGHT, "It is 15.", "thinking_stripped"),
        ("7 + 8</think>It is 15.", "It is 15.", "thinking_stripped"),
        ("[THINK]7 + 8[/THINK]It is 15.", "It is 15.", "thinking_stripped"),
        (THOUGHT, THOUGHT, "bridged"),
        (THOUGHT, "It is 16.", "rewritten"),
        # Cut out, but there was no thinking.
        ("So it is 15.", "15.", "rewritten"),
    ],
)
def test_thinking_that_did_not_come_back(answer: str, shown: str, kind: str) -> None:
    requests = [says("0")], [says("0"), said(shown), says("1")]
    assert kinds(*requests, last=answer) == ["new", kind]


def test_what_a_context_goes_on_with_and_what_it_would_have() -> None:
    requests = [*LONG, [SYSTEM, says("1"), A1, says("2'")], [SYSTEM, says("0"), A0, says("1'")]]
    contexts = play([Request(tuple(r)) for r in requests], [f"a{turn}" for turn in range(5)])
    behind = [(node.context.parent, node.context.lost_parent) for node in contexts.nodes]
    assert behind == [(None, None), (0, None), (1, None), (None, 1), (0, None)]
