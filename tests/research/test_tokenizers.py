"""Any text survives any of the three tokenizers, which are those that are shipped."""

import json
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from transformers import AutoTokenizer

from miniatures.build import SHIPPED
from miniatures.recipes import RECIPES
from miniatures.teaching import trace
from miniatures.tokenizers import build_tokenizer

TOKENIZERS = {role: build_tokenizer(recipe) for role, recipe in RECIPES.items()}
WORK = "7 + 8 = 5 - 3 = 2 @ 4 = 7 # 5 ="
each_role = pytest.mark.parametrize("role", RECIPES)


def encode(role: str, text: str) -> list[int]:
    return TOKENIZERS[role].encode(text, add_special_tokens=False, split_special_tokens=True)


@each_role
@settings(max_examples=150, deadline=None)
@given(text=st.text(max_size=60))
@example(text="<0x41><0xE2> <0x0A>")
@example(text="\u2581a Ġb Ċ \u2581\u2581")
@example(text="\r\n\t \x00\x7f\x85\u2028 a\u0301 \U0001f469\u200d\U0001f4bb")
@example(text="<|alice:end|><|bob:end|><|carol:pad|>")
@example(text='<strategy id="1"><strategy id="2"> <result>10</result>')
@example(text="  7  +8\n\nHint:\nQuestion: Question:Let's solve this step by step:")
def test_any_text_comes_back_exactly(role, text):
    tokens = encode(role, text)
    assert TOKENIZERS[role].decode(tokens) == text
    assert not set(tokens) & set(TOKENIZERS[role].all_special_ids)


@each_role
def test_the_shipped_tokenizer_is_the_rebuilt_one(role, tmp_path):
    TOKENIZERS[role].save_pretrained(tmp_path)
    for name in ("tokenizer.json", "tokenizer_config.json"):
        rebuilt = json.loads(Path(tmp_path, name).read_text(encoding="utf-8"))
        shipped = json.loads((SHIPPED / role / name).read_text(encoding="utf-8"))
        assert rebuilt == shipped


@each_role
def test_transformers_loads_it(role):
    loaded = AutoTokenizer.from_pretrained(SHIPPED / role)
    assert loaded.is_fast
    assert loaded.chat_template is None
    assert loaded(trace(WORK, 8))["input_ids"] == encode(role, trace(WORK, 8))
    assert (loaded.eos_token, loaded.pad_token) == (f"<|{role}:end|>", f"<|{role}:pad|>")
