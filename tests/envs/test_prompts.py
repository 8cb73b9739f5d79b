"""What a chat model is asked: in every environment, for an answer in a form that is read."""

import re
from typing import Any

import pytest

from coterie import envs
from coterie.datatypes import AnswerKind, Problem
from coterie.envs.core_teaching.settings import CoreTeachingSettings
from coterie.envs.eapo_consultation.messages import ExpertCall, parse_calls
from coterie.envs.eapo_consultation.settings import EapoConsultationSettings
from coterie.envs.prompts import answer_sentence, lone_prompt, strategy_prompt
from coterie.envs.sd_e2.settings import SdE2Settings
from coterie.rewards.grading.scorer import AnswerScorer

LINE = "Think.\nAnswer: 2"
BOX = r"\boxed{2} \confidence{0.9}"
PROBLEM = Problem("p", "7 + 8 - 3 =", "2", "number")
ASKED = [
    ("core-teaching", CoreTeachingSettings(prompt_style="answer"), "Answer: ", LINE),
    ("sd-e2", SdE2Settings(prompt_style="answer"), "Answer: ", LINE),
    ("eapo-consultation", EapoConsultationSettings(prompt_style="answer"), "Answer: ", LINE),
    ("corea-deferral", None, r"\boxed{}", BOX),
    ("coterie.envs.solo:SoloEnv", None, r"\boxed{}", BOX),
]


@pytest.mark.parametrize(("name", "settings", "form", "answer"), ASKED)
def test_every_environment_asks_for_a_form_that_its_checker_reads(
    name: str, settings: Any, form: str, answer: str
) -> None:
    env = envs.make(name, settings=settings, view="text", scorer=AnswerScorer())
    shown, _ = env.reset(seed=1, options={"problem": PROBLEM})
    asked = [agent for agent in env.possible_agents if shown[agent]["active"]]
    for agent in asked:
        assert PROBLEM.question in shown[agent]["text"]
        assert form in shown[agent]["text"]
    infos: dict[str, Any] = {}
    while env.agents:
        *_, infos = env.step(dict.fromkeys(asked, answer))
    for agent in asked:
        assert infos[agent]["answer"] == "2"
        assert infos[agent]["correct"]


def test_the_sentence_names_what_the_answer_is() -> None:
    ends: dict[AnswerKind, str] = {
        "number": '"Answer: " followed by the number.',
        "math": '"Answer: " followed by the answer.',
        "choice": '"Answer: " followed by the letter of the option.',
        "list": '"Answer: " followed by the values, separated by commas.',
        "code": "one fenced block of Python that holds the whole function.",
    }
    for kind, end in ends.items():
        assert answer_sentence(kind).startswith("Think step by step, and end with ")
        assert answer_sentence(kind).endswith(end)


def test_a_hint_stands_between_the_question_and_the_sentence() -> None:
    parts = strategy_prompt(PROBLEM, "answer", "add {first}").split("\n\n")
    assert parts == [PROBLEM.question, "Hint:\nadd {first}", answer_sentence("number")]
    assert strategy_prompt(PROBLEM, "answer") == lone_prompt(PROBLEM.question, "answer", "number")


def test_the_call_that_a_policy_is_shown_can_be_made() -> None:
    settings = EapoConsultationSettings(prompt_style="answer")
    env = envs.make("eapo-consultation", settings=settings, view="text")
    shown, _ = env.reset(seed=1, options={"problem": PROBLEM})
    payload = re.search("<agent_calls>(.*)</agent_calls>", shown["policy_0"]["text"], re.DOTALL)
    assert payload is not None
    assert parse_calls(payload[1], 3) == [ExpertCall(1, "your question")]
