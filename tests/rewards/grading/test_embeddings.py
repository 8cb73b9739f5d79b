"""Encoders: unit rows, the same everywhere, closer for texts that share more."""

import subprocess
import sys

import numpy as np
import pytest

from coterie.datatypes import UserError
from coterie.rewards.grading.embeddings import HashedNgramEncoder, MiniLMEncoder, make_encoder

TEXTS = [
    "the cat sat on the mat",
    "the cat sat on a mat",
    "the quadratic formula gives both roots",
    "both roots follow from the quadratic formula",
    "",
]
HOSTILE = ["\ud800", "a" * 10**6, " \n\t ", "\u0130" * 10**5]


def test_hashed_rows_are_unit_vectors_and_alone_as_in_a_batch() -> None:
    encoder = HashedNgramEncoder()
    vectors_nD = encoder.encode(TEXTS + HOSTILE)
    assert vectors_nD.dtype == np.float32
    np.testing.assert_allclose(np.linalg.norm(vectors_nD, axis=1), 1.0, atol=1e-6)
    for text, vector in zip(TEXTS + HOSTILE, vectors_nD, strict=True):
        np.testing.assert_array_equal(encoder.encode([text])[0], vector)
    assert encoder.encode([]).shape == (0, 512)


def test_hashed_similarity_follows_shared_wording() -> None:
    vectors_nD = HashedNgramEncoder().encode(TEXTS)
    similar_nn = vectors_nD @ vectors_nD.T
    assert similar_nn[0, 1] > 0.7
    assert similar_nn[2, 3] > 0.4
    assert np.abs(similar_nn[:2, 2:4]).max() < 0.25


def test_hashed_order_of_words_matters_and_case_does_not() -> None:
    vectors_nD = HashedNgramEncoder().encode(["add then halve", "halve then add", "ADD then Halve"])
    assert vectors_nD[0] @ vectors_nD[1] < 0.9
    np.testing.assert_array_equal(vectors_nD[0], vectors_nD[2])


def test_hashed_vectors_are_the_sum_of_their_grams() -> None:
    # "abc" stands as " abc " (codes are bytes plus one): five bytes have three 3-grams, two
    # 4-grams, one 5-gram and one word, each of which adds its weight with a sign in one slot.
    # 3 * 0.5^2 + 2 * 0.75^2 + 1.0^2 + 2.0^2 = 6.875 where no two meet in a slot.
    vector = HashedNgramEncoder(1 << 16).encode(["abc"])[0]
    sizes = np.sort(np.abs(vector[vector != 0]))
    weights = np.array([0.5, 0.5, 0.5, 0.75, 0.75, 1.0, 2.0])
    np.testing.assert_allclose(sizes, weights / np.sqrt(6.875), rtol=1e-6)


def test_empty_texts_have_a_fixed_direction() -> None:
    for encoder in (HashedNgramEncoder(), MiniLMEncoder()):
        vectors_nD = encoder.encode(["", "  \n"])
        assert vectors_nD[:, 0].tolist() == [1.0, 1.0]
        assert np.abs(vectors_nD[:, 1:]).max() == 0.0


def test_hashed_vectors_are_the_same_in_every_process() -> None:
    script = (
        "from coterie.rewards.grading.embeddings import HashedNgramEncoder as H\n"
        "print(H().encode(['the cat sat on the mat']).tobytes().hex())"
    )
    done = [
        subprocess.run(
            [sys.executable, "-c", script],
            capture_output=True,
            text=True,
            check=True,
            timeout=60,
            env={"PYTHONHASHSEED": seed},
        ).stdout.strip()
        for seed in ("1", "2")
    ]
    here = HashedNgramEncoder().encode(["the cat sat on the mat"]).tobytes().hex()
    assert done == [here, here]


def test_minilm_knows_meaning_and_needs_no_hub(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    encoder = make_encoder("minilm")
    texts = [
        "The car is fast.",
        "A quick automobile.",
        "Bananas are yellow.",
        "\ud800",
        "a" * 10**6,
    ]
    vectors_nD = encoder.encode(texts)
    assert vectors_nD.shape == (5, encoder.dimensions)
    assert vectors_nD.dtype == np.float32
    np.testing.assert_allclose(np.linalg.norm(vectors_nD, axis=1), 1.0, atol=1e-5)
    assert vectors_nD[0] @ vectors_nD[1] > 0.6
    assert vectors_nD[0] @ vectors_nD[2] < 0.3
    np.testing.assert_allclose(encoder.encode(texts[:1])[0], vectors_nD[0], atol=1e-5)


def test_unknown_encoders_are_refused() -> None:
    with pytest.raises(UserError, match="known: hashed, minilm"):
        make_encoder("bert")
    with pytest.raises(UserError, match="at least 2"):
        HashedNgramEncoder(1)
