"""What is a thought in a text, and which context opens one."""

import pytest

from coterie.datatypes.thinking import (
    after_thinking,
    as_said,
    behind_thought,
    closing_of,
    opened_by,
    opened_in,
    split_thinking,
)
from coterie.envs.bytes_codec import BytesCodec

PAIRS = {
    "<think>": "</think>",
    "<thinking>": "</thinking>",
    "<thought>": "</thought>",
    "[THINK]": "[/THINK]",
    "<|think|>": "<|/think|>",
    "<seed:think>": "</seed:think>",
    "<longcat_think>": "</longcat_think>",
    "<think_faster>": "</think_faster>",
    "◁think▷": "◁/think▷",
    "<|begin_of_thought|>": "<|end_of_thought|>",
    "<|START_THINKING|>": "<|END_THINKING|>",
    "<|inner_prefix|>": "<|inner_suffix|>",
    "<|channel|>analysis<|message|>": "<|end|><|start|>assistant<|channel|>final<|message|>",
    "<|channel>thought\n": "<channel|>",
}
TAGS = {
    "<reasoning>": "</reasoning>",
    "<analysis>": "</analysis>",
    "<reason>": "</reason>",
    "<REASONING_SCRATCHPAD>": "</REASONING_SCRATCHPAD>",
    "<inner_monologue>": "</inner_monologue>",
    "<thought_process>": "</thought_process>",
    "<reasoning_steps>": "</reasoning_steps>",
}


@pytest.mark.parametrize("opening", [*PAIRS, *TAGS])
def test_a_thought_counts_for_nothing(opening: str) -> None:
    closing = (PAIRS | TAGS)[opening]
    assert after_thinking(f"{opening}\nperhaps 5") == ""
    assert after_thinking(f"{opening}\nperhaps 5{closing}\n6") == "\n6"
    assert split_thinking(f"{opening}\nperhaps 5{closing}\n6") == ("perhaps 5", "6")
    assert split_thinking(f"{opening}\nperhaps 5") == ("perhaps 5", None)


@pytest.mark.parametrize("opening", PAIRS)
def test_a_thought_in_the_middle(opening: str) -> None:
    closing = PAIRS[opening]
    assert after_thinking(f"perhaps 5{closing}6{opening}or 7") == "6"
    assert after_thinking(f"6 {opening}or 7") == "6 "


def test_a_tag_that_only_leads_is_a_part_of_an_answer_elsewhere() -> None:
    blocks = "<strategy><reasoning>1 + 2</reasoning> 3</strategy>"
    assert after_thinking(blocks) == blocks
    assert after_thinking(f"<reasoning>hm</reasoning>{blocks}") == blocks


@pytest.mark.parametrize("opening", [*PAIRS, *TAGS])
def test_a_mark_in_backticks_is_only_spoken_of(opening: str) -> None:
    closing = (PAIRS | TAGS)[opening]
    mark, end = opening.strip(), closing.removeprefix("<|end|><|start|>assistant")
    # In the answer it opens nothing and closes nothing.
    for said in (f"Without a `{mark}` block: 6", f"6\n(`{end}` ends it)"):
        assert after_thinking(said) == said
        assert after_thinking(f"{opening}perhaps 5{closing}{said}") == said
    # In a thought it ends nothing.
    assert after_thinking(f"{opening}\nthe `{end}` ends it, so perhaps 5") == ""
    assert split_thinking(f"{opening}`{end}` ends it{closing}6") == (f"`{end}` ends it", "6")
    # A fence that closes before the mark is no such backtick.
    assert after_thinking(f"{opening}\n```\nf(5)\n```{closing}\n6") == "\n6"


def test_names_of_other_tags_are_no_marks() -> None:
    for said in ("6 <no_think> 7", "6 <rethink> 7", "6 <thinking_budget> 7", "<question>6"):
        assert after_thinking(said) == said


@pytest.mark.parametrize("opening", [*PAIRS, *TAGS])
def test_a_context_that_opens_a_thought(opening: str) -> None:
    for behind in ("", "\n", " \n\n"):
        assert opened_in(f"Add.<|im_end|>\n<|im_start|>assistant\n{opening}{behind}") == (
            f"{opening.rstrip()}{opening[len(opening.rstrip()) :]}{behind}"
        )
    prompt = BytesCodec().open(f"7 + 8 = {opening}")
    assert opened_by(BytesCodec(), prompt) == opening


@pytest.mark.parametrize(
    "context",
    [
        "7 + 8 =",
        "assistant\n<think>\n\n</think>\n\n",
        "Think in <think> and </think>, then answer.",
        "Write <think> first.\nASSISTANT:",
        "<answer>",
        "<strategy>",
        "",
    ],
)
def test_a_context_that_opens_none(context: str) -> None:
    assert opened_in(context) == ""
    assert opened_by(BytesCodec(), BytesCodec().open(context)) == ""


def test_what_is_said_begins_with_the_thought_that_the_prompt_opened() -> None:
    assert as_said("<think>\n", "so 5") == "<think>\nso 5"
    # Twice is once, and nothing stays nothing.
    assert as_said("<think>\n", " <think>so 5") == " <think>so 5"
    assert as_said("<think>\n", "") == ""
    assert as_said("", "so 5") == "so 5"
    # Another mark does not close the first.
    assert after_thinking(as_said("<think>\n", "<reasoning>a</reasoning>5")) == ""


@pytest.mark.parametrize("opening", [*PAIRS, *TAGS])
def test_somebody_else_s_text_behind_an_open_thought(opening: str) -> None:
    for text in ("It is 5.", f"{opening}hm{(PAIRS | TAGS)[opening]}It is 5."):
        whole = as_said(opening, behind_thought(opening, text))
        assert after_thinking(whole).strip() == "It is 5."
        assert behind_thought("", text) == text
    cut = as_said(opening, behind_thought(opening, f"{opening}perhaps 5"))
    assert after_thinking(cut) == ""
    assert behind_thought(opening, "") == ""
    assert closing_of("something else") == "</think>"
