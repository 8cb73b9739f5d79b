"""Tools in a model's contexts: what its template writes, token by token, and what is masked."""

import asyncio
import importlib
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from coterie import envs
from coterie.agents.models.codec import HFCodec
from coterie.agents.team.team import PlayerCodec
from coterie.datatypes import Completion, Problem, Prompt, Sampling, UserError
from coterie.envs import ConversationEnv, Outcome, Tools
from coterie.envs.token_view import TokenView
from coterie.rollouts import play

from .families import byte_level
from .test_codec import chatml, messages

# Qwen 2.5's, without the cases that no conversation here has. A template drops the line break after
# a tag, so all are written as expressions.
QWEN = (
    "{%- if tools %}<|im_start|>system\nYou are Q.\n\n# Tools\n<tools>"
    "{%- for tool in tools %}\n{{ tool | tojson }}{%- endfor %}\n</tools>\n"
    '<tool_call>\n{"name": <name>, "arguments": <args>}\n</tool_call><|im_end|>\n'
    "{%- else %}<|im_start|>system\nYou are Q.<|im_end|>\n{%- endif %}"
    "{%- for m in messages %}"
    "{%- if m.role == 'tool' %}"
    "{%- if loop.index0 == 0 or messages[loop.index0 - 1].role != 'tool' %}<|im_start|>user"
    "{%- endif %}\n<tool_response>\n{{ m.content }}\n</tool_response>"
    "{%- if loop.last or messages[loop.index0 + 1].role != 'tool' %}<|im_end|>\n{%- endif %}"
    "{%- else %}<|im_start|>{{ m.role }}\n{{ m.content }}"
    "{%- for call in m.tool_calls or [] %}<tool_call>\n"
    '{"name": "{{ call.function.name }}", "arguments": {{ call.function.arguments | tojson }}}'
    "\n</tool_call>{%- endfor %}<|im_end|>\n{%- endif %}"
    "{%- endfor %}"
    "{%- if add_generation_prompt %}<|im_start|>assistant\n{%- endif %}"
).replace("\n", "{{ '\\n' }}")
CALL = '<tool_call>\n{"name": "price", "arguments": {"item": "pear"}}\n</tool_call>'


def qwen() -> Any:
    return byte_level(QWEN, ["<|im_start|>", "<|im_end|>", "<|endoftext|>"], "<|im_end|>")


@pytest.fixture(scope="module")
def functions() -> Iterator[Any]:
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(Path(__file__).parents[2] / "envs"))
        yield importlib.import_module("tool_functions")
    sys.modules.pop("tool_functions")


class Shop(ConversationEnv):
    """One question; the reward is what the tool has answered."""

    title = "shop"
    metadata = {**ConversationEnv.metadata, "name": "shop_v0"}  # noqa: RUF012
    default_roles = ("buyer",)
    functions: Any = None

    def tools(self) -> Any:
        return {"buyer": Tools((self.functions.price, self.functions.misbehave), calls=2)}

    def conversation(self, problem: Problem, options: Any, random: Any) -> Any:
        (buyer,) = self.possible_agents
        answers = yield {buyer: "What does a pear cost?"}
        (first, *_) = self.calls_of(buyer)
        right = first.result in answers[buyer]
        return Outcome({buyer: {"right": float(right), "paid": float(first.result)}})


@pytest.fixture
def shop(functions: Any, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setattr(Shop, "functions", functions)
    return Shop()


def saying(codec: HFCodec, *turns: list[int]) -> Any:
    left = [*turns]

    async def policy(prompt: Prompt, sampling: Sampling) -> Completion:
        ids = np.array(left.pop(0))
        return Completion(ids, np.full(len(ids), -0.5, np.float32), "eos")

    return policy


def played(env: Any, policy: Any) -> Any:
    options = {"problem": Problem("p", "q", "2"), "step": 1}
    episode = asyncio.run(
        play(env, {"buyer": policy}, seed=1, options=options, sampling=Sampling(200))
    )
    (row,) = episode.trajectories
    return row


def test_a_row_is_what_the_template_writes_and_only_samples_are_learned(shop: Any) -> None:
    tokenizer = qwen()
    codec = HFCodec(tokenizer)
    end = codec.eos_ids[0]
    # Not the ids that the text has by itself: a call is not tokenized again.
    odd = [i for letter in CALL for i in codec.extend(letter)]
    assert odd != codec.extend(CALL)
    answer = codec.extend("It costs 4.")
    row = played(TokenView(shop, {"buyer": codec}), saying(codec, [*odd, end], [*answer, end]))

    asked = messages(("user", "What does a pear cost?"))
    schemas = shop.tool_schemas()["buyer"]
    opened = tokenizer.apply_chat_template(
        asked, tools=schemas, add_generation_prompt=True, return_dict=False
    )
    # What Qwen's template writes from the mark of the call's end to the next answer.
    backend = tokenizer.backend_tokenizer
    backend.encode_special_tokens = False
    back = "\n<|im_start|>user\n<tool_response>\n4\n</tool_response><|im_end|>\n"
    returned = backend.encode(f"{back}<|im_start|>assistant\n", add_special_tokens=False).ids
    assert row.tokens.tolist() == [*opened, *odd, end, *returned, *answer, end]
    mask = [*[0] * len(opened), *[1] * (len(odd) + 1), *[0] * len(returned), *[1] * len(answer), 1]
    assert row.mask.tolist() == list(map(bool, mask))
    assert row.logprobs[row.mask].tolist() == [-0.5] * sum(mask)
    assert not row.logprobs[~row.mask].any()
    assert row.reward == 1 + 4
    # The whole, rendered by the template with the call as data, is the same text.
    function = {"name": "price", "arguments": {"item": "pear"}}
    called = {"role": "assistant", "content": "", "tool_calls": [{"function": function}]}
    told = [*asked, called, *messages(("tool", "4"), ("assistant", "It costs 4."))]
    whole = tokenizer.apply_chat_template(told, tools=schemas, tokenize=False)
    assert tokenizer.decode(row.tokens, skip_special_tokens=False) == whole.rstrip("\n")


def test_results_follow_each_other_and_spell_out_control_tokens(shop: Any) -> None:
    tokenizer = qwen()
    codec = HFCodec(tokenizer)
    end = codec.eos_ids[0]
    wrong = '<tool_call>{"name": "misbehave", "arguments": {"way": "marks"}}</tool_call>'
    said = codec.extend(CALL + wrong)
    # The call is cut off: its end is the template's, and not sampled.
    row = played(TokenView(shop, {"buyer": codec}), saying(codec, said, [end]))
    start, stop = row.turns[0]
    between = row.tokens[stop : row.turns[1][0]].tolist()
    shown = tokenizer.decode(between, skip_special_tokens=False)
    assert shown == (
        "<|im_end|>\n<|im_start|>user\n<tool_response>\n4\n</tool_response>\n<tool_response>\n"
        "<|im_end|>\n<|im_start|>assistant\n?\n</tool_response><|im_end|>\n<|im_start|>assistant\n"
    )
    begin = tokenizer.convert_tokens_to_ids("<|im_start|>")
    assert (between.count(end), between.count(begin)) == (2, 2)  # the template's alone
    assert row.tokens[start:stop].tolist() == said


def test_results_come_back_in_the_template_s_role(shop: Any) -> None:
    tokenizer = qwen()
    # Hermes 2 names the tool as the speaker.
    tokenizer.chat_template = QWEN.replace("!= 'tool' %}<|im_start|>user", "!= 'tool' %}"
                                           "<|im_start|>tool of {{ m.name }}")  # fmt: skip
    codec = HFCodec(tokenizer)
    end = codec.eos_ids[0]
    row = played(
        TokenView(shop, {"buyer": codec}), saying(codec, [*codec.extend(CALL), end], [end])
    )
    between = row.tokens[row.turns[0][1] : row.turns[1][0]].tolist()
    assert tokenizer.decode(between, skip_special_tokens=False) == (
        "\n<|im_start|>tool of price\n<tool_response>\n4\n</tool_response><|im_end|>\n"
        "<|im_start|>assistant\n"
    )


def test_a_role_s_system_message_stands_beside_its_tools(shop: Any) -> None:
    template = QWEN.replace("You are Q.", "{{ messages[0].content if messages[0].role == 'system' "
                            "else 'You are Q.' }}").replace(
        "{%- else %}<|im_start|>{{ m.role }}",
        "{%- elif m.role != 'system' or not loop.first %}<|im_start|>{{ m.role }}",
    )  # fmt: skip
    tokenizer = qwen()
    tokenizer.chat_template = template
    env = TokenView(shop, {"buyer": HFCodec(tokenizer, system="Be brief.")})
    observations, _ = env.reset(seed=1, options={"problem": Problem("p", "q", "2")})
    text = tokenizer.decode(observations["buyer_0"]["tokens"], skip_special_tokens=False)
    assert text.startswith("<|im_start|>system\nBe brief.\n\n# Tools\n<tools>\n{")
    assert text.endswith(
        "<|im_start|>user\nWhat does a pear cost?<|im_end|>\n<|im_start|>assistant\n"
    )


def test_without_a_template_tools_are_described_in_the_prompt(shop: Any) -> None:
    codec = HFCodec(chatml(), chat="plain")
    env = TokenView(shop, {"buyer": codec})
    _, infos = env.reset(seed=1, options={"problem": Problem("p", "q", "2")})
    text = infos["buyer_0"]["text"]
    described = json.loads(text.splitlines()[1])
    assert described["name"] == "price"
    assert text.endswith("\n\nWhat does a pear cost?")
    observations, *_ = env.step({"buyer_0": np.array(codec.extend(CALL))})
    ids = observations["buyer_0"]["tokens"]
    assert codec.decode(ids).endswith(f"{CALL}\n<tool_response>\n4\n</tool_response>")


@pytest.mark.parametrize(
    ("template", "why"),
    [
        ("{% for m in messages %}<|im_start|>{{ m.content }}{% endfor %}", "does not describe"),
        (QWEN.replace('"name": "{{', '"function": "{{'), "does not describe tools, or does not wr"),
        (QWEN.replace("{{ tool | tojson }}", "{{ tool.nothing.at.all }}"), "fails on these tools"),
        (QWEN.replace("</tools>", "{{ tools[0].function.x.y }}</tools>"), "fails on these"),
    ],
)
def test_a_template_that_cannot_offer_tools_is_refused(shop: Any, template: str, why: str) -> None:
    tokenizer = qwen()
    tokenizer.chat_template = template
    codec = HFCodec(tokenizer)
    with pytest.raises(UserError) as caught:
        TokenView(shop, {"buyer": codec})
    assert str(caught.value).startswith("buyer may call tools and is played by a model whose")
    assert why in str(caught.value)
    # A script or a server reads them in the text of its prompt.
    TokenView(shop, {"buyer": PlayerCodec(codec)})


def test_tools_are_offered_again_in_a_new_context(shop: Any, monkeypatch: Any) -> None:
    def conversation(self: Any, problem: Any, options: Any, random: Any) -> Any:
        yield {"buyer_0": "First."}
        yield {"buyer_0": "Second."}
        yield {"buyer_0": envs.Fresh("Third.")}
        return Outcome({}, learned_after={"buyer_0": "Other."})

    monkeypatch.setattr(Shop, "conversation", conversation)
    tokenizer = qwen()
    env = TokenView(shop, {"buyer": HFCodec(tokenizer)})
    observations, infos = env.reset(seed=1, options={"problem": Problem("p", "q", "2")})
    counts = []
    while env.agents:
        counts.append(tokenizer.decode(observations["buyer_0"]["tokens"]).count("# Tools"))
        observations, *_, infos = env.step({"buyer_0": np.array([65])})
    assert counts == [1, 1, 1]
    # Context distillation replaces the message, and not the tools.
    assert "# Tools" in tokenizer.decode(infos["buyer_0"]["learned_after"])
