"""Chat templates that are broken or hostile: one sentence each, and nothing else happens."""

import time
from pathlib import Path
from typing import Any

import pytest
from transformers import AutoTokenizer

from coterie.agents.models.codec import read_frame
from coterie.agents.models.rendering import render
from coterie.datatypes import UserError

BROKEN = {
    "{% for m in messages %}": "TemplateSyntaxError",
    "{{ messages | nothing }}": "TemplateAssertionError",
    "{{ nothing.at.all }}": "UndefinedError",
    "{{ 1 / 0 }}": "ZeroDivisionError",
    "{{ raise_exception('not for you\nat all') }}": "TemplateError: not for you",
    "{% include '/etc/passwd' %}": "TypeError",
    "{% macro f(n) %}{{ f(n) }}{% endmacro %}{{ f(1) }}": "RecursionError",
    "": "no chat template",
    "x": "leaves it out or repeats it",
    "{{ messages }}{{ messages }}": "leaves it out or repeats it",
    # Reading and changing what is not theirs.
    "{{ messages.__class__.__mro__ }}": "SecurityError",
    "{{ ''.__class__.__base__.__subclasses__() }}": "SecurityError",
    "{{ raise_exception.__globals__ }}": "leaves it out",
    "{{ messages.clear() }}": "SecurityError",
    "{{ '{0.__class__}'.format(messages) }}": "leaves it out",
    # Without end, or nearly so.
    "{% for i in range(10**9) %}{% endfor %}": "OverflowError",
    "{{ 'a' * 10**11 }}": "MemoryError",
    "{% for i in range(99999) %}{{ messages[0].content }}{% endfor %}": "writes 699,993 characters",
}
ENDLESS = [
    "{% for i in range(99999) %}{% for j in range(99999) %}{% endfor %}{% endfor %}",
    # One operation, in which Python looks at no signal.
    "{% set x = 10 ** (10 ** 9) %}",
]


@pytest.fixture
def tokenizer(checkpoint) -> Any:
    return AutoTokenizer.from_pretrained(checkpoint("qwen3"))


def refusal(tokenizer: Any, template: str) -> str:
    tokenizer.chat_template = template
    with pytest.raises(UserError) as caught:
        read_frame(tokenizer)
    sentence = str(caught.value)
    assert "\n" not in sentence
    assert sentence.endswith("say --agents.ROLE.chat plain")
    return sentence


@pytest.mark.parametrize("template", BROKEN)
def test_what_is_wrong_is_said(tokenizer: Any, template: str) -> None:
    assert BROKEN[template] in refusal(tokenizer, template)


@pytest.mark.slow
@pytest.mark.parametrize("template", ENDLESS)
def test_what_does_not_end_is_ended(tokenizer: Any, template: str) -> None:
    good, start = tokenizer.chat_template, time.monotonic()
    assert "it takes too long, or too much memory" in refusal(tokenizer, template)
    assert time.monotonic() - start < 100
    # The next one is rendered as if nothing had happened.
    tokenizer.chat_template = good
    assert read_frame(tokenizer).opening[0] == "<|im_start|>user\n"


def test_the_day_is_the_same_every_day(tokenizer: Any) -> None:
    """A run that is resumed tomorrow reads what it read today."""
    tokenizer.chat_template = "{{ strftime_now('%d %b %Y') }}"
    (rendered,) = render(tokenizer, [[{"role": "user", "content": "x"}]])
    assert rendered.text == "26 Jul 2024"


def test_of_several_templates_the_default_is_rendered(tokenizer: Any) -> None:
    tokenizer.chat_template = {"default": tokenizer.chat_template, "tool_use": "x"}
    assert read_frame(tokenizer).opening[0] == "<|im_start|>user\n"
    tokenizer.chat_template = {"one": "x"}
    with pytest.raises(UserError, match="no default"):
        read_frame(tokenizer)


def test_the_process_ends_with_its_parent(python) -> None:
    code = (
        "from coterie.agents.models.rendering import _PROCESS as p\n"
        'print(p.ask(\'{"template": "x", "marks": {}, "conversations": []}\'))\n'
        "print(p._process.pid)"
    )
    ended = python("-W", "error", "-c", code)
    answer, pid = ended.stdout.split()
    assert (answer, ended.stderr) == ("[]", "")
    assert not Path(f"/proc/{pid}").exists()
