"""Scripted conversations whose entries, coins and rewards are worked out by hand."""

import asyncio
import dataclasses
import json
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import envs
from agents.scripted import Scripted
from envs.bytes_codec import BytesCodec
from envs.eapo_consultation import EapoConsultationEnv, EapoConsultationSettings
from envs.eapo_consultation.episode import coin
from envs.eapo_consultation.prompts import lone_prompt, training_prompt
from envs.eapo_consultation.replies import as_result
from envs.eapo_consultation.report import paradigm
from rewards.scorer import AnswerScorer
from rollouts import play, tasks_for
from vocabulary import Problem, Sampling, UserError

LONG = EapoConsultationSettings(max_new_tokens=4000, expert_max_new_tokens=500, reply_tokens=500)
THOUGHT = "<think> hm </think>"
RIGHT = f"{THOUGHT}\nAnswer: 2"


def calls(*asked: tuple[int, str]) -> str:
    entries = [{"expert_id": e, "input_parameters": {"query": q}} for e, q in asked]
    return f"{THOUGHT}<agent_calls>{json.dumps(entries)}</agent_calls>"


class Played:
    """One conversation between a list of policy turns and experts that answer by a function."""

    def __init__(
        self,
        turns: list[str],
        expert: Callable[[str, str], str | None] = lambda agent, query: f"{agent} says 2",
        settings: EapoConsultationSettings = LONG,
        **options: Any,
    ) -> None:
        self.env = EapoConsultationEnv(settings, scorer=AnswerScorer())
        observations, infos = self.env.reset(seed=options.pop("seed", 5), options=options)
        self.shown: list[str] = []
        self.queries: list[dict[str, str]] = []
        self.limits: list[dict[str, Any]] = []
        left = iter(turns)
        while self.env.agents:
            asked = {a: observations[a]["text"] for a in observations if observations[a]["active"]}
            assert asked
            if "policy_0" in asked:
                assert list(asked) == ["policy_0"]
                self.shown.append(asked["policy_0"])
                self.limits.append(infos["policy_0"])
                actions = {"policy_0": next(left)}
            else:
                self.queries.append(asked)
                assert all(infos[agent]["piece"] == "fresh" for agent in asked)
                replies = {agent: expert(agent, query) for agent, query in asked.items()}
                actions = {agent: reply for agent, reply in replies.items() if reply is not None}
            observations, self.rewards, self.terminated, self.truncated, infos = self.env.step(
                actions
            )
        assert next(left, None) is None, "the conversation ended early"
        self.infos = infos
        self.info = infos["policy_0"]

    def returned(self, turn: int) -> Any:
        text = self.shown[turn].strip()
        return json.loads(text.removeprefix("<agent_returns>").removesuffix("</agent_returns>"))


def test_self_reliance(problem: Problem) -> None:
    played = Played([RIGHT], problem=problem)
    assert played.shown == ["Question: 7 + 8 - 3 =\nExperts: 1 to 3\nSolve:"]
    assert played.limits[0]["stop"] == ["</agent_calls>"]
    assert played.rewards == {"policy_0": 1.0, "expert_0": 0, "expert_1": 0, "expert_2": 0}
    assert played.info["paradigm"] == "self"
    assert played.info["formatted"]
    assert not played.info["consulted"]
    assert played.terminated["policy_0"]
    assert not played.truncated["policy_0"]


def test_two_experts_at_once_each_see_their_query_only(problem: Problem) -> None:
    turns = [calls((3, "7 + 8 ="), (1, "$\\tau$?")), RIGHT]
    played = Played(turns, problem=problem, step=1)
    assert played.queries == [
        {
            "expert_2": "Question: 7 + 8 =\nSolve:",
            "expert_0": "Question: $\\tau$?\nSolve:",
        }
    ]
    assert played.limits[1]["piece"] == "continuation"
    assert played.returned(1) == [
        {"expert_id": 3, "result": "expert_2 says 2"},
        {"expert_id": 1, "result": "expert_0 says 2"},
    ]
    counted = ("consults", "calls", "accepted", "rejected", "unavailable", "rounds", "errors")
    assert [played.info[name] for name in counted] == [1, 2, 2, 0, 0, 1, 0]
    assert played.info["paradigm"] == "decomposition"
    assert played.info["formatted"]
    assert played.rewards["policy_0"] == 1.0
    assert played.infos["expert_2"]["asked"] == played.infos["expert_2"]["replied"] == 1
    assert played.infos["expert_1"]["asked"] == 0
    assert played.infos["expert_0"]["loss_weight"] == 0.0


def test_a_second_round_begins_afresh_for_the_expert(problem: Problem) -> None:
    env: Any = envs.make("eapo-consultation", settings=LONG, scorer=AnswerScorer())
    observations, infos = env.reset(seed=0, options={"problem": problem})
    seen = []
    for text in (calls((1, "one")), "uno", calls((1, "two")), "due", RIGHT):
        agent = next(a for a in env.agents if observations[a]["active"])
        if agent == "expert_0":
            seen.append(bytes(observations[agent]["tokens"].tolist()).decode())
            assert infos[agent]["text"] == seen[-1]
            assert infos[agent]["fresh"]
        observations, _, _, _, infos = env.step({agent: np.frombuffer(text.encode(), np.uint8)})
    assert seen == ["Question: one\nSolve:", "Question: two\nSolve:"]
    assert infos["expert_0"]["texts"] == [seen[0], "uno", seen[1], "due"]


def test_the_coin_decides_reply_by_reply(problem: Problem) -> None:
    settings = dataclasses.replace(LONG, schedule="const", accept_rate=0.5)
    seen = set()
    for seed in range(12):
        played = Played(
            [calls((1, "a"), (2, "b")), RIGHT], settings=settings, problem=problem, seed=seed
        )
        verdicts = tuple(coin(seed, 0, 0, expert) <= 0.5 for expert in (1, 2))
        seen.add(verdicts)
        for entry, accepted, agent in zip(
            played.returned(1), verdicts, ("expert_0", "expert_1"), strict=True
        ):
            told = f"{agent} says 2" if accepted else ""
            assert entry["result"] == told
            assert entry.get("status") == (None if accepted else "UNAVAILABLE")
        # Rejected calls are never dispatched, and cost a round all the same.
        asked = {a for queries in played.queries for a in queries}
        assert asked == {a for a, yes in zip(("expert_0", "expert_1"), verdicts) if yes}
        assert played.info["rounds"] == 1
    assert seen == {(True, True), (True, False), (False, True), (False, False)}


def test_drawing_after_dispatch_lets_the_same_replies_in(problem: Problem) -> None:
    for seed in range(6):
        shown = []
        for early in (True, False):
            settings = dataclasses.replace(
                LONG, schedule="const", accept_rate=0.5, draw_before_dispatch=early
            )
            turns = [calls((1, "a"), (2, "b")), RIGHT]
            played = Played(turns, settings=settings, problem=problem, seed=seed)
            shown.append(played.shown)
        assert shown[0] == shown[1]
        assert set(played.queries[0]) == {"expert_0", "expert_1"}


def test_replicas_have_coins_of_their_own_or_share_them(problem: Problem) -> None:
    def accepted(coin: str) -> list[int]:
        settings = dataclasses.replace(LONG, schedule="const", accept_rate=0.5, coin=coin)
        return [
            Played(
                [calls((1, "a")), RIGHT], settings=settings, problem=problem, replica=replica
            ).info["accepted"]
            for replica in range(10)
        ]

    assert set(accepted("response")) == {0, 1}
    assert len(set(accepted("group"))) == 1


def test_the_acceptance_falls_with_the_step(problem: Problem) -> None:
    for step, rate in ((1, 1.0), (2, 0.5), (50, 0.02)):
        assert Played([RIGHT], problem=problem, step=step).info["acceptance"] == rate


def test_an_expert_that_fails_or_says_nothing_is_unavailable(problem: Problem) -> None:
    turns = [calls((1, "a"), (2, "b"), (3, "c")), RIGHT]
    said = {"expert_0": None, "expert_1": "", "expert_2": "<think> never closed"}
    played = Played(turns, lambda agent, query: said[agent], problem=problem)
    assert [entry["status"] for entry in played.returned(1)] == ["UNAVAILABLE"] * 3
    assert played.info["unavailable"] == 3
    assert played.info["rejected"] == played.info["accepted"] == 0


def test_a_malformed_call_costs_a_round(problem: Problem) -> None:
    settings = dataclasses.replace(LONG, budget=2)
    bad = f"{THOUGHT}<agent_calls>[oops]</agent_calls>"
    played = Played([bad, calls((1, "a")), calls((1, "b")), RIGHT], settings=settings,
                    problem=problem)  # fmt: skip
    assert played.returned(1) == [{"result": "the call is not JSON", "status": "ERROR"}]
    assert played.returned(2) == [{"expert_id": 1, "result": "expert_0 says 2"}]
    assert played.returned(3)[0]["status"] == "BUDGET_EXHAUSTED"
    # Nothing stops at a call from here on.
    assert [limits["stop"] for limits in played.limits] == [["</agent_calls>"]] * 3 + [[]]
    assert (played.info["rounds"], played.info["errors"], played.info["exhausted"]) == (2, 1, True)
    assert not played.info["formatted"]
    assert played.rewards["policy_0"] == 1.0


def test_a_budget_of_calls(problem: Problem) -> None:
    settings = dataclasses.replace(LONG, budget=3, budget_unit="calls")
    turns = [calls((1, "a"), (2, "b")), calls((1, "c"), (2, "d")), RIGHT]
    played = Played(turns, settings=settings, problem=problem)
    assert len(played.queries) == 1
    assert played.returned(2)[0]["status"] == "BUDGET_EXHAUSTED"
    # A call that comes when nothing is left was well-formed.
    assert played.info["formatted"]


def test_an_annealed_turn_budget(problem: Problem) -> None:
    settings = dataclasses.replace(LONG, budget=2, anneal_steps=3)
    turns = [calls((1, "a")), RIGHT]
    assert Played(turns, settings=settings, problem=problem, step=2).info["rounds"] == 1
    none_left = Played(turns, settings=settings, problem=problem, step=3)
    assert none_left.info["rounds"] == 0
    assert none_left.returned(1)[0]["status"] == "BUDGET_EXHAUSTED"
    # Evaluation with experts knows no annealing.
    assert Played(turns, settings=settings, problem=problem, step=3, mode="assisted").queries


def test_one_expert_after_another(problem: Problem) -> None:
    settings = dataclasses.replace(LONG, at_once=1)
    turns = [calls((1, "a"), (2, "b")), calls((2, "b")), RIGHT]
    played = Played(turns, settings=settings, problem=problem)
    assert played.returned(1) == [{"result": "at most 1 can be asked at once", "status": "ERROR"}]
    assert played.returned(2) == [{"expert_id": 2, "result": "expert_1 says 2"}]
    assert (played.info["rounds"], played.info["errors"]) == (2, 1)
    # More at once than there are experts is all of them.
    assert dataclasses.replace(LONG, at_once=9).parallel == 3


def test_calls_inside_thoughts_are_text(problem: Problem) -> None:
    inside = '<think> <agent_calls>[{"expert_id": 1}]</agent_calls>'
    played = Played([inside, " so </think>\nAnswer: 2"], problem=problem)
    assert played.shown[1] == ""
    assert not played.queries
    assert played.info["ignored_calls"] == 1
    assert played.info["formatted"]
    assert played.rewards["policy_0"] == 1.0


def test_nobody_calls_inside_a_thought_for_ever(problem: Problem) -> None:
    inside = "<think><agent_calls></agent_calls>"
    env = EapoConsultationEnv(LONG, scorer=AnswerScorer())
    _, infos = env.reset(seed=0, options={"problem": problem})
    for _ in range(20):
        if env.agents:
            infos = env.step({"policy_0": inside})[-1]
    assert not env.agents
    assert infos["policy_0"]["ignored_calls"] == 8


def test_a_thought_that_the_template_opened(problem: Problem) -> None:
    settings = dataclasses.replace(LONG, opens_thinking=True)
    call = calls((1, "a")).removeprefix("<think>")
    played = Played([call, RIGHT], settings=settings, problem=problem)
    assert played.info["consults"] == 1
    assert played.info["formatted"]
    unclosed = Played([call.removeprefix(" hm </think>"), "Answer: 2"], settings=settings,
                      problem=problem)  # fmt: skip
    assert unclosed.info["ignored_calls"] == 1
    assert unclosed.rewards["policy_0"] == 0.0


def test_the_token_limit_ends_the_conversation(problem: Problem) -> None:
    call = calls((1, "a"))
    # The call itself spends everything: it is not dispatched.
    settings = dataclasses.replace(LONG, max_new_tokens=len(call))
    played = Played([call], settings=settings, problem=problem)
    assert not played.queries
    assert played.truncated["policy_0"]
    # Experts' replies do not count.
    settings = dataclasses.replace(LONG, max_new_tokens=len(call) + 30)
    played = Played([call, RIGHT], settings=settings, problem=problem)
    assert played.limits[1]["max_new_tokens"] == 30
    assert played.info["response_tokens"] == len(call) + len(RIGHT)
    assert played.info["expert_tokens"] == len("expert_0 says 2")


def test_the_reply_is_never_the_answer(problem: Problem) -> None:
    played = Played([calls((1, "a")), "I give up"], lambda *_: "Answer: 2", problem=problem)
    assert played.info["answer_in_returns"]
    assert played.info["answer"] is None
    assert played.rewards["policy_0"] == 0.0
    assert not Played([calls((1, "a")), RIGHT], lambda *_: "Answer: 3", problem=problem).info[
        "answer_in_returns"
    ]


@pytest.mark.parametrize(
    ("rule", "answer", "reward"),
    [
        ("em_math", "2.0", 1.0),
        ("em_math", "3", 0.1),
        ("f1_literal", "2", 1.0),
        ("f1_literal", "-2", 1.0),
        ("f1_literal", "x = 2", 2 / 3),
        ("f1_literal", "3", 0.1),
        ("f1_literal", " ".join(["w"] * 39) + " 2", 2 / 41),
        ("f1_or_format", " ".join(["w"] * 39) + " 2", 0.1),
    ],
)
def test_rules(problem: Problem, rule: str, answer: str, reward: float) -> None:
    settings = dataclasses.replace(LONG, answer_reward=rule)
    played = Played([f"{THOUGHT}\nAnswer: {answer}"], settings=settings, problem=problem)
    assert played.rewards["policy_0"] == pytest.approx(reward)


@pytest.mark.parametrize(("counted", "reward"), [("dispatched", 0.8), ("accepted", 0.9)])
def test_penalty(problem: Problem, counted: str, reward: float) -> None:
    settings = dataclasses.replace(LONG, consult_penalty=0.1, penalised=counted)
    turns = [calls((1, "a"), (2, "b")), RIGHT]
    played = Played(
        turns, lambda agent, _: "2" if agent == "expert_0" else None, settings, problem=problem
    )
    assert played.rewards["policy_0"] == pytest.approx(reward)
    assert set(played.info["reward_terms"]) == {"answer", "consulting"}


def test_a_penalty_on_right_answers_only(problem: Problem) -> None:
    settings = dataclasses.replace(LONG, consult_penalty=0.1, penalty_only_if_right=True)
    ask = calls((1, "a"), (2, "b"))
    right = Played([ask, RIGHT], settings=settings, problem=problem)
    assert right.rewards["policy_0"] == pytest.approx(0.8)
    wrong = Played([ask, f"{THOUGHT}\nAnswer: 3"], settings=settings, problem=problem)
    assert wrong.rewards["policy_0"] == pytest.approx(0.1)


def test_a_penalty_that_comes_later(problem: Problem) -> None:
    settings = dataclasses.replace(LONG, consult_penalty=0.1, penalty_start=4)
    turns = [calls((1, "a")), RIGHT]
    paid = {
        step: Played(turns, settings=settings, problem=problem, step=step).rewards["policy_0"]
        for step in (4, 5)
    }
    assert paid == {4: 1.0, 5: pytest.approx(0.9)}


def test_evaluation_is_alone(problem: Problem) -> None:
    text = calls((1, "a")) + RIGHT
    played = Played([text], problem=problem, mode="eval", step=1)
    assert played.shown == ["Question: 7 + 8 - 3 =\nSolve:"]
    assert played.limits[0]["stop"] == []
    assert played.info["reward_terms"] == {"correct": 1.0}
    assert played.info["consults"] == 0


def test_assisted_evaluation_lets_every_reply_in(problem: Problem) -> None:
    turns = [calls((1, "a")), f"{THOUGHT}\nAnswer: 3"]
    played = Played(turns, problem=problem, mode="assisted", step=10_000)
    assert played.returned(1) == [{"expert_id": 1, "result": "expert_0 says 2"}]
    assert played.rewards["policy_0"] == 0.0
    assert played.info["acceptance"] == 1.0


def test_the_workflow_asks_everybody_the_question(problem: Problem) -> None:
    played = Played([RIGHT], problem=problem, mode="workflow")
    prompt = "Question: 7 + 8 - 3 =\nSolve:"
    assert played.queries == [dict.fromkeys(("expert_0", "expert_1", "expert_2"), prompt)]
    assert played.shown[0].startswith(f"{prompt}\n<agent_returns>[")
    assert played.shown[0].count("says 2") == 3
    assert played.limits[0]["stop"] == []
    assert played.info["paradigm"] == "direct"


def test_never_and_always(problem: Problem) -> None:
    never = Played([RIGHT], settings=dataclasses.replace(LONG, consult="never"), problem=problem)
    assert never.shown == ["Question: 7 + 8 - 3 =\nSolve:"]
    always = dataclasses.replace(LONG, consult="always", schedule="const", accept_rate=0.0)
    played = Played([RIGHT], settings=always, problem=problem)
    assert not played.queries
    assert played.shown[0].count("UNAVAILABLE") == 3


def test_shuffled_queries(problem: Problem) -> None:
    settings = dataclasses.replace(LONG, queries="shuffled")
    played = Played([calls((1, problem.question)), RIGHT], settings=settings, problem=problem)
    asked = played.queries[0]["expert_0"]
    assert asked.startswith("Question: ")
    assert problem.question not in asked
    again = Played([calls((1, problem.question)), RIGHT], settings=settings, problem=problem)
    assert again.queries == played.queries


def test_a_policy_that_fails(problem: Problem) -> None:
    env = EapoConsultationEnv(LONG, scorer=AnswerScorer())
    env.reset(seed=0, options={"problem": problem})
    _, rewards, _, truncated, infos = env.step({})
    assert rewards["policy_0"] == 0.0
    assert truncated["policy_0"]
    assert infos["policy_0"]["failed"]


def test_what_is_kept_of_a_reply() -> None:
    meter = BytesCodec()
    assert as_result("<think> long </think> short ", meter, limit=100) == "short"
    assert as_result("unopened </think> short", meter, limit=3) == "sho"
    assert as_result("<think> long </think>", meter, limit=100) == ""
    assert as_result("before <think> open", meter, limit=100) == "before"
    assert as_result("<think> one two</think> x", meter, limit=100, thinking_tokens=3) == "two\nx"


def test_paradigms() -> None:
    assert paradigm("7 + 8 - 3 =", []) == "self"
    assert paradigm("7 + 8 - 3 =", ["7 + 8 - 3 =", "7 + 8 - 3"]) == "direct"
    assert paradigm("7 + 8 - 3 =", ["7 + 8 - 3 =", "5 - 3 ="]) == "decomposition"


def test_groups_are_replicas() -> None:
    env = envs.make("eapo-consultation", settings=EapoConsultationSettings(group_size=5))
    assert env.metadata["replicas"] == 5
    assert EapoConsultationEnv.metadata.get("replicas") is None
    tasks = tasks_for([Problem("p", "1 + 1 =", "2")], seed=1, replicas=3)
    assert [task.options()["replica"] for task in tasks] == [0, 1, 2]
    assert len({task.seed for task in tasks}) == 1


def test_only_what_the_policy_wrote_is_trained(problem: Problem) -> None:
    """Calls are learned; prompts and returns are not."""
    codec = BytesCodec()
    turns = iter([calls((1, "7 + 8 =")), RIGHT])
    env: Any = envs.make("eapo-consultation", settings=LONG, scorer=AnswerScorer())
    policies = {
        "policy": Scripted(codec, lambda prompt: next(turns)),
        "expert": Scripted(codec, lambda prompt: "Answer: 15"),
    }
    episode = asyncio.run(
        play(env, policies, seed=3, options={"problem": problem}, sampling=Sampling(400))
    )
    row = next(row for row in episode.trajectories if row.role == "policy")
    masked = codec.decode(row.tokens[row.mask])
    assert masked == calls((1, "7 + 8 =")) + RIGHT
    outside = codec.decode(row.tokens[~row.mask])
    assert outside == (
        "Question: 7 + 8 - 3 =\nExperts: 1 to 3\nSolve:"
        '\n<agent_returns>[{"expert_id": 1, "result": "Answer: 15"}]</agent_returns>\n'
    )
    assert [row.groups["problem+role"] for row in episode.trajectories] == ["q/policy", "q/expert"]
    expert = next(row for row in episode.trajectories if row.role == "expert")
    assert expert.loss_weight == 0.0


def test_the_panel_is_explained() -> None:
    text = training_prompt("What is {x}?", "panel", experts=3, at_once=3, budget=10)
    for fact in (
        "panel of 3 experts, with the ids 1 to 3",
        "10 times",
        "one of them or several at once",
        "may be wrong",
        "<think>",
        "</think>",
        "<agent_calls>[{",
        "<agent_returns>[{",
        '"expert_id"',
        '"input_parameters"',
        '"query"',
        'begins with "Answer: "',
        "NomanLand",
        "their reasoning included",
    ):
        assert fact in text
    assert text.endswith("Question: What is {x}?")
    assert text.count('{"expert_id": 2, "input_parameters"') == 1
    single = training_prompt("x", "panel", experts=1, at_once=1, budget=2)
    assert '"expert_id": 2' not in single
    assert "one thing at a time" in single
    one_by_one = training_prompt("x", "panel", experts=3, at_once=1, budget=2)
    assert "one of them at a time" in one_by_one
    assert '"expert_id": 2' not in one_by_one
    assert "one of them or up to 2 at once" in training_prompt(
        "x", "panel", experts=3, at_once=2, budget=2
    )
    assert lone_prompt("x", "panel") == (
        "You are a helpful assistant. You must give the final answer in the last line, in the "
        'format of "Answer: xxx", xxx represents the final answer.\n\nx'
    )


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ({"experts": 0}, "experts must be at least 1"),
        ({"budget": 2, "turns_end": 3}, "between 0 and the budget"),
        ({"accept_rate": 1.5}, "accept_rate must be between 0 and 1"),
        ({"accept_rate": float("nan")}, "accept_rate must be between 0 and 1"),
        ({"schedule": "sometimes"}, "choose one of inv, inv-sqrt"),
        ({"consult_penalty": -1.0}, "consult_penalty must be 0 or more"),
        ({"accept_scale": 0.0}, "accept_scale must be above 0"),
    ],
)
def test_settings_that_make_no_sense(setting: dict[str, Any], message: str) -> None:
    with pytest.raises(UserError, match=message):
        EapoConsultationSettings(**setting)


def test_other_mistakes(problem: Problem) -> None:
    with pytest.raises(UserError, match="roles are policy and expert"):
        EapoConsultationEnv(roles=("policy", "helper"))
    with pytest.raises(UserError, match="mode 'probe' is unknown"):
        EapoConsultationEnv().reset(options={"mode": "probe"})
    with pytest.raises(UserError, match=r"give a vocabulary\.Problem"):
        EapoConsultationEnv().reset(options={"problem": "7 + 8"})


HOSTILE = [
    "<agent_calls>" * 20_000,
    "</agent_calls>" * 20_000,
    "<think></think>" * 20_000 + "<agent_calls>[</agent_calls>",
    "<agent_calls>" + "[" * 60_000 + "</agent_calls>",
    '<agent_calls>[{"expert_id": 1, "input_parameters": {"query": "'
    + "\\" * 60_000
    + "</agent_calls>",
    "<agent_calls>[{}]</agent_calls>",
    '<agent_calls>{"expert_id": 1, "input_parameters": {"query": "\\ud800"}}</agent_calls>',
    "Answer:" * 50_000,
]


@pytest.mark.parametrize("text", HOSTILE, ids=range(len(HOSTILE)))
def test_hostile_policies_and_experts(text: str, problem: Problem) -> None:
    settings = dataclasses.replace(LONG, max_new_tokens=1 << 22)
    env: Any = envs.make("eapo-consultation", settings=settings, scorer=AnswerScorer())
    observations, _ = env.reset(seed=1, options={"problem": problem})
    ids = np.frombuffer(text.encode("utf-8", "replace"), np.uint8).astype(np.int64)
    for _ in range(40):
        if env.agents:
            asked = [agent for agent in env.agents if observations[agent]["active"]]
            observations, *_ = env.step(dict.fromkeys(asked, ids))
    assert not env.agents


def test_a_transcript(problem: Problem) -> None:
    env = EapoConsultationEnv(LONG, scorer=AnswerScorer(), render_mode="ansi")
    env.reset(seed=5, options={"problem": problem})
    env.step({"policy_0": calls((1, "a"))})
    env.step({"expert_0": "it is 2"})
    env.step({"policy_0": RIGHT})
    text = env.render()
    assert text.index("== policy_0 ==") < text.index("it is 2") < text.index("right; answer +1.000")
