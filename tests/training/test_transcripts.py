"""What TensorBoard makes of a transcript: letters of whoever wrote something, and nothing else."""

import re
import warnings
from html import unescape

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from coterie.datatypes import Episode, Trajectory
from coterie.training.records import transcript

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
    row = Trajectory(
        agent=said["agent"],
        role="a",
        tokens=np.array([1]),
        mask=np.array([True]),
        logprobs=np.zeros(1, np.float32),
        reward=1.0,
        reward_terms={said["term"]: 1.0},
        groups={},
        texts=(said["text"],),
        status=said["status"],
    )
    return markdown_to_safe_html(transcript(Episode(said["problem"], 1, 1, "train", (row,))))


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
