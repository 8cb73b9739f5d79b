import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tokenizers import Tokenizer

from coterie.agents.models.locate import TINY
from coterie.evaluation.report.decode import RoleTokenizers, token_texts

ALICE = TINY / "alice" / "tokenizer.json"


@pytest.fixture(scope="module")
def tokenizer() -> Any:
    return Tokenizer.from_file(str(ALICE))


@pytest.mark.parametrize("text", ["7 # 0 = 7 </result>", "naïve 日本 🎉!", " a  b\n\nc"])
def test_the_texts_of_tokens_make_the_whole_text(tokenizer: Any, text: str) -> None:
    ids = tokenizer.encode(text).ids
    texts = token_texts(tokenizer, ids)
    assert len(texts) == len(ids)
    assert "".join(texts) == text


def test_a_character_of_several_tokens_stands_at_its_last_one(tokenizer: Any) -> None:
    # One token a byte: the euro sign has three.
    assert token_texts(tokenizer, tokenizer.encode("€").ids) == ["", "", "€"]


def test_any_ids_are_survived(tokenizer: Any) -> None:
    draw = random.Random(0)
    for _ in range(300):
        ids = [draw.randrange(tokenizer.get_vocab_size() + 50) for _ in range(40)]
        assert len(token_texts(tokenizer, ids)) == 40


def test_half_a_character_at_the_end_is_shown(tokenizer: Any) -> None:
    assert "".join(token_texts(tokenizer, tokenizer.encode("a🎉").ids[:-1])) == "a\ufffd"


def test_a_stored_model_comes_before_the_one_that_it_was_made_of(tmp_path: Path) -> None:
    (tmp_path / "final" / "alice").mkdir(parents=True)
    stored = ALICE.read_text().replace("<|alice:end|>", "<|stored|>")
    (tmp_path / "final" / "alice" / "tokenizer.json").write_text(stored)
    end = Tokenizer.from_file(str(ALICE)).token_to_id("<|alice:end|>") or 0
    agents = {"alice": {"model": "tiny:alice"}}
    assert RoleTokenizers(tmp_path, agents).tokens("alice", [end]) == ["<|stored|>"]
    assert RoleTokenizers(tmp_path / "other", agents).tokens("alice", [end]) == ["<|alice:end|>"]


def test_a_role_without_a_model_speaks_the_first_ones_vocabulary(tmp_path: Path) -> None:
    agents = {
        "expert": {"model": "server:http://127.0.0.1:9/v1?model=x"},
        "alice": {"model": "tiny:alice"},
    }
    decoder = RoleTokenizers(tmp_path, agents)
    assert decoder.tokens("expert", [357]) == decoder.tokens("alice", [357])


@pytest.mark.parametrize("model", ["/nowhere/model", "nobody/has-this-model", "tiny:nobody"])
def test_a_tokenizer_that_cannot_be_had_is_told(tmp_path: Path, model: str) -> None:
    decoder = RoleTokenizers(tmp_path, {"alice": {"model": model}})
    assert decoder.tokens("alice", [1]) is None
    assert decoder.missing == {"alice"}


def test_another_tokenizer_is_found_out(tmp_path: Path, trace: Callable[..., Any]) -> None:
    row = trace("alice_0", "7 # 0 =", " 7 </result>")
    start, end = row["turns"][0]
    ids = row["tokens"][start:end]
    assert RoleTokenizers(tmp_path, {"alice": {"model": "tiny:alice"}}).agrees(
        "alice", ids, row["texts"]
    )
    other = RoleTokenizers(tmp_path, {"alice": {"model": "tiny:bob"}})
    assert not other.agrees("alice", ids, row["texts"])
