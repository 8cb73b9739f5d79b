"""A tokenizer whose settings ask for a BOS in front of plain text gets one, and no other does."""

import json
import shutil
from pathlib import Path

import pytest
from transformers import AutoTokenizer

from coterie.agents.models.loading import LoadedRole


@pytest.fixture
def role_of(checkpoint, load_role, tmp_path: Path):
    """A role whose tokenizer's settings say more."""

    def role(says: dict[str, bool], chat: str) -> LoadedRole:
        folder = Path(shutil.copytree(checkpoint("llama"), tmp_path / "model"))
        settings = json.loads((folder / "tokenizer_config.json").read_text())
        settings |= {"bos_token": "<|im_start|>"} | says
        (folder / "tokenizer_config.json").write_text(json.dumps(settings))
        return load_role(folder, chat=chat)

    return role


@pytest.mark.parametrize("says", [{"add_bos_token": True}, {"add_bos_token": False}, {}])
def test_add_bos_token_is_obeyed(role_of, tmp_path: Path, says: dict[str, bool]) -> None:
    role = role_of(says, "plain")
    front = [role.tokenizer.bos_token_id] if says.get("add_bos_token") else []
    ids = role.codec.open("7 + 8")
    assert ids == front + role.codec.extend("7 + 8")
    # As the tokenizer of the exported model gives it to plain transformers.
    role.tokenizer.save_pretrained(tmp_path / "export")
    assert AutoTokenizer.from_pretrained(tmp_path / "export")("7 + 8").input_ids == ids
    # A later message gets none.
    assert role.tokenizer.bos_token_id not in role.codec.follow("7 + 8", ended=True)


def test_a_template_that_writes_the_mark_gets_no_second_one(load_role, role_of) -> None:
    role = role_of({"add_bos_token": True}, "template")
    # ChatML: <|im_start|>user ... <|im_start|>assistant
    assert role.codec.open("7 + 8") == load_role("llama").codec.open("7 + 8")
    assert role.codec.open("7 + 8").count(role.tokenizer.bos_token_id) == 2
