"""A tokenizer whose settings ask for a BOS in front of plain text gets one, and no other does."""

import json
import shutil
from pathlib import Path

import pytest
from transformers import AutoTokenizer

from coterie.models.loading import LoadedRole, load_team
from coterie.models.spec import ModelSpec


def role_of(checkpoint, tmp_path: Path, **says: object) -> LoadedRole:
    folder = tmp_path / "model"
    shutil.copytree(checkpoint("llama"), folder)
    settings = json.loads((folder / "tokenizer_config.json").read_text())
    settings |= {"bos_token": "<|im_start|>"} | {k: v for k, v in says.items() if k != "chat"}
    (folder / "tokenizer_config.json").write_text(json.dumps(settings))
    spec = ModelSpec(str(folder), device="cpu", chat=says.get("chat", "plain"))
    return load_team({"alice": spec}, set())["alice"]


@pytest.mark.parametrize("says", [{"add_bos_token": True}, {"add_bos_token": False}, {}])
def test_add_bos_token_is_obeyed(checkpoint, tmp_path: Path, says: dict[str, bool]) -> None:
    role = role_of(checkpoint, tmp_path, **says)
    front = [role.tokenizer.bos_token_id] if says.get("add_bos_token") else []
    ids = role.codec.open("7 + 8")
    assert ids == front + role.codec.extend("7 + 8")
    # As the tokenizer of the exported model gives it to plain transformers.
    role.tokenizer.save_pretrained(tmp_path / "export")
    assert AutoTokenizer.from_pretrained(tmp_path / "export")("7 + 8").input_ids == ids
    # A later message gets none.
    assert role.tokenizer.bos_token_id not in role.codec.follow("7 + 8", ended=True)


def test_a_template_that_writes_the_mark_gets_no_second_one(checkpoint, tmp_path: Path) -> None:
    plain = load_team({"alice": ModelSpec(str(checkpoint("llama")), device="cpu")}, set())["alice"]
    role = role_of(checkpoint, tmp_path, add_bos_token=True, chat="template")
    # ChatML: <|im_start|>user ... <|im_start|>assistant
    assert role.codec.open("7 + 8") == plain.codec.open("7 + 8")
    assert role.codec.open("7 + 8").count(role.tokenizer.bos_token_id) == 2
