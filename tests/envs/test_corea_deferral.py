"""The cascade, step by step, with numbers that can be followed by hand."""

from dataclasses import replace

import pytest

from coterie.datatypes import Problem, Verdict
from coterie.envs.corea_deferral import CoreaDeferralEnv, CoreaDeferralSettings
from coterie.envs.corea_deferral.settings import SUFFIX
from coterie.rewards.grading.answers.extract import extract


class BoxScorer:
    """The box is the answer, compared as a string."""

    def __init__(self):
        self.checked = []

    def check(self, response, problem):
        self.checked.append(response)
        answer = extract(response)
        return Verdict(answer == problem.gold, answer, "string")

    def embed(self, texts):
        raise AssertionError("nothing is embedded here")

    def prefetch(self, requests):
        pass


def say(answer, confidence=None):
    mark = "" if confidence is None else rf" \confidence{{{confidence}}}"
    return rf"so \boxed{{{answer}}}{mark}"


@pytest.fixture
def question():
    return Problem(id="q", question="7 + 8 - 3 =", gold="2", kind="number")


@pytest.fixture
def begin(question):
    """Settings and mode -> (environment, observations, infos) of a fresh episode."""

    def start(mode="train", **settings):
        settings = CoreaDeferralSettings(**{"w_confidence": 1.0, **settings})
        env = CoreaDeferralEnv(settings, scorer=BoxScorer())
        return env, *env.reset(seed=1, options={"problem": question, "mode": mode})

    return start


def asked(observations):
    return [agent for agent, seen in observations.items() if seen["active"]]


def test_training_asks_the_learners_only(begin):
    env, observations, infos = begin(traces=2)
    assert asked(observations) == ["small_0", "small_1"]
    # Section 3.1, word for word.
    assert observations["small_0"]["text"] == (
        "7 + 8 - 3 = Please reason step by step, and put your final answer within \\boxed{}, then "
        "output the confidence (0.0-1.0) that your answer is correct within \\confidence{}."
    )
    assert infos["small_0"]["max_new_tokens"] == 40
    assert "continues" not in infos["small_0"]
    *_, done, _, _ = env.step({"small_0": say(2, 0.1), "small_1": say(3, 0.1)})
    assert all(done.values())
    assert env.agents == []


def test_training_rewards_by_hand(begin):
    env, *_ = begin(traces=4)
    # Three of four are right: p-hat .75.
    answers = [say(2, 0.8), say(2, 1), say(2), say(3, 0.75)]
    _, rewards, _, _, infos = env.step({f"small_{i}": text for i, text in enumerate(answers)})
    earned = [infos[f"small_{i}"]["reward_terms"] for i in range(4)]
    assert earned[0] == pytest.approx({"correct": 1, "format": 1, "confidence": -0.05})
    assert earned[1]["confidence"] == pytest.approx(-0.25)
    # Silence: the lowest confidence reward, and a third of the format less.
    assert earned[2] == pytest.approx({"correct": 1, "format": 2 / 3, "confidence": -1})
    assert rewards["small_3"] == pytest.approx(0 + 1 + 0)
    assert infos["small_3"]["episode"]["p_hat"] == {"small": 0.75}
    assert infos["large_0"]["reward_terms"] == {"correct": 0, "format": 0, "confidence": 0}


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({"confidence_reward": "none"}, [0, 0]),
        ({"p_hat": "sample"}, [-0.2, -0.4]),
        ({"p_hat": "leave-one-out"}, [-0.8, -0.6]),
        ({"confidence_reward": "l2", "p_hat": "sample"}, [-0.04, -0.16]),
        ({"w_confidence": 2.0}, [-0.6, -0.2]),
    ],
)
def test_every_confidence_reward(begin, settings, expected):
    env, *_ = begin(traces=2, **settings)
    *_, infos = env.step({"small_0": say(2, 0.8), "small_1": say(3, 0.4)})
    got = [infos[f"small_{i}"]["reward_terms"]["confidence"] for i in range(2)]
    assert got == pytest.approx(expected)


BEHIND = ["\n\nThe answer is likely correct.", "\n**Answer** is above.", "\n#### done"]


@pytest.mark.parametrize("behind", [*BEHIND, "<result>ok</result>", ""])
def test_nothing_behind_the_last_box_is_the_answer(begin, behind):
    env, *_ = begin(traces=3)
    *_, infos = env.step(
        {
            "small_0": r"\boxed{3}, no: \boxed{2}" + behind + r" \confidence{0.9}",
            "small_1": r"<think>\boxed{3}</think>Answer: 2 \confidence{0.9}",
            "small_2": r"<think>\boxed{2}</think>\boxed{7} \confidence{0.9}",
        }
    )
    assert infos["small_0"]["correct"]
    assert infos["small_0"]["answer"] == "2"
    # Without a box, the answer stands where any answer may stand, a confidence beside it.
    assert infos["small_1"]["answer"] == "2"
    assert infos["small_1"]["correct"]
    assert infos["small_2"]["answer"] == "7"


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        (r"x = -\boxed{2}", "-2"),
        (r"\boxed{2}\times 10^3", r"2\times 10^3"),
        (r"\boxed{2} and \boxed{3}", "2, 3"),
        (r"\boxed{2}. It stands within \boxed{}", "2"),
        ("\\boxed{2}\n\nQuestion: 1 + 2 = ? \\boxed{3}", "2"),
        (r"It is not \boxed{3}. Answer: 2", "2"),
    ],
)
def test_a_box_is_read_with_what_belongs_to_it(begin, text, answer):
    env, *_ = begin(traces=1)
    *_, infos = env.step({"small_0": text + r" \confidence{0.9}"})
    assert infos["small_0"]["answer"] == answer
    assert infos["small_0"]["correct"] == (answer == "2")


def test_a_program_is_graded_whole(begin, question):
    env, *_ = begin()
    program = "def f():\n    return 1  # \\boxed{1}\n"
    env.reset(seed=1, options={"problem": replace(question, kind="code")})
    asked_of = env.score_requests({"small_0": program}).checks
    assert [text for text, _ in asked_of] == [program]


def test_who_failed_is_left_out_of_the_group(begin):
    env, *_ = begin(traces=3)
    *_, infos = env.step({"small_0": say(2, 0.5), "small_1": say(3, 0.5)})
    assert infos["small_0"]["reward_terms"]["confidence"] == 0
    assert infos["small_2"]["failed"]
    assert infos["small_0"]["episode"]["failed"] == 1


@pytest.mark.parametrize(
    ("threshold", "confidence", "kept"),
    [
        (0.5, 0.5, True),
        (0.5, 0.49, False),
        (0.5, 1, True),
        (0.5, None, False),
        (0.5, "high", False),
        # Only a threshold above one defers certainty.
        (0.0, 1, True),
        (1.0, 1, True),
        (1.1, 1, False),
    ],
)
def test_the_threshold_itself_keeps(begin, threshold, confidence, kept):
    env, *_ = begin("eval", eval_traces=1, threshold=threshold)
    observations, _, done, _, infos = env.step({"small_0": say(3, confidence)})
    assert all(done.values()) == kept
    assert asked(observations) == ([] if kept else ["large_0"])
    if not kept:
        assert observations["large_0"]["text"] == f"7 + 8 - 3 = {SUFFIX}"
        # The large role's own confidence is ignored.
        *_, infos = env.step({"large_0": say(2, 0)})
    (outcome,) = infos["small_0"]["episode"]["cascade"]
    assert outcome["deferred"] == (not kept)
    assert outcome["correct"] == (not kept)
    assert outcome["answered_by"] == ("small_0" if kept else "large_0")


def test_costs_by_hand(question):
    """120 tokens of prompt, 600 and 550 of output: 2520, and 2750 more, times 32 / 7."""

    class Meter:
        def __init__(self, tokens):
            self.tokens = tokens

        def count(self, text):
            return 120 if SUFFIX in text else self.tokens

        def truncate(self, text, limit, *, keep="head"):
            raise AssertionError

    env = CoreaDeferralEnv(
        CoreaDeferralSettings(eval_traces=2),
        scorer=BoxScorer(),
        tokenizers={"small": Meter(600), "large": Meter(550)},
    )
    env.reset(seed=0, options={"problem": question, "mode": "eval"})
    env.step({"small_0": say(2, 0), "small_1": say(2, 1)})
    *_, infos = env.step({"large_0": say(2, 1)})
    deferred, kept = infos["small_0"]["episode"]["cascade"]
    assert kept["cost"] == 2520
    assert deferred["cost"] == pytest.approx(13125.714, abs=1e-3)
    assert infos["large_0"]["cost"] == pytest.approx(10605.714, abs=1e-3)


def test_a_small_role_that_fails_is_deferred_and_costs_nothing(begin):
    env, *_ = begin("eval", eval_traces=1)
    observations, *_ = env.step({})
    assert asked(observations) == ["large_0"]
    *_, infos = env.step({})
    assert infos["small_0"]["episode"]["cascade"] == [
        {"deferred": True, "answered_by": None, "answer": None, "correct": False, "cost": 0.0}
    ]


def test_responses_asks_both_at_once(begin):
    env, observations, _ = begin("responses", eval_traces=2)
    assert asked(observations) == ["small_0", "small_1", "large_0", "large_1"]
    _, rewards, done, _, infos = env.step({"small_0": say(2, 0), "large_1": say(3, 1)})
    assert all(done.values())
    assert rewards["small_0"] == 1
    assert infos["small_0"]["reward_terms"] == {"correct": 1.0}


def test_the_large_role_trains_in_the_same_way(begin):
    env, observations, _ = begin(traces=2, learners=("large",))
    assert asked(observations) == ["large_0", "large_1"]
    *_, infos = env.step({"large_0": say(2, 1), "large_1": say(3, 0.5)})
    assert infos["large_0"]["reward_terms"]["confidence"] == pytest.approx(-0.5)
    assert infos["large_0"]["groups"] == {"problem+role": "q/large", "problem": "q"}


def test_both_train_and_nobody_is_asked_twice(begin):
    env, observations, _ = begin(traces=2, learners=("small", "large"), ask_large=True)
    assert len(asked(observations)) == 4
    sure = dict.fromkeys(("small_1", "large_0", "large_1"), say(2, 1))
    *_, done, _, infos = env.step({"small_0": say(3, 0), **sure})
    assert all(done.values())
    cascade = infos["small_0"]["episode"]["cascade"]
    assert [outcome["answered_by"] for outcome in cascade] == ["large_0", "small_1"]


def test_training_pays_for_the_large_role_when_told_to(begin):
    env, *_ = begin(traces=2, ask_large=True)
    observations, *_ = env.step({"small_0": say(3, 0.2), "small_1": say(2, 0.9)})
    assert asked(observations) == ["large_0"]
    *_, infos = env.step({"large_0": say(2, 0.9)})
    # p-hat of the small role is 1 of 2, whatever the large one says.
    assert infos["small_0"]["reward_terms"]["confidence"] == pytest.approx(-0.3)


@pytest.mark.parametrize("garbage", ["", "\\" * 10**6, r"\confidence{" * 10**5])
@pytest.mark.parametrize("mode", ["train", "eval", "responses"])
def test_any_answer_is_survived(begin, garbage, mode):
    env, *_ = begin(mode, traces=1, eval_traces=1)
    while env.agents:
        *_, infos = env.step(dict.fromkeys(env.agents, garbage))
    assert not infos["small_0"]["correct"]


def test_what_is_asked_of_the_scorer_is_foretold(begin):
    env, *_ = begin("eval", eval_traces=2)
    actions = {"small_0": say(2, 0), "small_1": say(3, 1), "large_1": "idle"}
    foretold = [text for text, _ in env.score_requests(actions).checks]
    env.step(actions)
    assert env.scorer.checked == foretold


def test_an_answer_without_a_confidence_goes_on_with_one(begin):
    env, observations, infos = begin(traces=3, prefill_confidence=True)
    assert "confidence" not in observations["small_0"]["text"]
    assert infos["small_0"]["continues"]
    first = {"small_0": say(2), "small_1": say(2, 0.4), "small_2": say(3)}
    observations, _, terminations, _, infos = env.step(first)
    assert asked(observations) == ["small_0", "small_2"]
    assert observations["small_0"]["text"].endswith(" is \\confidence{")
    assert (infos["small_0"]["piece"], infos["small_0"]["stop"]) == ("continuation", ["}"])
    assert "continues" not in infos["small_0"]
    assert not any(terminations.values())
    *_, infos = env.step({"small_0": "0.9}", "small_2": "sure}"})
    stated = [infos[f"small_{i}"]["confidence"] for i in range(3)]
    assert stated == [0.9, 0.4, None]
    assert [infos[f"small_{i}"]["answer"] for i in range(3)] == ["2", "2", "3"]
    # One answer, a confidence after it, one language: a third each; p_hat is 2/3.
    terms = [infos[f"small_{i}"]["reward_terms"] for i in range(3)]
    assert [term["format"] for term in terms] == pytest.approx([1.0, 1.0, 2 / 3])
    assert [term["confidence"] for term in terms] == pytest.approx([2 / 3 - 0.9, 0.4 - 2 / 3, -1])


def test_a_trace_whose_confidence_fails_is_paid_nothing_and_enters_no_target(begin):
    env, *_ = begin(traces=3, prefill_confidence=True)
    env.step({"small_0": say(2), "small_1": say(2), "small_2": say(3, 0.5)})
    _, rewards, _, _, infos = env.step({"small_0": "0.5}"})
    assert (rewards["small_1"], infos["small_1"]["failed"]) == (0, True)
    assert "correct" not in infos["small_1"]
    # One of the two others is right.
    assert infos["small_0"]["reward_terms"]["confidence"] == 0
    assert infos["small_0"]["episode"]["p_hat"] == {"small": 0.5}
    assert infos["small_0"]["episode"]["failed"] == 1


def test_an_answer_whose_confidence_fails_is_deferred(begin):
    env, *_ = begin("eval", eval_traces=1, prefill_confidence=True)
    env.step({"small_0": say(2)})
    observations, *_ = env.step({})
    assert asked(observations) == ["large_0"]
    *_, infos = env.step({"large_0": say(2)})
    assert infos["small_0"]["episode"]["cascade"][0]["answered_by"] == "large_0"


def test_where_all_state_a_confidence_nothing_is_added(begin):
    env, *_ = begin(traces=2, prefill_confidence=True)
    *_, terminations, _, infos = env.step({"small_0": say(2, 0.5), "small_1": say(2, 0.6)})
    assert all(terminations.values())
    assert infos["small_1"]["confidence"] == 0.6


def test_the_large_model_states_no_confidence_that_nobody_reads(begin):
    env, *_ = begin("eval", eval_traces=1, prefill_confidence=True)
    observations, *_ = env.step({"small_0": say(3)})
    observations, *_, infos = env.step({"small_0": "0.1}"})
    assert asked(observations) == ["large_0"]
    assert "continues" not in infos["large_0"]
    *_, terminations, _, infos = env.step({"large_0": say(2)})
    assert all(terminations.values())
    assert infos["large_0"]["correct"]
