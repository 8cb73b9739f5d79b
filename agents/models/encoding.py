"""Encoding in which user text never becomes a control token, and exact truncation."""

from collections.abc import Sequence
from typing import Any, Literal

# A character that no pre-tokenizer joins to what follows, tried in this order.
_ANCHORS = ("\n", "\x00", "a")


class PlainText:
    """Encodes by the tokenizer's rules, except that control tokens in text stay text."""

    def __init__(self, tokenizer: Any) -> None:
        self._tokenizer = tokenizer
        self._rust = tokenizer.backend_tokenizer
        added = {int(i): token for i, token in tokenizer.added_tokens_decoder.items()}
        self._special = {int(i) for i in tokenizer.all_special_ids}
        self._special |= {i for i, token in added.items() if token.special}
        self._marks = self._special | {i for i, t in added.items() if str(t.content).strip()}
        self._unknown_id: int | None = tokenizer.unk_token_id
        self.start_ids = self._read_start_ids()
        """Ids that the tokenizer itself puts before a text (beginning of sequence)."""
        self._lead: list[int] = self._read_lead()

    def first_mark(self, ids: Sequence[int]) -> int | None:
        """Return the index of the first control token, or of another added token that is no white
        space; None without one."""
        return next((i for i, token in enumerate(ids) if token in self._marks), None)

    def encode(self, text: str) -> list[int]:
        """Encode plain text; control tokens are spelt out."""
        return self._encode(text, literal=True).ids

    def encode_between(self, markup: Sequence[str], messages: Sequence[str]) -> list[int]:
        """Encode messages within a template's markup as the tokenizer encodes the whole text, but
        spell out control tokens of the messages.

        Args:
            markup: the template's text before, between and after the messages.
            messages: texts of others.
        """
        return self._encode_between(markup, messages)[0]

    def encode_behind(
        self, markup: Sequence[str], messages: Sequence[str]
    ) -> tuple[list[int], int]:
        """Encode as :meth:`encode_between`, but as the continuation of other text; also return the
        number of ids before the first message."""
        for anchor in ("a", *_ANCHORS):
            alone = self.encode(anchor)
            ids, before = self._encode_between((anchor + markup[0], *markup[1:]), messages)
            if alone and ids[: len(alone)] == alone:
                return ids[len(alone) :], max(0, before - len(alone))
        return self._encode_between(markup, messages)

    def _encode_between(
        self, markup: Sequence[str], messages: Sequence[str]
    ) -> tuple[list[int], int]:
        text, spans = markup[0], []
        for message, after in zip(map(_clean, messages), markup[1:], strict=True):
            spans.append((len(text), len(text) + len(message)))
            text += message + after
        encoding = self._encode(text, literal=False)
        ids: list[int] = []
        before = sum(right <= len(markup[0]) for _, right in encoding.offsets)
        spelt: dict[str, list[int]] = {}
        for token, (left, right) in zip(encoding.ids, encoding.offsets):
            written = token in self._special and right > left
            if written and any(start <= left and right <= end for start, end in spans):
                mark = text[left:right]
                if mark not in spelt:
                    spelt[mark] = self.encode_after(mark)
                ids += spelt[mark]
            else:
                ids.append(token)
        return ids, before

    def has_control(self, text: str) -> bool:
        """Whether ``text`` spells a control token."""
        return any(token in self._special for token in self._encode(text, literal=False).ids)

    def encode_after(self, text: str) -> list[int]:
        """Encode ``text`` as the continuation of other text, without the space that some tokenizers
        put before the first word."""
        text = _clean(text)
        for anchor in _ANCHORS:
            alone = self.encode(anchor)
            if not alone or self._decode(alone) != anchor:
                continue
            ids = self.encode(anchor + text)
            if ids[: len(alone)] == alone:
                return ids[len(alone) :]
        return self.encode(text)

    def decode(self, ids: list[int]) -> str:
        """Decode ids as the continuation of other text, keeping a first space. Never raises for ids
        in the vocabulary."""
        if not self._lead or not ids:
            return self._decode(ids)
        return self._decode(self._lead + ids)[1:]

    def at_least(self, text: str) -> int:
        """Return a lower bound of the number of tokens, in which spelt control tokens count as one.
        Thread-safe, because it sets nothing in the tokenizer."""
        return len(self._rust.encode(_clean(text), add_special_tokens=False))

    def truncate(self, text: str, limit: int, keep: Literal["head", "tail"]) -> str:
        """Return the longest head (tail) of at most ``limit`` tokens."""
        if limit <= 0:
            return ""
        text = _clean(text)
        offsets = self._encode(text, literal=True).offsets
        if len(offsets) <= limit:
            return text
        size = len(text)
        # Cut at the first token beyond the limit; a character may span several tokens.
        cut = offsets[limit][0] if keep == "head" else size - offsets[-limit - 1][1]

        def piece(length: int) -> str:
            return text[:length] if keep == "head" else text[size - length :]

        # A cut can change the tokens around it, by a few tokens at most.
        while cut > 0 and (excess := len(self.encode(piece(cut))) - limit) > 0:
            cut = max(0, cut - excess)
        while cut < size and len(self.encode(piece(cut + 1))) <= limit:
            cut += 1
        return piece(cut)

    def unknown(self, text: str) -> list[str]:
        """Return the parts of ``text`` that become the unknown token or no token; spaces are
        ignored."""
        text = _clean(text)
        encoding = self._encode(text, literal=True)
        pairs = zip(encoding.ids, encoding.offsets)
        unknown = [text[left:right] for token, (left, right) in pairs if token == self._unknown_id]
        # Offsets do not reveal dropped characters, so each character is encoded separately.
        return unknown + [c for c in dict.fromkeys(text) if not c.isspace() and not self.encode(c)]

    def _encode(self, text: str, *, literal: bool) -> Any:
        self._rust.encode_special_tokens = literal
        return self._rust.encode(_clean(text), add_special_tokens=False)

    def _decode(self, ids: list[int]) -> str:
        return self._rust.decode(ids, skip_special_tokens=False)

    def _read_lead(self) -> list[int]:
        """Ids of a character to put first when decoding strips a leading space."""
        alone, word, spaced = self.encode("a"), self.encode_after("a"), self.encode_after(" a")
        strips = self._decode(spaced) == "a" == self._decode(alone)
        helps = self._decode(alone + spaced) == "a a" and self._decode(alone + word) == "aa"
        return alone if strips and helps else []

    def _read_start_ids(self) -> list[int]:
        self._rust.encode_special_tokens = False
        inner = self._rust.encode("a", add_special_tokens=False).ids
        whole = self._rust.encode("a", add_special_tokens=True).ids
        for start in range(len(whole) - len(inner) + 1):
            if whole[start : start + len(inner)] == inner:
                return whole[:start]
        return []


def _clean(text: str) -> str:
    """``text`` without lone surrogates, which no tokenizer accepts."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-8", "replace").decode()
    return text
