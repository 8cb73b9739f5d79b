"""Does a stop string end an answer with the token that completes it?"""

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from training.doctor.finding import Finding, judged
from training.doctor.watch import Asked
from vocabulary import Policy, PolicyFailure, TokenCodec

Decode = Callable[[npt.NDArray[np.int64]], str]
Tokens = npt.NDArray[np.int64]

_CHECK = "stop strings"
_LONGEST = 3


def middle(text: str) -> str:
    """A short string from the middle of ``text`` that decoding shows unaltered; empty if there is
    none."""
    start = len(text) // 2
    found = text[start : min(start + _LONGEST, len(text) - 1)]
    return "" if "\ufffd" in found or not found.strip() else found


def through(tokens: Tokens, stop: str, decode: Decode) -> int:
    """How many tokens it takes until their text holds ``stop``; 0 if it never does."""
    return next((n for n in range(1, len(tokens) + 1) if stop in decode(tokens[:n])), 0)


async def check_stops(
    role: str, policy: Policy, codec: TokenCodec, asked: Sequence[Asked]
) -> Finding:
    """Sample an answer once more, with the same seed and a stop string from its middle."""
    for one in asked:
        tokens = one.completion.tokens
        stop = middle(codec.decode(tokens))
        # A string that the last token completes would end the answer in any case.
        if stop and 0 < through(tokens, stop, codec.decode) < len(tokens):
            break
    else:
        return Finding(_CHECK, role, "no answer is long enough", "not measured")
    try:
        again = await policy(one.prompt, replace(one.sampling, stop=(stop,)))
    except PolicyFailure as failure:
        return Finding(_CHECK, role, f"no answer: {failure}", "not measured")
    needed = through(again.tokens, stop, codec.decode)
    if not needed and again.finish_reason != "stop":
        return Finding(
            _CHECK,
            role,
            f"sampled again, the answer holds no {stop!r}",
            "not measured",
            "the engine does not repeat its samples bit for bit; run the doctor again with "
            "another --seed",
        )
    return judged(
        _CHECK,
        role,
        f"{stop!r} after {needed} tokens; ended after {len(again.tokens)}, {again.finish_reason}",
        wrong=needed != len(again.tokens) or again.finish_reason != "stop",
        way_out="answers go on behind their stop string, or are cut before it, and every length "
        "and reward with them: sample with --engine local",
    )
