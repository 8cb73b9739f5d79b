"""An agent with a Python console: what is run, what it is shown, what it learns from."""

import sys
from typing import Any

import numpy as np
import pytest

from coterie import envs
from coterie.datatypes import Problem, UserError
from coterie.extras.programs import console
from coterie.extras.programs.tool_use import ToolUseSettings, program_in

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the guard is Linux's")
SPEC = "coterie.extras.programs.tool_use:SPEC"
PROBLEM = Problem("p", "What is 12 * 12?", "144", "number")


def answered(texts: list[str], **settings: Any) -> tuple[list[str], list[Any], Any, Any]:
    """(what was shown, the infos with it, the reward, the last info)."""
    env: Any = envs.make(SPEC, view="text", settings=ToolUseSettings(**settings))
    observations, infos = env.reset(seed=0, options={"problem": PROBLEM})
    shown, asked, rewards = [], [], {}
    for text in texts:
        shown.append(observations["solver_0"]["text"])
        asked.append(infos["solver_0"])
        observations, rewards, _, _, infos = env.step({"solver_0": text})
    assert not env.agents
    return shown, asked, rewards["solver_0"], infos["solver_0"]


def test_an_answer_without_a_program() -> None:
    shown, asked, reward, info = answered([r"\boxed{144}"])
    assert shown[0].startswith("What is 12 * 12?\n\nYou may run Python")
    assert asked[0]["stop"] == ["</python>"]
    assert (reward, info["calls"], info["errors"]) == (1.0, 0, 0)


def test_programs_are_run_and_shown_until_calls_are_used_up() -> None:
    texts = ["Let me see. <python>12 * 12</python>", "<python>1 / 0</python>", r"\boxed{144}"]
    shown, asked, reward, info = answered(texts, calls=2, call_cost=0.25)
    assert shown[1] == "\n<output>\n144\n</output>\n"
    assert "ZeroDivisionError" in shown[2]
    assert [info["piece"] for info in asked] == ["message", "continuation", "continuation"]
    # The last stretch is written without a console.
    assert [info["stop"] for info in asked] == [["</python>"], ["</python>"], []]
    # One right answer less two calls.
    assert (reward, info["calls"], info["errors"]) == (0.5, 2, 1)
    assert info["reward_terms"] == {"correct": 1.0, "calls": -0.5}


def test_a_calculator_between_equals_signs() -> None:
    settings: Any = {"opens": "", "closes": " =", "program": "({}) % 10", "output": " {}"}
    shown, _, _, info = answered([" 7 + 8 =", " - 3 =", " so 2"], **settings)
    assert shown[1:] == [" 5", " 2"]
    assert info["errors"] == 0


def test_no_loss_falls_on_what_the_console_wrote() -> None:
    env: Any = envs.make(SPEC)
    observations, _ = env.reset(seed=0, options={"problem": PROBLEM})
    prompt = len(observations["solver_0"]["tokens"])
    call = np.frombuffer(b"<python>12 * 12</python>", np.uint8).astype(np.int64)
    observations, _, _, _, infos = env.step({"solver_0": call})
    context = bytes(observations["solver_0"]["tokens"].astype(np.uint8))
    assert context[prompt:] == b"<python>12 * 12</python>\n<output>\n144\n</output>\n"
    assert "fresh" not in infos["solver_0"]


def test_a_program_in_a_thought_is_none() -> None:
    texts = [
        "<think>I could run <python>print(1)</python>",
        " or <python>print(2)</python>",
        ".</think><python>12 * 12</python>",
        r"\boxed{144}",
    ]
    shown, asked, reward, info = answered(texts, call_cost=0.25)
    assert shown[1:3] == ["", ""]
    assert shown[3] == "\n<output>\n144\n</output>\n"
    assert [info["piece"] for info in asked[1:]] == ["continuation"] * 3
    assert [info["stop"] for info in asked] == [["</python>"]] * 4
    assert (reward, info["calls"]) == (0.75, 1)


def test_a_thought_full_of_programs_ends() -> None:
    thoughts = ["<think><python>1</python>", *["<python>1</python>"] * 2]
    _, _, reward, info = answered(thoughts, calls=2)
    assert (reward, info["calls"]) == (0.0, 0)


def test_a_program_of_a_thought_and_after_it_is_run_once() -> None:
    text = "<think>First <python>print('thought')</python>, then.</think><python>12 + 1</python>"
    shown, _, _, info = answered([text, r"\boxed{13}"])
    assert (shown[1], info["calls"]) == ("\n<output>\n13\n</output>\n", 1)


def test_the_program_is_what_stands_before_the_last_mark() -> None:
    settings = ToolUseSettings()
    assert program_in("a <python>x</python> b <python> y </python>", settings) == "y"
    assert program_in("no mark </python>", settings) == "no mark"


@pytest.mark.parametrize("view", ["token", "text"])
def test_the_contract(view: Any) -> None:
    envs.check_env(envs.make(SPEC, view=view))


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"prompt": "Solve"}, r"--env.prompt must say \{question\}"),
        ({"program": "1"}, r"--env.program must say \{\}"),
        ({"output": "1"}, r"--env.output must say \{\}"),
        ({"closes": ""}, "--env.closes must not be empty"),
        ({"calls": 0}, "calls is 0; it must be at least 1"),
    ],
)
def test_invalid_settings_are_refused(settings: dict[str, Any], sentence: str) -> None:
    with pytest.raises(UserError, match=sentence):
        ToolUseSettings(**settings)


def test_programs_of_several_conversations_run_side_by_side() -> None:
    """Before any of them steps, as a collector asks all of them what they need graded."""
    played: list[Any] = [envs.make(SPEC, view="text") for _ in range(2)]
    actions = []
    for number, env in enumerate(played):
        env.reset(seed=0, options={"problem": PROBLEM})
        actions.append({"solver_0": f"<python>print({number}, 'of a test')</python>"})
    begun = console._begun.cache_info().misses
    for env, action in zip(played, actions, strict=True):
        env.score_requests(action)
    assert console._begun.cache_info().misses == begun + 2
    for number, (env, action) in enumerate(zip(played, actions, strict=True)):
        observations, *_ = env.step(action)
        assert f"{number} of a test" in observations["solver_0"]["text"]
    assert console._begun.cache_info().misses == begun + 2
    # No program stands in a thought.
    played[0].score_requests({"solver_0": "<think><python>print(3)</python>"})
    assert console._begun.cache_info().misses == begun + 2
