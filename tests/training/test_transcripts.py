"""What TensorBoard makes of a transcript: letters of whoever wrote something, and nothing else."""

import re
import warnings
from html import unescape

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coterie.datatypes import Episode
from coterie.training.run.episode_records import transcript

from .rows import row

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    from tensorboard.plugin_util import markdown_to_safe_html

HOSTILE = (
    "![x](http://example.org/a.png)",
    "[x](http://example.org)",
    "<http://example.org>",
    "<img src=http://example.org/a.png>",
    "&lt;img src=x&gt;",
    "a\n\n![x][1]\n\n[1]: http://example.org/a.png",
    "a\n\n# loud\n\n```\ncode",
    "`x` *y* __z__ ~~w~~",
    "</pre>![x](http://example.org/a.png)<pre>",
    "\\![x](http://example.org/a.png)",
    "| a | b |\n|---|---|\n| ![x](y) | c |",
)
PLACES = ("problem", "agent", "status", "term", "text")


def shown(text: str, place: str) -> str:
    """The page's HTML with ``text`` in one place."""
    said = dict.fromkeys(PLACES, "x") | {place: text}
    named = {"agent": said["agent"], "status": said["status"], "reward_terms": {said["term"]: 1.0}}
    written = row(texts=(said["text"],), **named)
    return markdown_to_safe_html(transcript(Episode(said["problem"], 1, 1, "train", (written,))))


def elements(text: str, place: str) -> list[str]:
    return re.findall(r"<(\w+)", shown(text, place))


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("text", HOSTILE)
def test_nothing_becomes_an_element(text: str, place: str) -> None:
    assert elements(text, place) == ["h3", "p", "strong", "pre"]


@given(st.text(max_size=40), st.sampled_from(PLACES))
def test_no_text_becomes_an_element(text: str, place: str) -> None:
    # A name of white space alone has nothing to make bold.
    assert [tag for tag in elements(text, place) if tag != "strong"] == ["h3", "p", "pre"]


def test_a_name_reads_as_it_is() -> None:
    for place in ("problem", "agent", "status", "term"):
        assert "a*b_c![d](e) <f> & `g`" in unescape(shown("a*b_c![d](e) <f> & `g`", place))


def test_half_a_surrogate_can_be_written_as_utf8() -> None:
    page = transcript(Episode("p", 1, 1, "train", (row(texts=("\ud800<b>",)),)))
    assert b"?&lt;b&gt;" in page.encode()


def test_the_texts_of_an_agent_with_two_contexts_stand_there_once() -> None:
    rows = tuple(row(texts=("asked", "answered"), member="e/alice_0") for _ in range(2))
    assert transcript(Episode("p", 1, 1, "train", rows)).count("answered") == 1
