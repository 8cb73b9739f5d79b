"""Is an appended context what the tokenizer's own chat template writes?"""

from typing import Any

from launch.doctor.finding import Finding, judged
from models.codec import HFCodec
from models.rendering import render
from vocabulary import UserError

_CHECK = "chat template"
_ASKED, _SAID, _NEXT = "What is 7 + 8?", "It is 15.", "And less 3?"
_THOUGHT = f"<think>\n7 and 8\n</think>\n\n{_SAID}"


def check_template(role: str, codec: HFCodec, tokenizer: Any, *, chat: str) -> Finding:
    """Two turns, appended and rendered as one.

    Contexts are appended to and never rendered anew, so a template that rewrites its history
    changes nothing in training; a server that renders each conversation shows the model something
    else.

    Args:
        role: whose codec it is.
        codec: what contexts are written with.
        tokenizer: the model's.
        chat: the role's setting; ``plain`` uses no template.
    """
    if chat == "plain" or not tokenizer.chat_template:
        why = "--agents.*.chat plain" if chat == "plain" else "the tokenizer has none"
        return Finding(_CHECK, role, f"plain text: {why}", "ok")
    way_out = f"--agents.{role}.chat plain writes contexts without the template"
    opened = codec.open(_ASKED)
    conversations = [[_ASKED], [_ASKED, _SAID, _NEXT], [_ASKED, _THOUGHT, _NEXT]]
    first, whole, thought = (one.text or "" for one in render(tokenizer, conversations))
    if _ids(tokenizer, first) != opened:
        return Finding(_CHECK, role, "opens a context in another way", "wrong", way_out)
    try:
        follows = codec.follow(_NEXT, ended=False)
    except UserError:
        return Finding(
            _CHECK, role, "refuses a second message of the user", "not measured", way_out
        )
    appended = opened + codec.extend(_SAID) + follows
    if _ids(tokenizer, whole) == appended:
        note = "two turns are those of the template"
        if _THOUGHT not in thought:
            note = "drops or rewrites earlier thinking; contexts here keep it"
        return Finding(_CHECK, role, note, "ok")
    if _text(tokenizer, follows) != whole.rpartition(_SAID)[2]:
        return Finding(_CHECK, role, "follows an answer in another way", "wrong", way_out)
    if _text(tokenizer, appended) == whole:
        return Finding(_CHECK, role, "writes the same text in other tokens", "wrong", way_out)
    return Finding(_CHECK, role, "rewrites earlier turns; contexts here keep them", "ok")


def check_round_trip(role: str, codec: HFCodec, text: str) -> Finding:
    """Whether what an environment shows survives the tokenizer.

    Args:
        role: who is shown it.
        codec: the role's.
        text: a context, or a piece of one.
    """
    lost = codec.unknown_tokens(text)
    same = codec.decode(codec.extend(text)) == text
    measured = f"{len(text)} characters come back"
    if lost:
        measured = f"has no tokens for {', '.join(repr(part) for part in lost[:3])}"
    elif not same:
        measured = "text comes back altered"
    return judged(
        "round trip",
        role,
        measured,
        wrong=bool(lost) or not same,
        way_out="the model reads something else than the environment writes: choose a model whose "
        "tokenizer falls back to bytes and normalises nothing",
    )


def _ids(tokenizer: Any, text: str) -> list[int]:
    backend = tokenizer.backend_tokenizer
    # A codec switches this on to spell control tokens in a user's text out.
    backend.encode_special_tokens = False
    return backend.encode(text, add_special_tokens=False).ids


def _text(tokenizer: Any, ids: list[int]) -> str:
    return tokenizer.backend_tokenizer.decode(ids, skip_special_tokens=False)
