"""From messages to tokens: what was sampled is never encoded again."""

import numpy as np
import pytest

from coterie.envs.bytes_codec import END, BytesCodec
from coterie.extras.gateway import fields
from coterie.extras.gateway.contexts import Contexts
from coterie.extras.gateway.messages import Message, Request, Tool, ToolCall

TOOL = Tool("add", "adds", '{"type": "object"}')


def ask(*messages: Message, **more: object) -> Request:
    return Request(messages, **more)  # type: ignore[arg-type]


def says(text: str) -> Message:
    return Message("user", text)


def sampled(text: str, *, ended: bool = True) -> np.ndarray:
    return np.array([*text.encode(), *([END] if ended else [])])


def text(ids: np.ndarray) -> str:
    return "".join("|" if i == END else chr(i) for i in ids)


@pytest.fixture
def contexts() -> Contexts:
    return Contexts(BytesCodec())


def shown(contexts: Contexts, *messages: Message, **more: object) -> np.ndarray:
    """The ids that the role is shown."""
    return contexts.open(ask(*messages, **more)).ids


def answer(contexts: Contexts, request: Request, ids: np.ndarray) -> Message:
    opened = contexts.open(request)
    return contexts.close(request, opened, ids, limit=100).message()


@pytest.mark.parametrize("ended", [True, False])
def test_a_conversation_that_goes_on_keeps_its_ids(contexts: Contexts, ended: bool) -> None:
    first = ask(says("ab"))
    # 0xff is no UTF-8: its text, encoded again, would be three other bytes.
    ids = np.array([99, 0xFF, *([END] if ended else [])])
    reply = answer(contexts, first, ids)
    assert reply.text == "c\ufffd"
    ids = shown(contexts, says("ab"), reply, says("d"))
    assert ids.tolist() == [97, 98, 99, 0xFF, END, 100]
    assert contexts.counts == {"new": 1, "bridged": 1}


def test_tools_are_shown_as_the_program_orders_them(contexts: Contexts) -> None:
    """A model writes arguments in that order: the reasoning before what follows from it."""
    names = ("why", "answer")
    schemas = [{"properties": {name: {} for name in order}} for order in (names, names[::-1])]
    first, other = (fields.tool("end", "ends", schema) for schema in schemas)
    prompt = text(shown(contexts, says("a"), tools=(first,)))
    assert prompt.index('"why"') < prompt.index('"answer"')
    reply = answer(contexts, ask(says("a"), tools=(first,)), sampled("b"))
    shown(contexts, says("a"), reply, says("c"), tools=(other,))
    assert contexts.counts["bridged"] == 1


def test_a_conversation_that_was_rewritten_begins_anew(contexts: Contexts) -> None:
    reply = answer(contexts, ask(says("a")), sampled("b"))
    assert reply.text == "b"
    other = Message("assistant", "c")
    assert text(shown(contexts, says("a"), other, says("d"))) == "ac|d"
    # Something of the assistant's after what is known is not known either.
    assert text(shown(contexts, says("a"), reply, other, says("d"))) == "abc|d"
    assert contexts.counts == {"new": 1, "rewritten": 2}


def test_a_context_is_never_empty(contexts: Contexts) -> None:
    assert text(shown(contexts, says(""))) == "\n"


def test_system_and_results_of_tools_are_text(contexts: Contexts) -> None:
    opened = text(shown(contexts, Message("system", "s"), says("u")))
    assert opened == "s\nu"
    ids = sampled('<tool_call>{"name": "add", "arguments": {"b": 2, "a": 1}}</tool_call>')
    reply = answer(contexts, ask(says("u"), tools=(TOOL,)), ids)
    (call,) = reply.calls
    assert reply == Message("assistant", "", (ToolCall(call.id, "add", '{"a": 1, "b": 2}'),))
    result = Message("tool", "3", answers=call.id)
    after = shown(contexts, says("u"), reply, result, tools=(TOOL,))
    assert text(after).endswith(text(ids) + "<tool_response>\n3\n</tool_response>")
    assert '"name": "add"' in text(after)


def test_no_two_calls_of_an_episode_have_the_same_id() -> None:
    """Programs show one role what another called; the Agents SDK refuses an id that it has seen."""
    two = sampled('<tool_call>{"name": "add"}</tool_call><tool_call>{"name": "add"}</tool_call>')

    def identities() -> list[str]:
        return [
            call.id
            for contexts in (Contexts(BytesCodec(), "alice"), Contexts(BytesCodec(), "bob"))
            for _ in range(2)
            for call in answer(contexts, ask(says("u"), tools=(TOOL,)), two).calls
        ]

    assert len(set(identities())) == 8
    assert identities() == identities()
    # Templates of Mistral's models take no other.
    assert all(len(name) == 9 and name.isalnum() for name in identities())


def test_without_tools_nothing_is_a_call(contexts: Contexts) -> None:
    written = '<tool_call>{"name": "add"}</tool_call>'
    assert answer(contexts, ask(says("a")), sampled(written)).text == written


def test_text_after_a_stop_string_is_withheld_and_stays_in_the_context(contexts: Contexts) -> None:
    request = ask(says("a"), stop=("!",))
    reply = answer(contexts, request, sampled("b! c", ended=False))
    assert reply.text == "b"
    assert text(shown(contexts, says("a"), reply, says("d"), stop=("!",))) == "ab! c|d"


def test_an_answer_that_a_limit_cut_says_so(contexts: Contexts) -> None:
    request = ask(says("a"))
    opened = contexts.open(request)
    for ids, cut in ((sampled("bcd", ended=False), True), (sampled("bc"), False)):
        assert contexts.close(request, opened, ids, limit=3).cut is cut


def test_an_abandoned_twin_is_recognised(contexts: Contexts) -> None:
    request = ask(says("a"))
    answer(contexts, request, sampled("b"))
    kept = answer(contexts, request, sampled("c"))
    assert contexts.twins() == set()  # who knows which of them counted
    contexts.open(ask(says("a"), kept, says("d")))
    assert contexts.twins() == {0}


def test_equal_answers_to_one_request_are_continued_one_by_one(contexts: Contexts) -> None:
    request = ask(says("a"))
    reply, again = (answer(contexts, request, sampled("b")) for _ in range(2))
    assert reply == again
    parents = [contexts.open(ask(says("a"), reply, says(new))).parent for new in "cde"]
    # The later one first: the client may have given up the other.
    assert parents == [1, 0, 1]
    assert contexts.twins() == set()
    assert contexts.counts == {"new": 1, "repeated": 1, "bridged": 2, "branch": 1}


class ChatCodec(BytesCodec):
    """Has a template of its own for whole conversations."""

    knows_tools = True

    def open_chat(self, messages: list[dict[str, str]], tools: list[object]) -> list[int] | None:
        if any(message["content"] == "refuse" for message in messages):
            return None
        written = "".join(f"<{message['role']}>{message['content']}" for message in messages)
        return list(f"{written}[{len(tools)}]".encode())

    def follow_chat(
        self, messages: list[dict[str, str]], *, ended: bool, mark: int | None
    ) -> list[int] | None:
        written = self.open_chat(messages, [])
        return written if written is None or ended else [END, *written]


@pytest.mark.parametrize(
    ("behind", "ended", "written"),
    [
        ([Message("tool", "3", answers="x")], True, "ab|<tool>3[0]"),
        ([Message("tool", "3"), says("so")], False, "ab|<tool>3<user>so[0]"),
        ([Message("system", "s")], True, "ab|<system>s[0]"),
        # A single message of the user follows as in any environment.
        ([says("c")], True, "ab|c"),
        # What the template refuses is the user's.
        ([Message("tool", "refuse")], True, "ab|<tool_response>\nrefuse\n</tool_response>"),
    ],
)
def test_the_template_writes_what_follows_an_answer(
    behind: list[Message], ended: bool, written: str
) -> None:
    contexts = Contexts(ChatCodec())
    reply = answer(contexts, ask(says("a")), sampled("b", ended=ended))
    assert text(shown(contexts, says("a"), reply, *behind)) == written
    assert contexts.counts == {"new": 1, "bridged": 1}


def test_a_new_conversation_is_rendered_by_the_template() -> None:
    contexts = Contexts(ChatCodec())
    system = Message("system", "s")
    assert text(shown(contexts, system, says("u"), tools=(TOOL,))) == "<system>s<user>u[1]"
    contexts.codec.knows_tools = False  # type: ignore[attr-defined]
    written = text(shown(contexts, system, says("u"), tools=(TOOL,)))
    assert written.startswith("<system>To call a tool write <tool_call>")
    assert written.endswith("s<user>u[0]")
    # A single question is what it is in any environment.
    assert text(shown(contexts, says("u"))) == "u"
    # It would leave calls out.
    made = Message("assistant", "so", (ToolCall("x", "add", ONE),))
    written = text(shown(contexts, says("u"), made, Message("tool", "3", answers="x")))
    call = f'<tool_call>{{"name": "add", "arguments": {ONE}}}</tool_call>'
    assert written == f"<user>u<assistant>so\n{call}<tool>3[0]"
    contexts.codec.knows_tools = True  # type: ignore[attr-defined]
    written = text(shown(contexts, says("v"), made, Message("tool", "3", answers="x")))
    assert written == "<user>v<assistant>so<tool>3[0]"
    # What it refuses becomes text.
    assert text(shown(contexts, system, says("refuse"))) == "s\nrefuse"


class Opening(BytesCodec):
    """Opens a thought, and has an id that is nothing."""

    vocab_size = END + 2

    def open(self, message: str) -> list[int]:
        return [*super().open(message), *b"<think>\n"]


def test_an_unknown_id_ends_no_answer() -> None:
    contexts = Contexts(Opening())
    request = ask(says("a"))
    opened = contexts.open(request)
    for last, cut in ((END + 1, True), (END, False)):
        answered = contexts.close(request, opened, np.array([98, last]), limit=2)
        assert answered.cut is cut


def test_a_program_hears_the_thought_that_the_prompt_opened() -> None:
    contexts = Contexts(Opening())
    reply = answer(contexts, ask(says("a"), stop=("\n",)), sampled("hm 5"))
    # What the template wrote is no stop string.
    assert reply.text == "<think>\nhm 5"
    assert text(shown(contexts, says("a"), reply, says("b"))).endswith("hm 5|b")
    assert contexts.counts["bridged"] == 1


def called(*arguments: str) -> str:
    return "".join(
        f'<tool_call>\n{{"name": "add", "arguments": {given}}}\n</tool_call>' for given in arguments
    )


ONE = '{"a": 1}'
DRAFT, CALL = called("{}"), called(ONE)
MARKS = ['{"t": "}</tool_call> x"}', '{"t": "<tool_call>{}</tool_call>"}']


@pytest.mark.parametrize(
    ("before", "said", "left", "arguments"),
    [
        # What stands in a thought is a draft.
        ("q", f"<think>{DRAFT}</think>{CALL}", f"<think>{DRAFT}</think>", [ONE]),
        ("q", f"<think>{DRAFT} and", f"<think>{DRAFT} and", []),
        ("q", f"{DRAFT}</think>{CALL}", f"{DRAFT}</think>", [ONE]),
        # The prompt may have opened it.
        ("q<think>\n", f"{DRAFT} so", f"<think>\n{DRAFT} so", []),
        ("q<think>\n", f"{DRAFT}</think>{CALL}", f"<think>\n{DRAFT}</think>", [ONE]),
        # A family has another mark; one in backticks is only spoken of.
        ("q", f"[THINK]{DRAFT}[/THINK]{CALL}", f"[THINK]{DRAFT}[/THINK]", [ONE]),
        ("q", f"No `<think>` here. {CALL}", "No `<think>` here.", [ONE]),
        ("q<think>\n\n</think>\n\n", CALL, "", [ONE]),
        # Arguments are JSON, whatever they hold.
        ("q", called(*MARKS), "", MARKS),
        ("q", called('{"t": "a </think> b"}'), "", ['{"t": "a </think> b"}']),
        ("q", called('{"t": "<think>"}', "{}"), "", ['{"t": "<think>"}', "{}"]),
        ("q", f"one {DRAFT} two", "one  two", ["{}"]),
        # The turn, or the next call, ends one that is not closed.
        ("q", CALL.removesuffix("\n</tool_call>"), "", [ONE]),
        ("q", CALL.removesuffix("</tool_call>") + DRAFT, "", [ONE, "{}"]),
        ("q", f"<tool_call>{{oops</tool_call>{DRAFT}", "<tool_call>{oops</tool_call>", ["{}"]),
    ],
)
def test_calls_are_read_outside_of_thoughts_only(
    before: str, said: str, left: str, arguments: list[str]
) -> None:
    contexts = Contexts(BytesCodec())
    reply = answer(contexts, ask(says(before), tools=(TOOL,)), sampled(said))
    # An introduction of the tools stands before the question.
    assert [call.arguments for call in reply.calls] == arguments
    assert reply.text == left
    assert contexts.counts["malformed"] == ("oops" in said)


@pytest.mark.parametrize(
    "call",
    [
        *('{"name": 3}', '{"arguments": {}}', "{not json}"),
        # Whatever is dropped from its arguments, the tool would do something else.
        '{"name": "add", "a": 1}',
        '{"name": "add", "arguments": {}, "parameters": {"a": 1}}',
        r'{"name": "add", "arguments": "{\"a\": 1"}',
        r'{"name": "add", "arguments": {"a": "C:\dir"}}',
    ],
)
def test_a_call_that_cannot_be_read_stays_text(contexts: Contexts, call: str) -> None:
    text = f"<tool_call>{call}</tool_call>"
    reply = answer(contexts, ask(says("q"), tools=(TOOL,)), sampled(text))
    assert (reply.text, reply.calls) == (text, ())
    assert contexts.counts["malformed"] == 1


@pytest.mark.parametrize(
    ("given", "arguments"),
    [
        ('"name": "add", "parameters": {"a": 1}', ONE),
        ('"type": "function", "name": "add", "arguments": {"a": 1}', ONE),
        # As text, as the wire of chat completions has it.
        (r'"name": "add", "arguments": "{\"a\": 1}"', ONE),
        # A tool that needs nothing.
        ('"name": "add"', "{}"),
        ('"name": "add", "arguments": ""', "{}"),
        ('"name": "add", "arguments": null', "{}"),
    ],
)
def test_arguments_are_read_under_other_names(
    contexts: Contexts, given: str, arguments: str
) -> None:
    text = f"<tool_call>{{{given}}}</tool_call>"
    reply = answer(contexts, ask(says("q"), tools=(TOOL,)), sampled(text))
    assert (reply.text, [call.arguments for call in reply.calls]) == ("", [arguments])
    assert contexts.counts["malformed"] == 0


def test_one_call_where_a_program_takes_no_more(contexts: Contexts) -> None:
    ids = sampled(f"so {DRAFT}{CALL} then")
    request = ask(says("q"), tools=(TOOL,), one_call=True)
    reply = answer(contexts, request, ids)
    assert (reply.text, [call.arguments for call in reply.calls]) == ("so", ["{}"])
    # All of it stays in the context.
    result = Message("tool", "3", answers=reply.calls[0].id)
    after = shown(contexts, says("q"), reply, result, tools=(TOOL,))
    assert text(ids) in text(after)


def test_the_ids_of_answers_cannot_be_guessed(contexts: Contexts) -> None:
    request = ask(says("q"))
    names = [contexts.close(request, contexts.open(request), sampled("a"), limit=9).id
             for _ in range(40)]  # fmt: skip
    assert len(set(names)) == 40
    assert all(len(name) >= 24 for name in names)
    # No two have a start in common, as numbers that are counted up would.
    assert len({name[:8] for name in names}) == 40
