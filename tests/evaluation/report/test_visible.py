import json

import pytest

from coterie.evaluation.report.episode import all_visible, script_json, visible


@pytest.mark.parametrize(
    ("hidden", "shown"),
    [
        ("\x00", "␀"),
        ("\x1b[31m", "␛[31m"),
        ("\r", "␍"),
        ("\x7f", "␡"),
        ("\x85", "‹U+0085›"),
        ("a\u200bb", "a‹U+200B›b"),
        ("\u202egnirts", "‹U+202E›gnirts"),
        ("\u2066", "‹U+2066›"),
        ("\u2028", "‹U+2028›"),
        ("\ufeff", "‹U+FEFF›"),
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


def test_plain_data_is_walked_keys_included() -> None:
    data = {"a\x00": ["\x01", {"k": ("\x02", 1.5, None, True)}]}
    assert all_visible(data) == {"a␀": ["␁", {"k": ["␂", 1.5, None, True]}]}


def test_json_cannot_end_or_change_its_script_element() -> None:
    value = {"</script>": "<!-- <script> ]]> & \" ' \\"}
    text = script_json(value)
    assert not set(text) & set("<>&")
    assert json.loads(text) == value


def test_a_number_that_json_does_not_have_is_refused() -> None:
    with pytest.raises(ValueError, match="not JSON compliant"):
        script_json([float("nan")])
