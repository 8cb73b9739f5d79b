"""Hidden characters in texts of models are written out."""

import pytest

from coterie.datatypes.visible import visible


@pytest.mark.parametrize(
    ("hidden", "shown"),
    [
        ("\x00", "␀"),
        ("\x1b[31m", "␛[31m"),
        ("\x85", "‹U+0085›"),
        ("a\u200bb", "a‹U+200B›b"),
        ("\u202egnirts", "‹U+202E›gnirts"),
        ("\u2028", "‹U+2028›"),
        ("\U000e0041", "‹U+E0041›"),
        # A lone surrogate could not even be written as UTF-8.
        ("\ud800", "‹U+D800›"),
    ],
)
def test_what_hides_is_written_out(hidden: str, shown: str) -> None:
    assert visible(hidden) == shown


def test_layout_and_every_language_stay() -> None:
    text = "line\n\ttab  naïve 日本語 שלום 🎉️ ε ∀x"
    assert visible(text) == text
