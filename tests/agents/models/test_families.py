"""From the second turn on a context is what the template would write, whoever ended the turn."""

from functools import cache
from typing import Any

import pytest

from coterie.agents.models.boundaries import boundaries
from coterie.agents.models.codec import HFCodec

from .families import FAMILIES, OPENS, OPENS_NONE, Family

ASKED = ("7 + 8 ?", "And 3 ?", "hello")
SAID = ("15", "the answer is 12")


@cache
def made(name: str) -> tuple[Any, HFCodec]:
    family = FAMILIES[name]
    tokenizer = family.tokenizer()
    ends = [tokenizer.convert_tokens_to_ids(mark) for mark in family.ends]
    return tokenizer, HFCodec(tokenizer, eos_ids=ends)


def written(tokenizer: Any, said: tuple[str, ...]) -> str:
    """The template's own text of a conversation of three turns."""
    turns = [
        {"role": role, "content": content}
        for asked, answer in zip(ASKED, (*said, ""))
        for role, content in (("user", asked), ("assistant", answer))
    ][:-1]
    return tokenizer.apply_chat_template(turns, add_generation_prompt=True, tokenize=False)


def ids_of(tokenizer: Any, text: str) -> list[int]:
    backend = tokenizer.backend_tokenizer
    backend.encode_special_tokens = False
    return backend.encode(text, add_special_tokens=False).ids


def ours(name: str, mark: int | None) -> list[int]:
    """The context of the third turn, each answer ended by ``mark`` or cut off."""
    tokenizer, codec = made(name)
    text, lead = written(tokenizer, SAID), FAMILIES[name].lead
    ids = codec.open(ASKED[0])
    for said, asked in zip(SAID, ASKED[1:]):
        # What a model samples: the tokens that the template's text has there.
        before = text[: text.index(lead + said)]
        start = ids_of(tokenizer, before)
        sampled = ids_of(tokenizer, before + lead + said)
        assert sampled[: len(start)] == start
        ids += sampled[len(start) :] + ([] if mark is None else [mark])
        ids += codec.follow(asked, ended=mark is not None, mark=mark)
    return ids


def ended(family: Family, text: str, mark: str) -> str:
    """The template's text with answers that the model ended by ``mark`` itself."""
    for said in SAID:
        closed = f"{said}{family.space}{family.mark}"
        assert text.count(closed) == 1, (closed, text)
        if mark == family.mark or (family.mark and not family.names_user):
            text = text.replace(closed, f"{said}{mark}")
        else:
            text = text.replace(closed, f"{said}{mark}{family.space}{family.mark}")
    return text


@pytest.mark.parametrize("name", FAMILIES)
def test_a_turn_that_was_cut_off_is_closed_as_the_template_does(name: str) -> None:
    tokenizer, _ = made(name)
    want = ids_of(tokenizer, written(tokenizer, SAID))
    assert ours(name, None) == want


@pytest.mark.parametrize("name", FAMILIES)
def test_a_turn_that_the_model_ended_is_closed_once(name: str) -> None:
    tokenizer, codec = made(name)
    family = FAMILIES[name]
    text = written(tokenizer, SAID)
    ends = dict.fromkeys((family.mark, family.eos, *family.ends))
    if name == "gpt-oss":
        # <|end|> closes each message of a turn, the thought as well.
        assert tokenizer.convert_tokens_to_ids("<|end|>") not in codec.eos_ids
        del ends["<|end|>"]
    for mark in filter(None, ends):
        token = tokenizer.convert_tokens_to_ids(mark)
        assert token in codec.eos_ids
        assert codec.decode([token]) == ""
        want = ids_of(tokenizer, ended(family, text, mark))
        assert ours(name, token) == want, mark
    first = codec.eos_ids[0]
    assert codec.follow("x", ended=True) == codec.follow("x", ended=True, mark=first)


@pytest.mark.parametrize("name", FAMILIES)
def test_what_follows_in_messages_is_what_follows(name: str) -> None:
    _, codec = made(name)
    message = [{"role": "user", "content": "And 3 ?"}]
    for mark in (None, *codec.eos_ids):
        assert codec.follow_chat(message, ended=mark is not None, mark=mark) == codec.follow(
            "And 3 ?", ended=mark is not None, mark=mark
        )


@pytest.mark.parametrize("name", OPENS)
def test_a_template_that_opens_a_thought(name: str) -> None:
    template, begun = OPENS[name]
    special = ("<|im_start|>", "<|im_end|>", "<|start|>", "<|message|>", "<|channel|>", "<|end|>")
    bos = "<｜begin▁of▁sentence｜>"
    for more in ((), ("<think>", "</think>", "<|think|>")):
        family = Family(template, (*special, *more), "<|endoftext|>", bos=bos)
        codec = HFCodec(family.tokenizer())
        for message in ("7 + 8 =", "Use <think> and </think>.", "a\n</think>"):
            context = codec.open(message)
            assert codec.opened_thought(context) == begun
            context += codec.extend("so 15</think>15")
            assert codec.opened_thought(context) == ""
            context += codec.follow(message, ended=False)
            assert codec.opened_thought(context) == begun


@pytest.mark.parametrize("name", OPENS_NONE)
def test_a_template_that_opens_none(name: str) -> None:
    family = Family(OPENS_NONE[name], ("<|im_start|>", "<|im_end|>"), "<|im_end|>")
    codec = HFCodec(family.tokenizer())
    for message in ("7 + 8 =", "Use <think> and </think>.", "Begin with <think>"):
        assert codec.opened_thought(codec.open(message)) == ""


def test_a_prompt_of_plain_text_opens_a_thought_itself() -> None:
    codec = HFCodec(FAMILIES["qwen2.5"].tokenizer(), chat="plain")
    assert codec.opened_thought(codec.open("7 + 8 =\nAssistant: <think>")) == "<think>"
    assert codec.opened_thought(codec.open("Think in <think> and </think>: 7 + 8 =")) == ""


@pytest.mark.parametrize("name", FAMILIES)
def test_the_doctor_finds_no_fault_with_ended_turns(name: str) -> None:
    tokenizer, codec = made(name)
    found = {each.name: each.fault for each in boundaries(codec, tokenizer)}
    assert found["assistant → user"] in ("", "begins the answer otherwise", "refuses it")


@pytest.mark.parametrize(
    ("name", "fault"),
    [
        ("spaced-chatml", "ends the answer twice"),
        ("glm4", "loses the next speaker's mark"),
        ("baichuan", "loses the next speaker's mark"),
    ],
)
def test_the_doctor_sees_a_second_end_and_a_lost_mark(name: str, fault: str) -> None:
    class Careless(HFCodec):
        """Drops the first id behind an answer where it is an end, and nothing else."""

        def _behind(self, ids: list[int], head: int, mark: int | None) -> list[int]:
            return ids[1:] if ids[0] in self.eos_ids else ids

    tokenizer, codec = made(name)
    careless = Careless(tokenizer, eos_ids=codec.eos_ids)
    found = {each.name: each.fault for each in boundaries(careless, tokenizer)}
    assert found["assistant → user"] == fault
