"""Chat templates and tokenizers that do not do what a context needs."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from coterie.agents.models.codec import HFCodec
from coterie.extras.ops.doctor.texts import check_round_trip, check_template

_LOOP = "{% for m in messages %}"
_TURN = "<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n"
_START = "{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
PLAIN = _LOOP + _TURN + _START
WITH_SYSTEM = "<|im_start|>system\nBe kind.<|im_end|>\n" + PLAIN
FORGETFUL = PLAIN.replace("m.content", "m.content.split('</think>')[-1].strip()")
ONE_TURN = "{% if messages|length > 1 %}{{ raise_exception('no') }}{% endif %}" + PLAIN


@pytest.fixture
def tokenizer(checkpoint: Callable[[str], Path]) -> Any:
    from transformers import AutoTokenizer

    tokenizer: Any = AutoTokenizer.from_pretrained(checkpoint("qwen3"))
    tokenizer.chat_template = PLAIN
    return tokenizer


NO_TOOLS = _LOOP + "{% if m.role == 'tool' %}{{ raise_exception('x') }}{% endif %}" + _TURN + _START
EMPTY_THOUGHT = PLAIN.replace(
    "<|im_start|>assistant\n", "<|im_start|>assistant\n<think>\n\n</think>\n\n"
)
CALLS = (
    _LOOP
    + _TURN.replace(
        "<|im_end|>", "{{ '<call>' if m.tool_calls }}<|im_end|>{{ '#' if m.tool_calls }}"
    )
    + _START
)
ALL = (
    "assistant → user; assistant → tool; assistant → tool, tool; assistant → user, user; "
    "assistant → system; assistant that thought → user"
)


@pytest.mark.parametrize(
    ("template", "differing"),
    [
        (PLAIN, {}),
        (WITH_SYSTEM, {}),
        (FORGETFUL, {"assistant that thought → user": "rewrites the answer; rows keep what was"}),
        (
            NO_TOOLS,
            dict.fromkeys(
                ("assistant → tool", "assistant → tool, tool"),
                "refuses it; it becomes a message of the user",
            ),
        ),
        (EMPTY_THOUGHT, dict.fromkeys(ALL.split("; "), "begins the answer otherwise; rows keep")),
        (
            CALLS,
            dict.fromkeys(("assistant → tool", "assistant → tool, tool"), "ends a call of its own"),
        ),
        (ONE_TURN, dict.fromkeys(ALL.split("; "), "refuses it")),
    ],
)
def test_which_turns_are_appended_exactly(
    tokenizer: Any, template: str, differing: dict[str, str]
) -> None:
    tokenizer.chat_template = template
    findings = check_template("a", HFCodec(tokenizer), tokenizer, chat="auto")
    seen = {f.verdict: f.measured for f in findings if f.verdict != "differs"}
    left = [name for name in ALL.split("; ") if name not in differing]
    assert seen == ({"ok": "exact: " + "; ".join(left)} if left else {})
    others = [finding.measured for finding in findings if finding.verdict == "differs"]
    for measured, (name, words) in zip(others, differing.items(), strict=True):
        assert measured.startswith(f"{name}: the template {words}")
    (plain,) = check_template("a", HFCodec(tokenizer), tokenizer, chat="plain")
    assert plain.measured == "plain text: --agents.*.chat plain"


def test_other_tokens_at_a_boundary(tokenizer: Any) -> None:
    class Spelling(HFCodec):
        def extend(self, text: str) -> list[int]:
            return [t for character in text for t in super(Spelling, self).extend(character)]

    findings = check_template("a", Spelling(tokenizer), tokenizer, chat="auto")
    assert {finding.verdict for finding in findings} == {"wrong", "differs"}
    assert all("rows keep the tokens that were sampled" in f.measured for f in findings)


def test_text_that_does_not_come_back(checkpoint: Callable[[str], Path]) -> None:
    from transformers import AutoTokenizer

    codec = HFCodec(AutoTokenizer.from_pretrained(checkpoint("qwen3")))
    assert check_round_trip("a", codec, "7 + 8 − 3 = α\n  two").verdict == "ok"

    class Lower(HFCodec):
        def decode(self, tokens: Any) -> str:
            return super().decode(tokens).lower()

    lossy = Lower(AutoTokenizer.from_pretrained(checkpoint("qwen3")))
    assert check_round_trip("a", lossy, "Question").verdict == "wrong"
    lossy.unknown_tokens = lambda text: ["α"]  # type: ignore[method-assign]
    assert "no tokens for 'α'" in check_round_trip("a", lossy, "α").measured
