"""Checkpoints are whole or absent, and give back exactly what was saved."""

import json
import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors import SafetensorError
from safetensors.torch import load_file

from coterie.agents.models import checksums
from coterie.agents.models.saving import store
from coterie.datatypes import UserError
from coterie.training.run import checkpoint, checkpoint_paths
from coterie.training.run.checkpoint import Progress


class Role:
    """Two numbers as weights, one moment, one counter."""

    def __init__(self, weight: float) -> None:
        self.weight = torch.tensor([weight, 0.1])
        self.moment = torch.tensor([weight * 2])
        self.count = int(weight)
        self.broken = False

    def save(self, directory: Path) -> dict[str, Any]:
        if self.broken:
            raise OSError(28, "No space left on device")
        (directory / "weight.json").write_text(json.dumps(self.weight.tolist()))
        store({"moment": self.moment}, directory / "optimizer.safetensors")
        return {"count": self.count}

    def load(self, directory: Path, plain: dict[str, Any]) -> None:
        self.weight = torch.tensor(json.loads((directory / "weight.json").read_text()))
        self.moment = load_file(directory / "optimizer.safetensors")["moment"]
        self.count = plain["count"]


def progress(step: int) -> Progress:
    counters = {"wall_s": 1.5, "tokens": 3}
    return Progress(step, 10 * step, {"episodes.jsonl": 7}, counters, averages={"a": 0.25})


def newest(root: Path) -> Path:
    path = checkpoint_paths.latest(root)
    assert path is not None
    return path


def load(path: Path, roles: dict[str, Role], tell: Callable[[str], None] = print) -> Progress:
    checkpoint.check(path, tell)
    return checkpoint.load(path, roles)


def test_a_checkpoint_gives_back_what_was_saved(tmp_path: Path) -> None:
    torch.manual_seed(5)
    torch.rand(3)
    checkpoint.save(tmp_path, progress(4), {"a": Role(3.0)}, keep=2)
    expected = torch.rand(2)
    role = Role(9.0)
    assert load(newest(tmp_path), {"a": role}) == progress(4)
    assert (role.weight[0].item(), role.moment.item(), role.count) == (3.0, 6.0, 3)
    assert torch.equal(torch.rand(2), expected)


def test_a_step_that_is_saved_is_not_saved_again(tmp_path: Path) -> None:
    """A kill in the middle would leave the run without any checkpoint."""
    role = Role(3.0)
    for step in (3, 4):
        checkpoint.save(tmp_path, progress(step), {"a": role}, keep=2)
    role.broken = True
    assert checkpoint.save(tmp_path, progress(4), {"a": role}, keep=2) == newest(tmp_path)
    assert [path.name for path in sorted(tmp_path.iterdir())] == ["step-000003", "step-000004"]


def test_a_disk_that_is_full_is_told_whoever_notices(tmp_path: Path, monkeypatch) -> None:
    def full(*_: object) -> None:
        raise SafetensorError("I/O error: No space left on device")

    monkeypatch.setattr(checkpoint, "store", full)
    with pytest.raises(UserError, match=r"No space left on device.*free some disk, then --resume"):
        checkpoint.save(tmp_path, progress(4), {"a": Role(3.0)}, keep=2)


def test_only_the_newest_are_kept_and_steps_sort_as_numbers(tmp_path: Path) -> None:
    for step in (999_998, 999_999, 1_000_000):
        checkpoint.save(tmp_path, progress(step), {"a": Role(1.0)}, keep=2)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["step-1000000", "step-999999"]
    assert newest(tmp_path).name == "step-1000000"


@pytest.mark.parametrize("keep", [1, 2, 3])
def test_a_folder_that_is_used_again_holds_nothing_of_before(tmp_path: Path, keep: int) -> None:
    role = Role(1.0)
    for step in range(1, 7):
        role.count = step
        role.weight[0] = float(step)
        checkpoint.save(tmp_path, progress(step), {"a": role}, keep=keep)
        assert len(list(tmp_path.iterdir())) == min(step, keep)
        again = Role(0.0)
        assert load(newest(tmp_path), {"a": again}) == progress(step)
        assert (again.count, again.weight[0].item()) == (step, step)


def test_a_checkpoint_that_fails_leaves_the_one_before(tmp_path: Path) -> None:
    role = Role(1.0)
    checkpoint.save(tmp_path, progress(1), {"a": role}, keep=2)
    role.broken = True
    with pytest.raises(UserError, match=r"step 2 could not be written .*No space left"):
        checkpoint.save(tmp_path, progress(2), {"a": role}, keep=2)
    assert newest(tmp_path).name == "step-000001"


def test_a_half_written_one_is_not_seen(tmp_path: Path) -> None:
    (tmp_path / ".step-000009.part").mkdir()
    assert checkpoint_paths.latest(tmp_path) is None
    checkpoint.save(tmp_path, progress(9), {"a": Role(1.0)}, keep=1)
    assert [path.name for path in tmp_path.iterdir()] == ["step-000009"]


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("state.json", None),
        ("rng.safetensors", b""),
        ("a/adapter.json", b"{}"),  # it is new
        (checksums.NAME, None),
        (checksums.NAME, b""),
        (checksums.NAME, b"cut"),
    ],
)
def test_a_damaged_one_is_named(tmp_path: Path, name: str, content: bytes | None) -> None:
    path = checkpoint.save(tmp_path, progress(4), {"a": Role(1.0)}, keep=2) / name
    if content == b"cut":
        content = path.read_bytes().split(b"\n", 1)[1]
    path.unlink() if content is None else path.write_bytes(content)
    # No other checkpoint is there.
    with pytest.raises(UserError, match=r"step-000004 is damaged .* delete that folder.* again$"):
        load(newest(tmp_path), {"a": Role(1.0)})


def flip(path: Path, place: int) -> None:
    content = bytearray(path.read_bytes())
    content[place % len(content)] ^= 1 << place % 8
    path.write_bytes(content)


def silent(sentence: str) -> None:
    raise AssertionError(sentence)


@pytest.mark.parametrize(
    "name",
    ["state.json", "a/optimizer.safetensors", "a/weight.json", "rng.safetensors", checksums.NAME],
)
@pytest.mark.parametrize("place", [7, -1])
def test_a_bit_that_flips_is_told_by_the_name_of_its_file(
    tmp_path: Path, name: str, place: int
) -> None:
    """Whatever the bit is part of: many a number is another number then, and no fault."""
    for step in (3, 4):
        path = checkpoint.save(tmp_path / "checkpoints", progress(step), {"a": Role(1.0)}, keep=2)
    load(path, {"a": Role(0.0)}, silent)
    flip(path / name, place)
    # Of a flip among the checksums, the file whose line it hit may be named.
    named = r"\S+" if name == checksums.NAME else name
    with pytest.raises(UserError) as caught:
        load(path, {"a": Role(0.0)}, silent)
    assert re.fullmatch(
        rf"the checkpoint {path} is damaged \({named}(, \S+)?: does not match its checksum "
        rf"in SHA256SUMS\); delete that folder, and --resume {tmp_path} continues from step 3",
        str(caught.value),
    )
    shutil.rmtree(path)
    assert load(newest(path.parent), {"a": Role(0.0)}, silent) == progress(3)


def test_what_a_desktop_leaves_is_no_damage(tmp_path: Path) -> None:
    path = checkpoint.save(tmp_path, progress(4), {"a": Role(1.0)}, keep=2)
    (path / ".DS_Store").write_text("x")
    load(path, {"a": Role(1.0)}, silent)


@pytest.mark.parametrize("name", ["config.json", "evaluation/before.json"])
def test_what_changed_beside_it_is_told_and_no_reason_to_stop(tmp_path: Path, name: str) -> None:
    (tmp_path / "evaluation").mkdir()
    (tmp_path / name).write_text('{"seed": 1}')
    path = checkpoint.save(tmp_path / "checkpoints", progress(4), {"a": Role(1.0)}, keep=2)
    load(path, {"a": Role(1.0)}, silent)
    (tmp_path / name).write_text('{"seed": 3}')
    sentences: list[str] = []
    load(path, {"a": Role(1.0)}, sentences.append)
    assert [
        f"{tmp_path / name} has changed since step 4" in sentence for sentence in sentences
    ] == [True]


def test_checksums_are_what_everybody_s_tool_reads(tmp_path: Path) -> None:
    path = checkpoint.save(tmp_path, progress(4), {"a": Role(1.0)}, keep=2)
    tool = shutil.which("sha256sum")
    if tool is None:
        pytest.skip("no sha256sum here")
    subprocess.run([tool, "--quiet", "--strict", "-c", checksums.NAME], cwd=path, check=True)
