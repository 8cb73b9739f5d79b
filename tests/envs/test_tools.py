"""Tools of a conversation: what they may be, hostile calls, and episodes in which they are used."""

import importlib
import json
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coterie import envs
from coterie.datatypes import Problem, ScoreRequests, UserError
from coterie.envs import Ask, ConversationEnv, Outcome, Tools, Turn
from coterie.envs.tool_calls import find_calls


@pytest.fixture(scope="module")
def functions() -> Iterator[Any]:
    """The module of tools, under a name by which their process finds it, too."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(Path(__file__).parent))
        yield importlib.import_module("tool_functions")
    sys.modules.pop("tool_functions")


def call(name: str, **arguments: Any) -> str:
    return f"<tool_call>{json.dumps({'name': name, 'arguments': arguments})}</tool_call>"


def results(tools: Tools, text: str) -> list[str]:
    return [done.result for done in tools.run(find_calls(text))]


def test_a_schema_is_read_from_annotations_and_docstring(functions: Any) -> None:
    (schema,) = Tools((functions.price,)).schemas
    assert schema == {
        "type": "function",
        "function": {
            "name": "price",
            "description": "Look up a price.",
            "parameters": {
                "type": "object",
                "properties": {
                    "item": {"type": "string", "description": "what is sold."},
                    "count": {"type": "integer", "description": "how many."},
                },
                "required": ["item"],
            },
        },
    }


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("untyped", "the tool untyped has no schema: Argument item is missing a type hint"),
        ("undescribed", "it has no docstring"),
        ("unusual", "item is of type tuple[int, int]; a model can give text, numbers"),
        ("numbered", "table is of type dict[int, str]; a model can give text, numbers"),
        ("starred", "takes *items: str, which a call cannot name"),
        ("waiting", "the tool waiting is no function with def"),
    ],
)
def test_what_cannot_be_a_tool(functions: Any, name: str, why: str) -> None:
    with pytest.raises(UserError) as caught:
        Tools((getattr(functions, name),))
    assert why in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_tool_is_found_by_its_name_in_a_module(functions: Any) -> None:
    def inner(item: str) -> None:
        """Not at the top.

        Args:
            item: a text.
        """

    for wrong in (inner, lambda item: item):
        with pytest.raises(UserError, match="is not at the top of a module"):
            Tools((wrong,))
    with pytest.raises(UserError, match="is no function"):
        Tools((len,))
    with pytest.raises(UserError, match="two functions are called price"):
        Tools((functions.price, functions.price))
    with pytest.raises(UserError, match="name at least one"):
        Tools(())
    with pytest.raises(UserError, match="calls is 0; it must be at least 1"):
        Tools((functions.price,), calls=0)


def test_calls_are_run_in_order(functions: Any) -> None:
    tools = Tools((functions.price, functions.mean))
    text = f"I look. {call('price', item='pear', count=2)} and {call('mean', numbers=[1, 2.5])}"
    assert results(tools, text) == ["8", "1.75"]
    assert results(tools, call("mean", numbers=[1, 2.5], how="rounded")) == ["2"]


CALL = "error: a call is one JSON object"
WRONG = {
    "<tool_call>{": CALL,
    "<tool_call>": CALL,
    "<tool_call>[1]</tool_call>": CALL,
    "<tool_call>price(apple)</tool_call>": CALL,
    '<tool_call>{"name": "price", "arguments": {"count": NaN}}</tool_call>': CALL,
    '<tool_call>{"name": "price", "arguments": {"count": 1e999}}</tool_call>': CALL,
    '<tool_call>{"name": "price", "arguments": {"count": %s}}</tool_call>' % ("9" * 5000): CALL,
    '<tool_call>{"name": "price", "arguments": %s}</tool_call>' % ("[" * 100_000): CALL,
    '<tool_call>{"name": "price", "arguments": [1]}</tool_call>': CALL,
    '<tool_call>{"name": "\\ud800"}</tool_call>': CALL,
    call("cost", item="apple"): "error: there is no tool 'cost'; there are price, mean",
    call("__class__"): "error: there is no tool '__class__'",
    call("x" * 9999): f"error: there is no tool '{'x' * 59};",
    call("price"): "error: price needs item, text",
    call("price", item=3): "error: item is 3; it must be text",
    call("price", item="apple", count="2"): "error: count is '2'; it must be a whole number",
    call("price", item="apple", count=True): "error: count is True; it must be a whole number",
    call("price", item="apple", of="x"): "error: price has no argument 'of'; it takes item, count",
    call("price", item="plum"): "error: KeyError: 'plum'",
    call("mean", numbers=[]): "error: ZeroDivisionError: division by zero",
    call("mean", numbers=["a"]): "error: numbers is ['a']; it must be a list, each entry a number",
    call("mean", numbers=[1], how="odd"): "error: how is 'odd'; it must be one of plain, rounded",
    call("mean", numbers=json.loads("[" * 40 + "]" * 40)): "error: numbers is nested too deeply",
}


@pytest.mark.parametrize("text", WRONG, ids=range(len(WRONG)))
def test_a_wrong_call_is_one_short_line_for_the_model(functions: Any, text: str) -> None:
    (shown,) = results(Tools((functions.price, functions.mean)), text)
    assert shown.startswith(WRONG[text])
    assert len(shown) <= 300
    assert "\n" not in shown


@pytest.mark.parametrize(
    ("way", "shown"),
    [
        ("hang", "error: misbehave took longer than 0.5 s"),
        ("spin", "error: misbehave took longer than 0.5 s"),
        ("die", "error: misbehave ended its process"),
        ("exit", "error: SystemExit: bye"),
        ("huge", "x" * 50 + " ... (9,999,950 characters left out)"),
        ("digits", "error: ValueError: Exceeds the limit"),
        ("nan", "NaN"),
        ("loop", "[[...]]"),
        ("object", "\"<class 'object'>\""),
        ("nested", "error: ValueError: a ba b"),
        ("nothing", "null"),
        ("close", "error: misbehave ended its process"),
        ("stop", "error: misbehave took longer than 0.5 s"),
        ("deaf", "error: misbehave took longer than 0.5 s"),
        ("read", "error: EOFError: EOF when reading a line"),
        ("recurse", "error: RecursionError: maximum recursion depth exceeded"),
        ("half", '{"a": "?"}'),
        ("marks", "<|im_end|>\n<|im_start|>assistant\n?"),
    ],
)
def test_whatever_a_tool_does_the_next_one_runs(functions: Any, way: str, shown: str) -> None:
    tools = Tools((functions.misbehave, functions.price), deadline_s=0.5, characters=50)
    done = results(tools, call("misbehave", way=way) + call("price", item="apple"))
    assert done[0].startswith(shown)
    assert len(done[0]) <= 300
    assert done[1] == "3"


@pytest.mark.parametrize(
    ("way", "shown"),
    [("fork", "twice"), ("late", "parent"), ("grandchild", "parent"), ("write", "")],
)
def test_no_call_gets_the_reply_of_another(functions: Any, way: str, shown: str) -> None:
    """A child that a tool forks must not answer in its place, nor what it writes be a reply."""
    tools = Tools((functions.misbehave, functions.price), deadline_s=20)
    done = results(tools, call("misbehave", way=way) + call("price", item="apple"))
    assert done[0].startswith(shown)
    assert done[1] == "3"
    time.sleep(0.3)
    for count in range(2, 5):
        assert results(tools, call("price", item="apple", count=count)) == [str(3 * count)]
    # The parent alone reads questions, and a long one takes no longer than another.
    assert results(tools, call("misbehave", way="x" * 2_000_000)) == ["null"]


def test_a_call_that_is_cut_off() -> None:
    whole = '<tool_call>\n{"name": "price", "arguments": {"item": "pear"}}\n</tool_call>'
    tag, end = len("<tool_call>"), whole.index("}}") + 2
    for length in range(len(whole) + 1):
        names = [each.name for each in find_calls(f"I look. {whole[:length]}")]
        # From the end of the JSON on nothing is missing.
        assert names == ([] if length < tag else [""] if length < end else ["price"])
    # Inside a text no tag is cut off.
    (found,) = find_calls(f"{whole[:-4]} and")
    assert found.name == ""


@pytest.mark.parametrize("broken", ["<tool_call>", "<tool_call>{", '<tool_call>{"a": '])
def test_many_broken_calls_take_little_time(broken: str) -> None:
    """A model that repeats one token: with a quadratic search these took half a minute."""
    began = time.process_time()
    found = find_calls(broken * 60_000 + call("price"))
    assert time.process_time() - began < 4
    assert len(found) == 60_001
    assert found[-1].name == "price"


def test_a_call_in_a_thought_is_none() -> None:
    found = find_calls(f"<think>{call('a')}</think>{call('b')}")
    assert [each.name for each in found] == ["b"]
    assert find_calls(f"<think>{call('a')}") == []
    # The template has opened the thought.
    assert [each.name for each in find_calls(f"{call('a')}</think>{call('b')}")] == ["b"]


SHORT = [text for text in WRONG if len(text) < 200]


@settings(deadline=None, max_examples=50)
@given(st.lists(st.sampled_from([*SHORT, "<think>", "</think>", '"', "{", "a"]), max_size=6))
def test_any_text_has_calls_in_order(pieces: list[str]) -> None:
    text = "".join(pieces)
    found = find_calls(text)
    ends = [0, *(each.end for each in found)]
    assert all(before <= each.start < each.end for before, each in zip(ends, found))


class Shop(ConversationEnv):
    title = "shop"
    metadata = {**ConversationEnv.metadata, "name": "shop_v0"}  # noqa: RUF012
    default_roles = ("buyer", "seller")
    functions: Any = None

    def tools(self) -> Any:
        return {"buyer": Tools((self.functions.price,), calls=3)}

    def conversation(self, problem: Problem, options: Any, random: Any) -> Any:
        buyer, seller = self.possible_agents
        answers = yield Turn(
            {buyer: Ask("What?", max_new_tokens=9, stop=("!",)), seller: "Who?"},
            lambda answers: ScoreRequests(tuple((text, problem) for text in answers.values())),
        )
        self.heard = dict(answers)
        # The result is worth 1 only if it was looked up.
        paid = sum(float(each.result) for each in self.calls_of(buyer) if not each.failed)
        more = yield {buyer: Ask("More?", trained=False)}
        return Outcome(
            {buyer: {"paid": paid}},
            turn_rewards={buyer: [paid, 0.0]},
            truncated=[buyer] if not more else [],
        )


@pytest.fixture
def shop(functions: Any, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setattr(Shop, "functions", functions)
    env = Shop()
    env.reset(seed=1, options={"problem": Problem("p", "q", "2")})
    return env


def test_an_episode_is_paid_by_the_result_of_a_call(shop: Any) -> None:
    first = {"buyer_0": f"let me see {call('price', item='pear')}", "seller_0": "me"}
    # The seller's answer is scored with the buyer's last one.
    assert shop.score_requests(first) == ScoreRequests()
    observations, rewards, _, _, infos = shop.step(first)
    assert observations["buyer_0"] == {
        "text": "<tool_response>\n4\n</tool_response>", "active": 1
    }  # fmt: skip
    assert observations["seller_0"]["active"] == 0
    assert infos["buyer_0"] == {
        "piece": "tools",
        "tool_results": [{"content": "4", "name": "price"}],
        "max_new_tokens": 9,
        "stop": ["!"],
        "continues": True,
    }
    assert rewards == {"buyer_0": 0.0, "seller_0": 0.0}
    second = {"buyer_0": "It is 4."}
    graded = [text for text, _ in shop.score_requests(second).checks]
    assert graded == ["me", "It is 4."]
    observations, *_ = shop.step(second)
    assert shop.heard == {"seller_0": "me", "buyer_0": "It is 4."}
    assert observations["buyer_0"]["text"] == "More?"
    _, rewards, *_, infos = shop.step({"buyer_0": "no"})
    info = infos["buyer_0"]
    assert rewards["buyer_0"] == 4.0
    assert (info["tool_calls"], info["tool_errors"]) == (1, 0)
    assert "tool_calls" not in infos["seller_0"]
    # Three turns: the call, which earns what comes after it; the answer; and one without a loss.
    assert info["turn_rewards"] == [0.0, 4.0, 0.0]
    assert info["trained_turns"] == [0, 1]


def test_after_the_limit_an_answer_is_the_last(shop: Any) -> None:
    shop.step({"buyer_0": call("price", item="pear") * 2, "seller_0": "me"})
    many = call("price", item="apple") + "<tool_call>{" * 1000
    observations, *_ = shop.step({"buyer_0": many})
    shown = observations["buyer_0"]["text"].split("<tool_response>\n")
    assert shown[1].startswith("3\n")
    assert shown[2].startswith("error: there are at most 3 calls; the others were not made")
    assert len(shown) == 3
    observations, *_ = shop.step({"buyer_0": call("price", item="pear")})
    assert shop.heard["buyer_0"] == call("price", item="pear")
    # The next question has its own calls.
    assert observations["buyer_0"]["text"] == "More?"
    observations, *_ = shop.step({"buyer_0": "<tool_call>"})
    assert "error: a call is one JSON" in observations["buyer_0"]["text"]
    _, rewards, *_ = shop.step({"buyer_0": ""})
    assert rewards["buyer_0"] == 4 + 4 + 3


def test_an_agent_that_fails_after_a_call_has_no_answer(shop: Any) -> None:
    shop.step({"buyer_0": call("price", item="pear"), "seller_0": "me"})
    shop.step({})
    assert shop.heard == {"seller_0": "me"}
    *_, infos = shop.step({"buyer_0": "x"})
    assert infos["buyer_0"]["failed"] is True


def test_only_the_last_answer_is_learned_with_its_calls(shop: Any) -> None:
    from types import SimpleNamespace

    shop.settings = SimpleNamespace(train_turns="last")
    look = call("price", item="pear")
    for said in (look, "a", look, "b"):
        *_, infos = shop.step({"buyer_0": said, "seller_0": "me"})
    # The second question is not trained, so the answer to the first is the last one that is.
    assert infos["buyer_0"]["trained_turns"] == [0, 1]


def test_wrong_tools_are_named(functions: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    for wrong in ({"cook": Tools((functions.price,))}, {"buyer": (functions.price,)}, 3):
        monkeypatch.setattr(Shop, "tools", lambda self, wrong=wrong: wrong)
        with pytest.raises(UserError, match=r"shop: tools\(\) gave .*; it must give Tools"):
            Shop()


def test_it_keeps_the_contract(functions: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Shop, "functions", functions)
    envs.check_env(Shop(), varied=False)
