"""A transformers tokenizer as a token codec, which applies the chat template to prompts.

Contexts only grow: a new message is appended in the template's markup, and nothing is rendered or
tokenized again. Text of users, problems and peers never becomes a control token: if it spells one
(``<|im_end|>``), its characters are encoded instead.
"""

import json
import re
from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from coterie.agents.models.encoding import PlainText
from coterie.agents.models.rendering import render
from coterie.agents.models.spec import ChatMode
from coterie.agents.models.system_message import system_markup
from coterie.datatypes import UserError
from coterie.datatypes.thinking import CLOSING, OPENING, opened_in


class HFCodec:
    """Implements :class:`coterie.datatypes.TokenCodec`, which describes the methods, over a fast
    tokenizer."""

    def __init__(
        self,
        tokenizer: Any,
        *,
        chat: ChatMode = "auto",
        system: str = "",
        vocab_size: int | None = None,
        eos_ids: Sequence[int] = (),
        context: int | None = None,
    ) -> None:
        """Args:
            tokenizer: a fast tokenizer of transformers.
            chat: how messages are rendered.
            system: the system message of every context; empty: what the template writes by itself.
            vocab_size: width of the model's logits, which may exceed the tokenizer's vocabulary.
            eos_ids: further ids that end a turn, from the model's configuration.
            context: longest context of the model in tokens; None: unknown.

        Raises:
            UserError: the tokenizer is not fast, ``chat="template"`` has no usable template, or the
                template has no place for ``system``.
        """
        if not getattr(tokenizer, "is_fast", False):
            raise UserError(
                f"{type(tokenizer).__name__} has no fast implementation; "
                "convert it to tokenizer.json first"
            )
        self.context = context
        """Longest context of the model in tokens, prompt and answer together; None: unknown."""
        self._plain = PlainText(tokenizer)
        self.vocab_size = max(vocab_size or 0, len(tokenizer))
        wants_template = chat == "template" or (chat == "auto" and bool(tokenizer.chat_template))
        self._frame: ChatFrame | None = read_frame(tokenizer) if wants_template else None
        self._tokenizer = tokenizer
        self._system = (system.strip(),) if system.strip() else ()
        self._opening: tuple[str, ...] = ()
        """The template's text around the system message, if there is one, and the user's first
        message."""
        self._begun = ""
        if self._frame is not None:
            self._opening = system_markup(tokenizer) if self._system else self._frame.opening
            self._begun = self._read_begun(self._opening[-1])
        elif self._system:
            raise UserError("a system message needs a chat template")
        template = str(tokenizer.chat_template) if self._frame is not None else ""
        self.knows_tools = "tools" in template and _calls_as_json(tokenizer, template)
        """Whether the template describes tools and calls them in the format of Hermes."""
        ends = sorted(eos_ids)
        if tokenizer.eos_token_id is not None:
            ends.insert(0, int(tokenizer.eos_token_id))
        self._closes = False
        """Whether the first mark after an answer belongs to the answer rather than to the next
        speaker."""
        if self._frame is not None:
            mark, self._closes = self._read_end(self._frame, ends, tokenizer)
            if mark is not None:
                ends.insert(0, mark)
        self.eos_ids = tuple(dict.fromkeys(ends))
        """Ids that end a turn: first the template's mark, then the tokenizer's."""
        self._silent = {*ends, tokenizer.pad_token_id}

    @property
    def converses(self) -> bool:
        """Whether there is a chat template that renders later messages of the user, too."""
        return self._frame is not None and self._frame.between is not None

    def _read_end(
        self, frame: "ChatFrame", ends: Sequence[int], tokenizer: Any
    ) -> tuple[int | None, bool]:
        """(the mark with which the template closes an answer, if there is one; whether the first
        mark after an answer belongs to the answer)."""
        closing, _ = self._plain.encode_behind((frame.closing,), ())
        closes = self._plain.first_mark(closing) is not None
        if frame.between is None:
            return None, closes
        head, _ = self._plain.encode_behind((frame.between[0],), ())
        first = self._plain.first_mark(head)
        if first is None:
            return None, closes
        mark = head[first]
        closes = closes or mark == tokenizer.eos_token_id
        within, _ = self._plain.encode_behind((frame.within,), ())
        if mark not in ends:
            if mark in within or mark == tokenizer.bos_token_id:
                # The mark ends a part of the answer, such as its thought, or begins conversations.
                return None, closes
            if not closes and self._plain.decode(head[:first]).strip():
                # The mark is part of the next speaker's name.
                return None, closes
        return mark, closes

    def open(self, message: str) -> list[int]:
        if self._frame is None:
            return self._plain.start_ids + self._plain.encode(message)
        return self._plain.encode_between(self._opening, [*self._system, self._frame.trim(message)])

    def why_no_tools(self, tools: Sequence[Mapping[str, Any]]) -> str:
        """Say why the chat template cannot offer ``tools``, in the format of templates; "" if it
        can, and without a template."""
        if self._frame is None:
            return ""
        if not self.knows_tools:
            return (
                "whose chat template does not describe tools, or does not write their calls as "
                '<tool_call>{"name": ..., "arguments": {...}}</tool_call>'
            )
        opened = self.open_chat([_ASKED], tools)
        followed = self.follow_chat([{"role": "tool", "content": _ANSWER}], ended=True)
        if opened is None or followed is None:
            return "whose chat template fails on these tools, or on their results"
        return ""

    def without_system(self) -> "HFCodec":
        """Return this codec without its system message."""
        if self._frame is None or not self._system:
            return self
        plain = copy(self)
        plain._system, plain._opening = (), self._frame.opening
        plain._begun = plain._read_begun(plain._opening[-1])
        return plain

    def opened_thought(self, context: Sequence[int] | npt.NDArray[np.int64]) -> str:
        """Return the mark of an open thought at the end of ``context`` (``<think>`` and the line
        break after it); "" without one."""
        tail = self._plain.decode([int(i) for i in context[-_TAIL:] if 0 <= i < self.vocab_size])
        begun = self._begun
        return begun if begun and tail.endswith(begun) else opened_in(tail)

    def _read_begun(self, start: str) -> str:
        """The part of ``start``, the template's text between message and answer, that opens a
        thought; "" if there is none, or it is closed again."""
        marks = list(re.finditer(OPENING, start, re.IGNORECASE))
        rest = start[marks[-1].end() :] if marks else ""
        closed = re.search(CLOSING, rest, re.IGNORECASE) or self._plain.has_control(rest)
        return "" if not marks or closed else start[marks[-1].start() :]

    def open_chat(
        self, messages: Sequence[Mapping[str, Any]], tools: Sequence[Mapping[str, Any]] = ()
    ) -> list[int] | None:
        """Return the ids of a conversation, up to the assistant's next turn; None without a
        template, or if the template refuses the conversation. The codec's system message stands
        before that of the conversation, in one message.

        Args:
            messages: in the format of templates; each ``content`` is text.
            tools: in the format of templates.
        """
        messages = self._with_system(messages)
        markup = self._markup(messages, tools)
        if markup is None:
            return None
        return self._plain.encode_between(markup, self._contents(messages))

    def _with_system(self, messages: Sequence[Mapping[str, Any]]) -> Sequence[Mapping[str, Any]]:
        if not self._system:
            return messages
        first = messages[:1] if messages[0]["role"] == "system" else ()
        parts = [*self._system, *(str(message["content"]) for message in first)]
        merged = {"role": "system", "content": "\n\n".join(filter(str.strip, parts))}
        return [merged, *messages[len(first) :]]

    def follow_chat(
        self, messages: Sequence[Mapping[str, Any]], *, ended: bool, mark: int | None = None
    ) -> list[int] | None:
        """Return the ids of messages after an answer, up to the assistant's next turn; None as in
        :meth:`open_chat`.

        Args:
            messages: in the format of templates, not by the assistant; tool results are allowed.
            ended: whether the answer has an end mark.
            mark: the end mark; None: the first of ``eos_ids``.
        """
        answered = [{"role": "user", "content": ""}, {"role": "assistant", "content": ""}]
        markup = self._markup([*answered, *messages], ())
        if markup is None:
            return None
        ids, head = self._plain.encode_behind(markup[2:], self._contents(messages))
        return self._behind(ids, head, mark) if ended else ids

    def _behind(self, ids: list[int], head: int, mark: int | None) -> list[int]:
        """Remove the part of a template's ``ids`` after an answer that the end mark ``mark``
        already stands for; the first ``head`` ids precede the next message."""
        mark = self.eos_ids[0] if mark is None and self.eos_ids else mark
        if mark in ids[:head]:
            return ids[ids.index(mark) + 1 :]
        first = self._plain.first_mark(ids[:head])
        # The answer ended with another mark than the template's, so the template's closing mark is
        # dropped. A mark that only names the next speaker is still needed.
        return ids[first + 1 :] if self._closes and first is not None else ids

    def _markup(
        self, messages: Sequence[Mapping[str, Any]], tools: Sequence[Mapping[str, Any]]
    ) -> list[str] | None:
        """The template's text before, between and after the contents of messages."""
        given = json.dumps([[{**message, "content": ""} for message in messages], list(tools)])
        if self._frame is None or self._plain.has_control(given):
            return None
        marks = [f"qText{i}q" for i in range(len(messages))]
        marked = [{**message, "content": mark} for message, mark in zip(messages, marks)]
        (rendered,) = render(self._tokenizer, [marked], tools)
        markup, rest = [], rendered.text or ""
        for mark in marks:
            before, written, rest = rest.partition(mark)
            if not written or mark in rest:
                return None
            markup.append(before)
        return [*markup, rest]

    def _contents(self, messages: Sequence[Mapping[str, Any]]) -> list[str]:
        assert self._frame is not None
        return [self._frame.trim(str(message["content"])) for message in messages]

    def follow(self, message: str, *, ended: bool, mark: int | None = None) -> list[int]:
        """See :class:`coterie.datatypes.TokenCodec`.

        Contexts are not rendered again, so earlier thinking stays even with a template that drops
        it from the history. Without a template: end of sequence (if there is one), a line break,
        the message.

        Raises:
            UserError: the template cannot render a second turn.
        """
        if self._frame is None:
            end = [] if ended or not self.eos_ids else [self.eos_ids[0]]
            return end + self._plain.encode_after("\n" + message)
        if self._frame.between is None:
            raise UserError(
                "this chat template cannot render a second user message; say --agents.ROLE.chat "
                "plain"
            )
        ids, head = self._plain.encode_behind(self._frame.between, [self._frame.trim(message)])
        return self._behind(ids, head, mark) if ended else ids

    def extend(self, text: str) -> list[int]:
        return self._plain.encode_after(text)

    def decode(self, tokens: Sequence[int] | npt.NDArray[np.int64]) -> str:
        ids = tokens.tolist() if isinstance(tokens, np.ndarray) else tokens
        known, silent = self.vocab_size, self._silent
        return self._plain.decode([i for i in ids if 0 <= i < known and i not in silent])

    def count(self, text: str) -> int:
        return len(self._plain.encode(text))

    def at_least(self, text: str) -> int:
        """Return a lower bound of :meth:`count`, in which spelt control tokens count as one;
        thread-safe."""
        return self._plain.at_least(text)

    def truncate(self, text: str, limit: int, *, keep: Literal["head", "tail"] = "head") -> str:
        return self._plain.truncate(text, limit, keep)

    def unknown_tokens(self, text: str) -> list[str]:
        """Return the parts of ``text`` that become the unknown token or are dropped; empty for
        tokenizers that fall back to bytes."""
        return self._plain.unknown(text)


_USER, _ANSWER, _NEXT, _THOUGHT = "qUser0q", "qAnswer0q", "qNext0q", "qThought0q"
_ASKED, _ASKED_NEXT = ({"role": "user", "content": text} for text in (_USER, _NEXT))
_ANSWERED = {"role": "assistant", "content": _ANSWER}
_TAIL = 256
"""Ids at the end of a context that are searched for an open thought."""


@dataclass(frozen=True)
class ChatFrame:
    """A template's text around messages."""

    opening: tuple[str, str]
    """(before, after) the first message of the user, up to the assistant's turn."""
    between: tuple[str, str] | None
    """(before, after) a later message of the user, from the end of the assistant's text; None if
    the template refuses a second turn."""
    trims: bool
    """Whether the template strips white space around messages."""
    closing: str
    """Text after an answer that ends the conversation."""
    within: str
    """Text between the thought and the rest of an answer."""

    def trim(self, message: str) -> str:
        """Strip the message if the template does so."""
        return message.strip() if self.trims else message


def read_frame(tokenizer: Any) -> ChatFrame:
    """Render marked messages with the tokenizer's template and split the result at the marks.

    Text between turns is taken from after the assistant's mark only. Some templates change the
    opening once there is history (by an empty thinking block, for instance). This does not matter,
    because contexts are never rendered again.

    Raises:
        UserError: there is no template, or it cannot render one message.
    """
    if not tokenizer.chat_template:
        raise UserError("this tokenizer has no chat template; say --agents.ROLE.chat plain")
    wide = {**_ASKED, "content": f"  {_USER}  "}
    conversations = [[_ASKED], [wide], [_ASKED, _ANSWERED, _ASKED_NEXT]]
    first, spaced, turns = render(tokenizer, conversations)
    if first.text is None or first.text.count(_USER) != 1:
        raise UserError(
            "this chat template cannot render one user message "
            f"({first.why or 'it leaves it out or repeats it'}); say --agents.ROLE.chat plain"
        )
    before, after = first.text.split(_USER)
    thought = dict.fromkeys(("thinking", "reasoning_content", "reasoning"), _THOUGHT)
    ended = [[_ASKED, _ANSWERED], [_ASKED, _ANSWERED | thought]]
    closed, thoughtful = (each.text or "" for each in render(tokenizer, ended, goes_on=False))
    return ChatFrame(
        opening=(before, after),
        between=_between(turns.text),
        trims=f" {_USER}" not in (spaced.text or ""),
        closing=closed.rpartition(_ANSWER)[2] if _ANSWER in closed else "",
        within=thoughtful.partition(_THOUGHT)[2].partition(_ANSWER)[0],
    )


def _calls_as_json(tokenizer: Any, template: str) -> bool:
    """Whether tool calls are JSON between tags, rather than tags themselves (Qwen3-Coder)."""
    if "<tool_call>" not in template:
        return False
    call = {"name": "qTool0q", "arguments": {"qGiven0q": 1}}
    calls = [{"id": "qCall0qqq", "type": "function", "function": call}]
    turns = [_ASKED, {"role": "assistant", "content": "", "tool_calls": calls}]
    (shown,) = render(tokenizer, [turns], goes_on=False)
    return re.search(r'<tool_call>\s*\{\s*"name":\s*"qTool0q"', shown.text or "") is not None


def _between(text: str | None) -> tuple[str, str] | None:
    if text is None or text.count(_ANSWER) != 1 or text.count(_NEXT) != 1:
        return None
    tail = text.split(_ANSWER)[1]
    if _NEXT not in tail:
        return None
    before, after = tail.split(_NEXT)
    return before, after
