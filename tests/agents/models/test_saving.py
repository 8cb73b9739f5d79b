"""A later checkpoint equals the one that transformers would write in its place."""

from pathlib import Path

import pytest
import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file

from coterie.agents.models import saving
from coterie.agents.models.saving import CheckpointWriter


def change(module) -> None:
    with torch.no_grad():
        for p in module.parameters():
            p.mul_(1.5)


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def folders(root: Path, *names: str) -> list[Path]:
    made = [root / name for name in names]
    for folder in made:
        folder.mkdir()
    return made


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch):
    """How often transformers has written a model."""
    from transformers import PreTrainedModel

    calls: list[str] = []
    theirs = PreTrainedModel.save_pretrained

    def save_pretrained(self, folder, *args, **kwargs):
        calls.append(str(folder))
        return theirs(self, folder, *args, **kwargs)

    monkeypatch.setattr(PreTrainedModel, "save_pretrained", save_pretrained)
    return calls


@pytest.mark.parametrize("name", ["qwen3", "llama", "phi3", "mistral", "tiny:alice"])
def test_later_checkpoints_are_whole_and_new(load_role, counted, tmp_path: Path, name) -> None:
    role = load_role(name)
    first, second, theirs = folders(tmp_path, "first", "second", "theirs")
    counted.clear()
    role.handle.save(first)
    change(role.handle.module)
    role.handle.save(second)
    assert counted == [str(first)]
    role.handle.module.save_pretrained(theirs)
    role.tokenizer.save_pretrained(theirs)
    ours, wanted = contents(second), contents(theirs)
    assert ours.keys() == wanted.keys()
    weights = "model.safetensors"
    assert all(ours[file] == wanted[file] for file in ours if file != weights)
    mine, right = load_file(second / weights), load_file(theirs / weights)
    assert mine.keys() == right.keys()
    assert all(torch.equal(mine[key], right[key]) for key in mine)
    # Written over an older checkpoint, which holds more than ours.
    (first / "optimizer.safetensors").write_bytes(b"")
    role.handle.save(first)
    assert contents(first) == ours | {"optimizer.safetensors": b""}


class Foreign(torch.nn.Linear):
    """Is stored in another form than it has in memory."""

    def __init__(self, changes: str) -> None:
        super().__init__(2, 2)
        self._changes = changes

    def save_pretrained(self, folder: Path, state_dict: object = None) -> None:
        state = {name: value.detach().clone() for name, value in self.state_dict().items()}
        if self._changes == "names":
            state["old_weight"] = state.pop("weight")
        elif self._changes == "values":
            state["weight"] += 1
        elif self._changes == "dtype":
            state["weight"] = state["weight"].round().half()
        file = "model-00001-of-00001" if self._changes == "files" else "model"
        save_file(state, folder / f"{file}.safetensors")


class Tokenizer:
    def save_pretrained(self, folder: Path) -> None:
        (folder / "tokenizer.json").write_text("{}")


@pytest.mark.parametrize("changes", ["names", "values", "dtype", "files"])
def test_what_is_stored_in_another_form_stays_in_it(tmp_path: Path, changes: str) -> None:
    module = Foreign(changes)
    with torch.no_grad():
        module.weight.fill_(2.0)
    writer = CheckpointWriter(module, Tokenizer())
    first, second, theirs = folders(tmp_path, "first", "second", "theirs")
    writer.write(first, module.state_dict())
    change(module)
    writer.write(second, module.state_dict())
    module.save_pretrained(theirs)
    Tokenizer().save_pretrained(theirs)
    assert contents(second) == contents(theirs)


def test_folders_of_a_tokenizer_are_in_every_checkpoint(tmp_path: Path) -> None:
    """As transformers writes those with several chat templates."""

    class Several(Tokenizer):
        def save_pretrained(self, folder: Path) -> None:
            super().save_pretrained(folder)
            (folder / "additional_chat_templates").mkdir(exist_ok=True)
            (folder / "additional_chat_templates/tool_use.jinja").write_text("{{ tools }}")

    module = Foreign("nothing")
    writer = CheckpointWriter(module, Several())
    first, second = folders(tmp_path, "first", "second")
    writer.write(first, module.state_dict())
    module.save_pretrained = None  # type: ignore[assignment]
    for _ in range(2):  # also over what is there
        writer.write(second, module.state_dict())
        added = second / "additional_chat_templates/tool_use.jinja"
        assert added.read_text() == "{{ tools }}"


def test_what_a_disk_refuses_is_an_error_of_the_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever writes weights tells a full disk from a fault of ours."""

    def full(*_: object, **__: object) -> None:
        raise SafetensorError("Error while serializing: I/O error: no (os error 28)")

    monkeypatch.setattr(saving, "save_file", full)
    monkeypatch.setattr(saving, "_SMALL", 0)
    with pytest.raises(OSError, match="No space left on device") as caught:
        saving.store({"a": torch.ones(3)}, tmp_path / "x")
    assert (caught.value.errno, caught.value.filename) == (28, str(tmp_path / "x"))
