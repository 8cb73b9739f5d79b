"""Chat templates and tokenizers that do not do what a context needs."""

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from coterie.agents.models.codec import HFCodec
from coterie.extras.ops.doctor.examine import _texts
from coterie.extras.ops.doctor.finding import Finding
from coterie.extras.ops.doctor.texts import check_boundaries, check_round_trip, check_template

_LOOP = "{% for m in messages %}"
_TURN = "<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n"
_START = "{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
PLAIN = _LOOP + _TURN + _START
WITH_SYSTEM = "<|im_start|>system\nBe kind.<|im_end|>\n" + PLAIN
LOUD = PLAIN.replace("<|im_end|>", "{{ '!' if m.role == 'assistant' }}<|im_end|>")
FORGETFUL = PLAIN.replace("m.content", "m.content.split('</think>')[-1].strip()")
ONE_TURN = "{% if messages|length > 1 %}{{ raise_exception('no') }}{% endif %}" + PLAIN
REWRITING = PLAIN.replace("{{ m.role }}", "{{ m.role }}{{ loop.revindex if loop.first }}").replace(
    "loop.revindex", "'!' * (messages|length - 1)"
)

Checked = Callable[..., Finding]


@pytest.fixture
def tokenizer(checkpoint: Callable[[str], Path]) -> Any:
    from transformers import AutoTokenizer

    tokenizer: Any = AutoTokenizer.from_pretrained(checkpoint("qwen3"))
    tokenizer.chat_template = PLAIN
    return tokenizer


@pytest.fixture
def checked(tokenizer: Any) -> Checked:
    """Builds a codec with one template and checks it against another one."""

    def run(template: str, later: str | None = None, chat: str = "auto") -> Finding:
        tokenizer.chat_template = template
        codec = HFCodec(tokenizer)
        tokenizer.chat_template = later or template
        return check_template("a", codec, tokenizer, chat=chat)

    return run


def test_appended_turns_are_those_of_the_template(checked: Checked) -> None:
    for template in (PLAIN, WITH_SYSTEM):
        finding = checked(template)
        assert (finding.verdict, finding.measured) == ("ok", "two turns are those of the template")
    assert "plain text" in checked(PLAIN, chat="plain").measured


def test_a_codec_of_another_template_is_wrong(checked: Checked) -> None:
    assert "begins" in checked(PLAIN, WITH_SYSTEM).measured
    assert "continues" in checked(PLAIN, LOUD).measured
    assert checked(PLAIN, WITH_SYSTEM).verdict == checked(PLAIN, LOUD).verdict == "wrong"


def test_other_tokens_for_the_same_text_are_wrong(checkpoint: Callable[[str], Path]) -> None:
    from transformers import AutoTokenizer

    class Spelling(HFCodec):
        def extend(self, text: str) -> list[int]:
            return [
                token for character in text for token in super(Spelling, self).extend(character)
            ]

    tokenizer = AutoTokenizer.from_pretrained(checkpoint("qwen3"))
    finding = check_template("a", Spelling(tokenizer), tokenizer, chat="auto")
    assert (finding.verdict, finding.measured) == ("wrong", "writes the same text in other tokens")


def test_what_a_template_does_to_its_history_is_said(checked: Checked) -> None:
    rewrites = checked(REWRITING)
    assert (rewrites.verdict, "rewrites earlier turns" in rewrites.measured) == ("ok", True)
    assert checked(ONE_TURN).verdict == "not measured"


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
    findings = check_boundaries("a", HFCodec(tokenizer), tokenizer, chat="auto")
    seen = {f.verdict: f.measured for f in findings if f.verdict != "differs"}
    left = [name for name in ALL.split("; ") if name not in differing]
    assert seen == ({"ok": "exact: " + "; ".join(left)} if left else {})
    others = [finding.measured for finding in findings if finding.verdict == "differs"]
    for measured, (name, words) in zip(others, differing.items(), strict=True):
        assert measured.startswith(f"{name}: the template {words}")
    assert check_boundaries("a", HFCodec(tokenizer), tokenizer, chat="plain") == []


def test_the_doctor_s_table_has_a_row_for_each_that_differs(tokenizer: Any) -> None:
    tokenizer.chat_template = NO_TOOLS
    loaded = SimpleNamespace(codec=HFCodec(tokenizer), tokenizer=tokenizer)
    session: Any = SimpleNamespace(
        team=SimpleNamespace(loaded={"alice": loaded}),
        settings=SimpleNamespace(agents={"alice": SimpleNamespace(chat="auto")}),
    )
    asked: Any = SimpleNamespace(asked={"alice": []})
    findings = _texts(session, asked)
    checks = [(finding.check, finding.verdict) for finding in findings]
    assert checks == [
        ("chat template", "ok"),
        ("appending", "ok"),
        *[("appending", "differs")] * 2,
        ("round trip", "ok"),
    ]


def test_other_tokens_at_a_boundary(tokenizer: Any) -> None:
    class Spelling(HFCodec):
        def extend(self, text: str) -> list[int]:
            return [t for character in text for t in super(Spelling, self).extend(character)]

    (finding, *_) = check_boundaries("a", Spelling(tokenizer), tokenizer, chat="auto")
    assert "writes other tokens; rows keep the tokens that were sampled" in finding.measured


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
