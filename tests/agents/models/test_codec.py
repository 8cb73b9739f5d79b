"""Codecs over tokenizers of the three common kinds, made on the fly."""

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import (
    Tokenizer,
    decoders,
    models,
    normalizers,
    pre_tokenizers,
    processors,
    trainers,
)
from transformers import PreTrainedTokenizerFast

from coterie.agents.models.codec import HFCodec
from coterie.datatypes import UserError

from .families import TEXT, byte_level

CHATML = (
    "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
# Trims what it is given, and begins with the mark of the text's beginning.
LLAMA = (
    "{{ bos_token }}{% for m in messages %}<|start_header_id|>{{ m.role }}<|end_header_id|>\n\n"
    "{{ m.content | trim }}<|eot_id|>{% endfor %}"
    "{% if add_generation_prompt %}<|start_header_id|>assistant<|end_header_id|>\n\n{% endif %}"
)
MISTRAL = (
    "{{ bos_token }}{% for m in messages %}{% if m.role == 'user' %}[INST] {{ m.content }} [/INST]"
    "{% else %} {{ m.content }}</s>{% endif %}{% endfor %}"
)
# Drops thinking from earlier turns, and opens an empty thinking block only in the first prompt.
FORGETFUL = (
    "{% for m in messages %}<|im_start|>{{ m.role }}\n"
    "{{ m.content.split('</think>')[-1] }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n"
    "{% if messages|length == 1 %}<think>\n\n</think>\n\n{% endif %}{% endif %}"
)
ONE_TURN = (
    "{% if messages|length > 1 %}{{ raise_exception('one turn only') }}{% endif %}"
    "<|im_start|>{{ messages[0].content }}<|im_end|>"
)


def chatml(template: str | None = CHATML) -> PreTrainedTokenizerFast:
    return byte_level(template, ["<|im_start|>", "<|im_end|>", "<|endoftext|>"], "<|im_end|>")


def llama() -> PreTrainedTokenizerFast:
    begin, end, header = "<|begin_of_text|>", "<|end_of_text|>", "<|start_header_id|>"
    special = [begin, end, header, "<|end_header_id|>", "<|eot_id|>"]
    tokenizer = byte_level(LLAMA, special, end, bos_token=begin)
    tokenizer.backend_tokenizer.post_processor = processors.TemplateProcessing(
        single=f"{begin} $A", special_tokens=[(begin, 0)]
    )
    return tokenizer


def mistral() -> PreTrainedTokenizerFast:
    backend = Tokenizer(models.BPE(unk_token="<unk>", byte_fallback=True, fuse_unk=True))
    spaced = [normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")]
    backend.normalizer = normalizers.Sequence(spaced)
    read = [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse()]
    backend.decoder = decoders.Sequence([*read, decoders.Strip(" ", 1, 0)])
    special = ["<unk>", "<s>", "</s>", "[INST]", "[/INST]"]
    trainer = trainers.BpeTrainer(vocab_size=150, show_progress=False, special_tokens=special)
    backend.train_from_iterator([t.replace("→", "") for t in TEXT], trainer)
    # The bytes are ordinary tokens of the vocabulary.
    content = json.loads(backend.to_str())
    vocab = content["model"]["vocab"]
    vocab |= {f"<0x{i:02X}>": len(vocab) + i for i in range(256)}
    backend = Tokenizer.from_str(json.dumps(content))
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=backend, unk_token="<unk>", bos_token="<s>", eos_token="</s>"
    )
    tokenizer.chat_template = MISTRAL
    return tokenizer


def messages(*talk: tuple[str, str]) -> list[dict[str, Any]]:
    return [{"role": role, "content": content} for role, content in talk]


TALK = messages(("system", "Be brief."), ("user", "hello"), ("assistant", "12"), ("user", " why "))
KINDS = {"chatml": chatml, "llama": llama, "mistral": mistral}
CODECS = {name: HFCodec(make()) for name, make in KINDS.items()}
MARKS = {"chatml": "<|im_end|>", "llama": "<|eot_id|>", "mistral": "[/INST]"}


@pytest.mark.parametrize("name", KINDS)
def test_open_equals_the_template_s_own_encoding(name: str) -> None:
    tokenizer = KINDS[name]()
    for message in ("Question: 7 + 8 =", "  hello\n\nworld \n", "wörld → 12"):
        turns = [{"role": "user", "content": message}]
        want = tokenizer.apply_chat_template(turns, add_generation_prompt=True, return_dict=False)
        assert HFCodec(tokenizer).open(message) == want


@pytest.mark.parametrize("name", KINDS)
def test_user_text_never_becomes_a_control_token(name: str) -> None:
    tokenizer, codec = KINDS[name](), CODECS[name]
    special = set(tokenizer.all_special_ids) | {
        i for i, t in tokenizer.added_tokens_decoder.items() if t.special
    }
    spelt = "".join(t.content for t in tokenizer.added_tokens_decoder.values())
    harmless = codec.open("x")
    for attack in (MARKS[name], f"a {MARKS[name]} b", f"{MARKS[name]}{spelt}\n"):
        ids = codec.open(attack)
        assert [i for i in ids if i in special] == [i for i in harmless if i in special]
        # Next to a mark, a tokenizer that writes a space before each word writes one more.
        assert "".join(attack.split()) in "".join(codec.decode(ids).split())
        assert not special & set(codec.extend(attack))
        assert codec.decode(codec.extend(attack)) == attack
        assert codec.follow(attack, ended=True).count(codec.eos_ids[0]) <= 1
        assert codec.count(attack) > 3


@pytest.mark.parametrize("name", KINDS)
@settings(max_examples=40, deadline=None)
@given(text=st.text(max_size=40))
def test_any_text_round_trips(name: str, text: str) -> None:
    codec = CODECS[name]
    assert codec.decode(codec.extend(text)) == text
    assert codec.unknown_tokens(text) == []
    assert all(0 <= i < codec.vocab_size for i in codec.open(text))


@pytest.mark.parametrize("name", KINDS)
@settings(max_examples=40, deadline=None)
@given(text=st.text("ab 7+8→é\n<|>", max_size=60), limit=st.integers(-1, 30), head=st.booleans())
def test_truncation_is_exact(name: str, text: str, limit: int, head: bool) -> None:
    codec = CODECS[name]
    cut = codec.truncate(text, limit, keep="head" if head else "tail")
    assert text.startswith(cut) if head else text.endswith(cut)
    assert codec.count(cut) <= max(limit, 0)
    if limit <= 0:
        assert cut == ""
    elif len(cut) < len(text):
        longer = text[: len(cut) + 1] if head else text[len(text) - len(cut) - 1 :]
        assert codec.count(longer) > limit
    assert (cut == text) == (codec.count(text) <= limit or not text)


def test_truncation_by_hand() -> None:
    # "→" is three bytes and was seen in training as part of " →"; "ß" was never seen: two tokens.
    codec = CODECS["chatml"]
    assert codec.count("ßß") == 4
    assert codec.truncate("ßß", 3) == "ß"
    assert codec.truncate("ßß", 1) == ""
    assert codec.truncate("aßb", 2, keep="tail") == "b"
    assert codec.truncate("aßb", 3, keep="tail") == "ßb"


def test_continuations_get_no_space_of_their_own() -> None:
    codec = CODECS["mistral"]
    assert codec.decode(codec.extend("foo")) == "foo"
    assert codec.decode(codec.extend(" foo")) == " foo"
    first = codec.extend("7 +")
    assert codec.decode(first + codec.extend("8 ")) == "7 +8 "
    # A token that is only a space is text: the turn has not ended.
    assert codec.decode(codec.extend(" ")) == " "


def test_ends_are_silent_and_other_control_tokens_are_not() -> None:
    tokenizer = chatml()
    end, start, other = tokenizer.convert_tokens_to_ids(
        ["<|im_end|>", "<|im_start|>", "<|endoftext|>"]
    )
    codec = HFCodec(tokenizer, eos_ids=[other], vocab_size=500)
    assert codec.eos_ids == (end, other)
    hello = codec.extend("hello")
    assert codec.decode([*hello, end]) == "hello"
    assert codec.decode([end]) == codec.decode([other]) == ""
    assert codec.decode([start, *hello]) == "<|im_start|>hello"
    # Ids of padded logits, and ids of nothing.
    assert codec.vocab_size == 500
    assert codec.decode([*hello, 499, 10**9, -5]) == "hello"


def test_the_mark_that_closes_a_turn_is_an_end() -> None:
    # The tokenizer's own end is <|end_of_text|>; the template closes turns with <|eot_id|>.
    ends = llama().convert_tokens_to_ids(["<|eot_id|>", "<|end_of_text|>"])
    assert CODECS["llama"].eos_ids == tuple(ends)  # type: ignore[arg-type]


def test_a_template_that_rewrites_history_is_appended_to() -> None:
    codec = HFCodec(chatml(FORGETFUL))
    assert codec.decode(codec.open("hi")).endswith("assistant\n<think>\n\n</think>\n\n")
    assert (
        codec.decode(codec.follow("why", ended=True))
        == "\n<|im_start|>user\nwhy\n<|im_start|>assistant\n"
    )


def test_plain_text() -> None:
    tokenizer = llama()
    codec = HFCodec(tokenizer, chat="plain")
    # The tokenizer's own beginning, then the text as it is.
    assert codec.open("hello ")[0] == tokenizer.bos_token_id
    assert codec.decode(codec.open("hello ")[1:]) == "hello "
    assert codec.eos_ids == (tokenizer.eos_token_id,)
    assert codec.follow("why", ended=False) == [tokenizer.eos_token_id, *codec.extend("\nwhy")]
    assert codec.follow("why", ended=True) == codec.extend("\nwhy")
    assert HFCodec(chatml(None)).open("hello") == HFCodec(chatml(None), chat="plain").open("hello")


def test_what_is_no_chat_tokenizer_is_refused() -> None:
    with pytest.raises(UserError, match=r"no chat template; say --agents\.ROLE\.chat plain"):
        HFCodec(chatml(None), chat="template")
    with pytest.raises(UserError, match="cannot render a second"):
        HFCodec(chatml(ONE_TURN)).follow("why", ended=True)
    with pytest.raises(UserError, match="no fast implementation"):
        HFCodec(object())


def test_unknown_text_is_reported() -> None:
    words = {"[UNK]": 0, "7": 1, "+": 2, "8": 3}
    backend = Tokenizer(models.WordLevel(words, unk_token="[UNK]"))
    backend.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    codec = HFCodec(PreTrainedTokenizerFast(tokenizer_object=backend, unk_token="[UNK]"))
    assert codec.unknown_tokens("7 + 8") == []
    assert codec.unknown_tokens("7 - 8 apples") == ["-", "apples"]
    # A BPE without an unknown token and without bytes leaves characters out.
    backend = Tokenizer(models.BPE({"7": 0, "+": 1}, []))
    codec = HFCodec(PreTrainedTokenizerFast(tokenizer_object=backend))
    assert codec.unknown_tokens("7x+é") == ["x", "é"]


@pytest.mark.parametrize("name", KINDS)
def test_hostile_text_is_quick(name: str) -> None:
    codec = CODECS[name]
    # Were it quadratic, seconds at a megabyte would already be minutes here.
    for unit in ("\\", "<|im_end|>", "\ud800 ", " ", "[/INST]"):
        text = unit * (3 * 10**4 // len(unit))
        codec.open(text)
        codec.follow(text, ended=True)
        codec.extend(text)
        assert codec.count(codec.truncate(text, 50, keep="tail")) <= 50
        assert codec.count(codec.truncate(text, 50)) <= 50


TOOLS = (
    "{% if tools %}{{ tools | tojson }}<tool_call>{% endif %}{% for m in messages %}<|im_start|>"
    "{{ m.role }}\n{{ m.content }}{% for c in m.tool_calls or [] %}<tool_call>\n"
    '{"name": "{{ c.function.name }}", "arguments": '
    "{{ c.function.arguments | tojson }}}\n</tool_call>{% endfor %}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)


@pytest.mark.parametrize("name", ["chatml", "llama"])
def test_a_conversation_equals_the_template_s_own_encoding(name: str) -> None:
    tokenizer = KINDS[name]()
    want = tokenizer.apply_chat_template(TALK, add_generation_prompt=True, return_dict=False)
    codec = HFCodec(tokenizer)
    assert codec.open_chat(TALK) == want
    assert codec.open_chat(messages(("user", "hello"))) == codec.open("hello")


@pytest.mark.parametrize("name", ["chatml", "llama"])
def test_nobody_s_text_becomes_a_control_token(name: str) -> None:
    codec, mark = CODECS[name], MARKS[name]
    harmless, attacked = (
        codec.open_chat([{**message, "content": text} for message in TALK]) for text in ("x", mark)
    )
    assert harmless
    assert attacked
    ends = codec.eos_ids[0]
    assert attacked.count(ends) == harmless.count(ends)
    assert codec.decode(attacked).count(mark) == 4


def test_what_a_template_does_not_take_is_none() -> None:
    refusing = "{% if messages[0].role == 'system' %}{{ 1/0 }}{% endif %}" + CHATML
    for template, chat in ((refusing, "auto"), (None, "auto"), (CHATML, "plain")):
        assert HFCodec(chatml(template), chat=chat).open_chat(TALK) is None
    codec = HFCodec(chatml())
    assert codec.open_chat(TALK) is not None
    # One that leaves something out.
    codec._tokenizer.chat_template = CHATML.replace("messages %}", "messages[1:] %}", 1)
    assert codec.open_chat(TALK) is None


def test_tools_are_told_by_templates_that_know_them() -> None:
    tokenizer = chatml(TOOLS)
    codec, tool = HFCodec(tokenizer), {"type": "function", "function": {"name": "add"}}
    assert codec.knows_tools
    assert not CODECS["chatml"].knows_tools
    called = {"type": "function", "function": {"name": "add", "arguments": {"a": 1}}}
    turns = [*TALK[:2], {**TALK[2], "tool_calls": [called]}, TALK[3]]
    want = tokenizer.apply_chat_template(
        turns, tools=[tool], add_generation_prompt=True, return_dict=False
    )
    assert codec.open_chat(turns, [tool]) == want
    # Neither a tool nor a call may smuggle in a control token.
    called["function"]["arguments"] = {"a": "<|im_end|>"}  # type: ignore[index]
    assert codec.open_chat(turns, [tool]) is None
    assert codec.open_chat(TALK, [{**tool, "x": "<|im_end|>"}]) is None


@pytest.mark.parametrize(
    "call",
    [
        "<function={{ c.function.name }}><parameter=a>{{ c.function.arguments.a }}</parameter>",
        "{{ c.function.name }}\n<arg_key>a</arg_key>\n<arg_value>1</arg_value>",
        "{{ c.missing.name }}",
    ],
)
def test_templates_whose_calls_are_written_in_other_ways_know_no_tools(call: str) -> None:
    """The gateway could not read such a call: it introduces the tools itself."""
    start, end = TOOLS.index('\n{"name"'), TOOLS.index("\n</tool_call>")
    codec = HFCodec(chatml(TOOLS[:start] + call + TOOLS[end:]))
    assert not codec.knows_tools


RESULT = {"role": "tool", "content": "5", "tool_call_id": "a1"}


@pytest.mark.parametrize("name", ["chatml", "llama"])
@pytest.mark.parametrize(
    "after",
    [
        [{"role": "user", "content": " why "}],
        [RESULT],
        [RESULT, {**RESULT, "content": "6"}, {"role": "user", "content": "hello"}],
        [{"role": "system", "content": "Be brief."}],
    ],
)
def test_what_follows_an_answer_equals_the_template_s_own_encoding(
    name: str, after: list[Any]
) -> None:
    tokenizer, codec = KINDS[name](), CODECS[name]
    turns = messages(("user", "hello"), ("assistant", "12"))
    want = tokenizer.apply_chat_template(
        [*turns, *after], add_generation_prompt=True, return_dict=False
    )
    behind = codec.follow_chat(after, ended=False)
    assert codec.open("hello") + codec.extend("12") + (behind or []) == want
    # The answer's own mark of its end is not written twice.
    assert codec.follow_chat(after, ended=True) == (behind or [])[1:]
    if after[0]["role"] == "user":
        assert behind == codec.follow(" why ", ended=False)


def test_what_follows_smuggles_no_control_token_in() -> None:
    template = CHATML.replace("{{ m.content }}", "{{ m.tool_call_id }}{{ m.content }}")
    codec = HFCodec(chatml(template))
    for bad in ({"tool_call_id": "<|im_end|>"}, {"name": "<|im_end|>"}):
        assert codec.follow_chat([{**RESULT, **bad}], ended=True) is None
        assert codec.open_chat([*TALK, {**RESULT, **bad}]) is None
    first, other = (
        codec.follow_chat([{**RESULT, "content": text}], ended=True) or []
        for text in ("5", "<|im_end|>")
    )
    assert first.count(codec.eos_ids[0]) == other.count(codec.eos_ids[0]) == 1


def test_what_a_template_does_not_take_behind_an_answer_is_none() -> None:
    refusing = CHATML.replace("{{ m.content }}", "{{ 1/0 if m.role == 'tool' }}{{ m.content }}")
    assert HFCodec(chatml(refusing)).follow_chat([RESULT], ended=True) is None
    assert HFCodec(chatml(None)).follow_chat([RESULT], ended=True) is None


@pytest.mark.parametrize("codec", CODECS.values(), ids=CODECS)
def test_a_count_that_changes_nothing_of_the_tokenizer(codec: HFCodec) -> None:
    for text in ("", "hello there", "a b\n c", "é\ud800"):
        assert codec.at_least(text) == codec.count(text)
    codec.open("x")  # after which control tokens are read
    marks = codec.decode(codec.eos_ids[:1]) or "<|im_end|><|im_start|>"
    assert codec.at_least(marks) <= codec.count(marks)
