"""System messages of roles: the template's own tokens, in every context, or one sentence."""

from typing import Any

import pytest
from transformers import AutoTokenizer

from coterie.agents.models.boundaries import boundaries
from coterie.agents.models.codec import HFCodec
from coterie.agents.models.loading import load_team
from coterie.agents.models.spec import ModelSpec
from coterie.agents.models.system_message import check_system, system_markup
from coterie.datatypes import UserError

from .test_codec import KINDS, chatml, messages

# Writes a system message of its own if there is none, as Qwen 2.5 does.
DEFAULT = (
    "{% if messages[0].role != 'system' %}<|im_start|>system\nI am Q.<|im_end|>\n{% endif %}"
    "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
NO_SYSTEM = {
    # Gemma 2, a template that ignores it, and ones that no context could keep apart.
    "{% if messages[0].role == 'system' %}{{ raise_exception('System role not supported') }}"
    "{% endif %}{{ messages[0].content }}": "without a system role (TemplateError: System role not",
    "{% for m in messages if m.role == 'user' %}{{ m.content }}{% endfor %}": "leaves the message",
    "{{ messages[0].content }}{{ messages[0].content }}{{ messages[-1].content }}": "repeats it",
    "{{ messages[-1].content }}{{ messages[0].content }}": "puts it behind the user's",
    "{{ messages[0].content | upper }}{{ messages[-1].content }}": "leaves the message out",
}


@pytest.mark.parametrize("name", ["chatml", "llama"])
def test_a_context_begins_as_the_template_writes_it(name: str) -> None:
    tokenizer = KINDS[name]()
    turns = messages(("system", "Be brief.\nThink."), ("user", "7 + 8 ="))
    want = tokenizer.apply_chat_template(turns, add_generation_prompt=True, return_dict=False)
    # White space around it, such as the line break at a file's end, is no part of it.
    codec = HFCodec(tokenizer, system=" Be brief.\nThink.\n")
    assert codec.open("7 + 8 =") == want
    assert codec.open_chat(turns[1:]) == want
    plain = HFCodec(tokenizer)
    # Later turns have nothing of it.
    assert codec.follow("why", ended=True) == plain.follow("why", ended=True)
    assert codec.without_system().open("7 + 8 =") == plain.open("7 + 8 =")
    assert plain.without_system() is plain


def test_it_replaces_the_template_s_own() -> None:
    tokenizer = chatml(DEFAULT)

    def shown(system: str) -> str:
        ids = HFCodec(tokenizer, system=system).open("why")
        return tokenizer.decode(ids, skip_special_tokens=False)

    user = "<|im_start|>user\nwhy<|im_end|>\n<|im_start|>assistant\n"
    assert shown("") == "<|im_start|>system\nI am Q.<|im_end|>\n" + user
    assert shown("Be brief.") == "<|im_start|>system\nBe brief.<|im_end|>\n" + user


def test_it_stands_before_the_system_message_of_a_conversation() -> None:
    tokenizer = chatml()
    codec = HFCodec(tokenizer, system="Be brief.")
    ids = codec.open_chat(messages(("system", "Help."), ("user", "why")))
    assert ids == HFCodec(tokenizer).open_chat(
        messages(("system", "Be brief.\n\nHelp."), ("user", "why"))
    )


def test_its_control_tokens_are_spelt_out() -> None:
    tokenizer = chatml()
    codec = HFCodec(tokenizer, system="a<|im_end|>b")
    end = tokenizer.convert_tokens_to_ids("<|im_end|>")
    assert codec.open("why").count(end) == 2  # the template's, of two messages
    assert "a<|im_end|>b" in tokenizer.decode(codec.open("why"), skip_special_tokens=False)


@pytest.mark.parametrize("template", NO_SYSTEM)
def test_a_template_without_a_place_for_it_is_refused(template: str) -> None:
    with pytest.raises(UserError) as caught:
        system_markup(chatml(template))
    assert NO_SYSTEM[template] in str(caught.value)


def test_the_refusal_comes_before_weights_and_names_role_and_model(
    checkpoint: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("coterie.agents.models.loading._load_base", lambda *_, **__: 1 / 0)
    with pytest.raises(UserError, match=r"agents.ann.system: tiny:alice has no chat template; le"):
        load_team({"ann": ModelSpec("tiny:alice", system="Be brief.")}, set())
    check_system(ModelSpec(str(checkpoint("qwen3")), system="Be brief."), "ann")
    with pytest.raises(UserError, match="needs a chat template"):
        HFCodec(chatml(None), system="Be brief.")


def test_a_loaded_role_has_it_and_shares_its_base(load_role: Any, checkpoint: Any) -> None:
    role = load_role("qwen3", system="Be brief.")
    tokenizer: Any = AutoTokenizer.from_pretrained(checkpoint("qwen3"))
    assert role.codec.open("why") == HFCodec(tokenizer, system="Be brief.").open("why")
    # The doctor's comparison of turns is not disturbed by it.
    assert boundaries(role.codec, role.tokenizer) == boundaries(HFCodec(tokenizer), tokenizer)
