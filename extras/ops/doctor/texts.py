"""Check chat templates, tokenizers and stop strings."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from coterie.agents.models.boundaries import Fault, boundaries
from coterie.agents.models.codec import HFCodec
from coterie.datatypes import Policy, PolicyFailure, TokenCodec
from coterie.extras.ops.doctor.finding import Finding, judge
from coterie.extras.ops.doctor.observe import PolicyCall

Tokens = npt.NDArray[np.int64]

_TEMPLATE, _STOPS = "chat template", "stop strings"
_LONGEST = 3
"""Characters of a stop string."""
_OTHER_TOKENS: Fault = "writes other tokens"
_COSTS: Mapping[Fault, str] = {
    "refuses it": "it becomes a message of the user, in the same row",
    "begins the answer otherwise": "rows keep what was sampled; a history rendered anew differs",
    "rewrites the answer": "rows keep what was sampled; a program that sends back the rewritten "
    "answer gets a row of its own for each call",
    _OTHER_TOKENS: "rows keep the tokens that were sampled",
    "ends a call of its own otherwise": "what follows a call stands as behind other answers",
    "ends the answer twice": "models read what they never wrote; use --agents.ROLE.chat plain",
    "loses the next speaker's mark": "models read what they never wrote; use --agents.ROLE.chat "
    "plain",
}


def check_template(role: str, codec: HFCodec, tokenizer: Any, *, chat: str) -> list[Finding]:
    """Say which turns are appended exactly as the template writes them, and what the others cost.

    Contexts only grow and are never rendered again, so a template that rewrites earlier turns does
    not matter in training. Other tokens behind an ordinary answer are wrong: no model was trained
    on them.

    ``chat`` is the role's setting: ``plain`` uses no template, and can append anything.
    """
    if chat == "plain" or not tokenizer.chat_template:
        why = "--agents.*.chat plain" if chat == "plain" else "the tokenizer has none"
        return [Finding(_TEMPLATE, role, f"plain text: {why}", "ok")]
    tested = boundaries(codec, tokenizer)
    findings = []
    if exact := "; ".join(each.name for each in tested if not each.fault):
        findings.append(Finding(_TEMPLATE, role, f"exact: {exact}", "ok"))
    for each in tested:
        if each.fault:
            wrong = each == tested[0] and each.fault == _OTHER_TOKENS
            measured = f"{each.name}: the template {each.fault}; {_COSTS[each.fault]}"
            way_out = f"--agents.{role}.chat plain writes contexts without the template"
            findings.append(
                Finding(_TEMPLATE, role, measured, "wrong", way_out)
                if wrong
                else Finding(_TEMPLATE, role, measured, "differs")
            )
    return findings


def check_round_trip(role: str, codec: HFCodec, text: str) -> Finding:
    """Check that text of an environment survives encoding and decoding."""
    lost = codec.unknown_tokens(text)
    same = codec.decode(codec.extend(text)) == text
    measured = f"{len(text)} characters, unchanged"
    if lost:
        measured = f"has no tokens for {', '.join(repr(part) for part in lost[:3])}"
    elif not same:
        measured = "text comes back altered"
    return judge(
        "round trip",
        role,
        measured,
        wrong=bool(lost) or not same,
        way_out="the model reads something else than the environment writes: choose a model whose "
        "tokenizer falls back to bytes and normalises nothing",
    )


def _middle(text: str) -> str:
    """A short string from the middle of ``text``; empty if it is blank or decodes badly."""
    start = len(text) // 2
    excerpt = text[start : min(start + _LONGEST, len(text) - 1)]
    return "" if "\ufffd" in excerpt or not excerpt.strip() else excerpt


def _through(tokens: Tokens, stop: str, decode: Callable[[Tokens], str]) -> int:
    """Number of tokens until their text contains ``stop``; 0 if it never does."""
    return next((n for n in range(1, len(tokens) + 1) if stop in decode(tokens[:n])), 0)


async def check_stops(
    role: str, policy: Policy, codec: TokenCodec, calls: Sequence[PolicyCall]
) -> Finding:
    """Sample an answer again with the same seed and a stop string from its middle."""
    for call in calls:
        tokens = call.completion.tokens
        stop = _middle(codec.decode(tokens))
        # A string that ends with the last token would test nothing.
        if stop and 0 < _through(tokens, stop, codec.decode) < len(tokens):
            break
    else:
        return Finding(_STOPS, role, "no answer is long enough", "not measured")
    try:
        again = await policy(call.prompt, replace(call.sampling, stop=(stop,)))
    except PolicyFailure as failure:
        return Finding(_STOPS, role, f"no answer: {failure}", "not measured")
    needed = _through(again.tokens, stop, codec.decode)
    if not needed and again.finish_reason != "stop":
        return Finding(
            _STOPS,
            role,
            f"sampled again, the answer holds no {stop!r}",
            "not measured",
            "the engine does not repeat its samples bit for bit; run the doctor again with "
            "another --seed",
        )
    return judge(
        _STOPS,
        role,
        f"{stop!r} after {needed} tokens; ended after {len(again.tokens)}, {again.finish_reason}",
        wrong=needed != len(again.tokens) or again.finish_reason != "stop",
        way_out="answers go on after their stop string, or are cut before it, and every length "
        "and reward with them: sample with --engine local",
    )
