"""Metrics of hand-made outcomes, and of a scripted play."""

import asyncio
from typing import Any

import pytest

from coterie import envs
from coterie.datatypes import Episode, Problem, Sampling
from coterie.envs.bytes_codec import BytesCodec
from coterie.envs.eapo_consultation import EapoConsultationSettings
from coterie.envs.eapo_consultation.evaluation import (
    EVALUATION,
    estimate,
    examine,
    further,
    headline,
    rows,
)
from coterie.evaluation import by_set
from coterie.evaluation.by_set import with_sets
from coterie.rewards.grading.scorer import AnswerScorer
from coterie.rollouts import Collector, tasks_for


def outcomes(
    alone: list[list[float]], assisted: list[list[float]], informed: list[list[float]]
) -> Any:
    zeros = [[0.0] * len(row) for row in alone]
    keys = ("calls", "accepted", "rounds", "errors", "expert_tokens")
    paradigms = {f"paradigm_{name}": zeros for name in ("self", "direct", "decomposition")}
    base = {"f1": zeros, "formatted": zeros, "response_tokens": zeros}
    return {
        "problems": [str(q) for q in range(len(alone))],
        "alone": {"correct": alone, **base},
        "assisted": {
            "correct": assisted,
            "consults": informed,
            "answer_in_returns": informed,
            **dict.fromkeys(keys, zeros),
            **base,
            **paradigms,
        },
    }


def test_variances_and_rates_by_hand() -> None:
    metrics = estimate(outcomes([[1, 1], [0, 0]], [[1, 0], [1, 1]], [[1, 1], [0, 0]]), 200, 0)
    value = {name: metric.value for name, metric in metrics.items()}
    # Means 1 and 0: between .25, within 0.
    assert (value["avg@n/alone"], value["var_between/alone"], value["var_within/alone"]) == (
        0.5,
        0.25,
        0.0,
    )
    # Means .5 and 1: between .0625; the first problem's coin flips give .25, half of it on average.
    assert value["var_between/assisted"] == pytest.approx(0.0625)
    assert value["var_within/assisted"] == pytest.approx(0.125)
    assert (value["pass@1/assisted"], value["pass@2/assisted"]) == (0.75, 1.0)
    assert value["help"] == pytest.approx(0.25)
    assert value["consult_rate"] == value["told"] == 0.5
    # Told: one of two right; not told: both.
    assert (value["right_if_told"], value["right_if_untold"]) == (0.5, 1.0)
    # Each is about the problems in which it happened, so that few of them earn no mark.
    assert (metrics["right_if_told"].count, metrics["right_if_untold"].count) == (1, 1)
    assert metrics["told"].count == 2
    assert "pass@4/alone" not in value
    assert not any(name.startswith(("square", "told_")) for name in value)


def test_f1_has_variances_of_its_own() -> None:
    measured = outcomes([[1, 1], [0, 0]], [[0, 0], [0, 0]], [[0, 0], [0, 0]])
    # Means .5 and 1 where correctness has 1 and 0; the first problem's samples vary by .25.
    measured["alone"]["f1"] = [[0.0, 1.0], [1.0, 1.0]]
    metrics = estimate(measured, 200, 0)
    value = {name: metric.value for name, metric in metrics.items()}
    assert (value["f1/alone"], value["avg@n/alone"]) == (0.75, 0.5)
    assert value["f1_var_between/alone"] == pytest.approx(0.0625)
    assert value["f1_var_within/alone"] == pytest.approx(0.125)
    assert value["var_between/alone"] == 0.25
    assert len(metrics["f1_var_between/alone"].replicates) == 200
    assert "f1_var_between/alone" in {row.metric for row in rows(("policy", "expert"))}


def test_each_of_several_sets_has_figures_of_its_own() -> None:
    measured = outcomes([[1, 1], [1, 0], [0, 0]], [[0, 0]] * 3, [[0, 0]] * 3)
    measured["alone"]["f1"] = [[1.0, 1.0], [0.5, 0.5], [0.0, 1.0]]
    assert not any("aime" in name for name in estimate(measured, 20, 0))
    measured = with_sets(measured, [["aime24"], ["aime24"], ["reference"]])
    metrics = estimate(measured, 200, 0)
    value = {name: metric.value for name, metric in metrics.items()}
    assert value["avg@n/alone"] == pytest.approx(0.5)
    assert value["avg@n/alone/aime24"] == pytest.approx(0.75)
    assert value["avg@n/alone/reference"] == pytest.approx(0.0)
    assert value["f1/alone/aime24"] == pytest.approx(0.75)
    assert value["f1/alone/reference"] == pytest.approx(0.5)
    # The paper's average is that of the sets: (.75 + .5) / 2.
    assert value["f1/alone/sets"] == pytest.approx(0.625)
    # Means of F1 are 1 and .5 in the one, and one in the other.
    assert value["f1_var_between/alone/aime24"] == pytest.approx(0.0625)
    assert value["f1_var_between/alone/reference"] == pytest.approx(0.0)
    # And so is its "Var": (.0625 + 0) / 2.
    assert value["f1_var_between/alone/sets"] == pytest.approx(0.03125)
    assert metrics["f1/alone/aime24"].count == 2
    labels = {row.metric: row.label for row in further(metrics)}
    assert labels["f1_var_between/alone/aime24"] == "Alone, F1, variance between, aime24"
    assert labels["f1/alone/sets"] == "Alone, F1, mean of the sets"


def test_the_table_has_every_figure_of_which_more_is_better_for_each_set() -> None:
    right = [[1.0] * 4, [1.0, 0.0, 0.0, 0.0], [0.0] * 4]
    told = [[1.0] * 4, [1.0, 1.0, 0.0, 0.0], [0.0] * 4]
    sets = [["a"], ["a", "b"], ["b"]]
    metrics = by_set.estimate(EVALUATION, with_sets(outcomes(right, right, told), sets), 20, 0)
    value = {name: metric.value for name, metric in metrics.items()}
    # Means 1 and .25 in a, .25 and 0 in b.
    assert value["sets/a/avg@n/alone"] == value["avg@n/alone/a"] == 0.625
    assert value["sets/b/avg@n/alone"] == value["avg@n/alone/b"] == 0.125
    assert value["sets/b/pass@4/alone"] == 0.5
    # Told in six conversations of a, of which five are right; in two of b, of which one is.
    assert value["sets/a/right_if_told"] == pytest.approx(5 / 6)
    assert value["sets/b/right_if_told"] == pytest.approx(1 / 2)
    labels = [row.label for row in EVALUATION.table(("policy", "expert"), metrics)]
    assert len(labels) == len({*labels})
    for title in (
        "Alone, avg@n",
        "Alone, Pass@4",
        "Alone, F1",
        "With experts, avg@n",
        "Right, answer in a reply",
        "Right, answer in no reply",
    ):
        place = labels.index(title)
        assert labels[place : place + 3] == [title, f"{title}, a", f"{title}, b"]


def test_a_scripted_play(scripted: Any) -> None:
    """The policy asks when it may, copies what it is told, and says 7 otherwise."""
    codec = BytesCodec()
    ask = '<think>?</think><agent_calls>[{"expert_id": 1, "input_parameters": {"query": "q"}}]'

    def write(prompt: Any) -> str:
        if "Experts" in prompt.text and "agent_returns" not in prompt.text:
            return ask + "</agent_calls>"
        informed = "agent_returns" in prompt.text
        return f"<think>!</think>\nAnswer: {prompt.problem.gold if informed else 7}"

    settings = EapoConsultationSettings(
        max_new_tokens=400, eval_samples=2, group_size=3, reply_tokens=99
    )
    scorer = AnswerScorer()
    collector = Collector(
        lambda: envs.make("eapo-consultation", settings=settings, scorer=scorer),  # type: ignore[arg-type,return-value]
        {
            "policy": scripted(codec, write),
            "expert": scripted(codec, lambda prompt: f"Answer: {prompt.problem.gold}"),
        },
        sampling=Sampling(400),
        scorer=scorer,
    )

    async def play(problems: Any, *, mode: str, replicas: int = 1) -> list[Episode]:
        return await collector.collect(tasks_for(problems, seed=0, mode=mode, replicas=replicas))

    problems = [Problem("a", "3 + 4 =", "7", "number"), Problem("b", "1 + 1 =", "2", "number")]
    sampled = asyncio.run(examine(play, problems, ("policy", "expert"), settings))
    assert sampled["alone"]["correct"] == [[1.0, 1.0], [0.0, 0.0]]
    assert sampled["assisted"]["correct"] == [[1.0, 1.0], [1.0, 1.0]]
    value = {name: metric.value for name, metric in estimate(sampled, 20, 0).items()}
    assert value["help"] == 0.5
    assert value["consult_rate"] == value["told"] == value["calls"] == 1.0
    assert value["paradigm/decomposition"] == 1.0
    assert {row.metric for row in rows(("policy", "expert"))} - set(value) == {
        "pass@4/alone",
        "pass@8/alone",
    }
    assert headline(("policy",))[0] == "measured/policy/correct"
