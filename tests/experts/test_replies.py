"""Think markers, and text in a role's vocabulary."""

import time

import numpy as np
import pytest

from coterie.datatypes.thinking import split_thinking
from coterie.experts.replies import encode_reply


@pytest.mark.parametrize(
    ("text", "thinking", "reply"),
    [
        ("a</think>\n b \n", "a", "b"),
        ("<think>a</think>b</think>c", "a</think>b", "c"),
        ("b", "", "b"),
        ("b <think>", "", "b <think>"),
    ],
)
def test_split_thinking(text, thinking, reply):
    assert split_thinking(text) == (thinking, reply)


@pytest.mark.parametrize(
    "piece",
    [
        "<think>",
        "</think>",
        "[/THINK]",
        "<think></think>",
        "<",
        "<|",
        "<reason",
        "<|channel|>",
        "\\",
    ],
)
def test_split_thinking_is_linear(piece):
    # Processor time, so that a busy machine does not matter. Quadratic time would be hours.
    started = time.process_time()
    split_thinking(piece * (10**6 // len(piece)))
    assert time.process_time() - started < 5


def test_encoding(codec):
    whole = encode_reply("né", codec, 3)
    assert (whole.tokens.tolist(), whole.finish_reason) == ([110, 195, 169], "eos")
    assert (whole.tokens.dtype, whole.logprobs.dtype) == (np.int64, np.float32)
    cut = encode_reply("né", codec, 2, "stop")
    assert (cut.tokens.tolist(), cut.finish_reason) == ([110], "length")
    assert len(encode_reply("abc", codec, 0).tokens) == 0


def test_a_huge_reply_is_never_tokenised_whole(codec):
    seen = []

    class Watching(type(codec)):
        def truncate(self, text, limit, *, keep="head"):
            seen.append(len(text))
            return super().truncate(text, limit, keep=keep)

    encode_reply("x" * 10**7, Watching(), 100)
    assert max(seen) == 51_200
