"""Means over questions and over sets, differences, Pass@k and the decomposition, by hand."""

import dataclasses
import io
from typing import Any

import numpy as np
import pytest
from rich.console import Console

from coterie.evaluation.compare.responses import Responses
from coterie.evaluation.compare.suite_metrics import (
    differences,
    measure_rows,
    pairs,
    passes,
    resampled,
)
from coterie.evaluation.compare.suite_scores import reliability
from coterie.evaluation.compare.suite_tables import difference_table, pair_table
from coterie.evaluation.compare.systems import System
from coterie.evaluation.json_values import as_json

HOW = {"resamples": 400, "seed": 0}


def system(name: str, score: list[float], **more: object) -> System:
    spent = {name.split("+")[0]: np.array([[100.0, 10.0]] * len(score))}
    return System(name, name, np.array(score), spent, np.ones(len(score)), **more)  # type: ignore[arg-type]


def answers(correct: list[list[float]]) -> Responses:
    table = np.array(correct, dtype=float)
    votes = [["1" if c == 1 else "0" for c in row] for row in correct]
    nothing = np.full(table.shape, np.nan)
    return Responses(table, nothing, votes, nothing, {})


def test_micro_counts_questions_and_macro_sets() -> None:
    # Three questions at 1, one at 0.
    micro, macro = resampled([np.ones((3, 1)), np.zeros((1, 1))], resamples=50, seed=0)
    assert micro[0].value == 0.75
    assert macro[0].value == 0.5
    # Sets are resampled each by itself: without spread inside them there is none.
    assert micro[0].interval() == (0.75, 0.75)
    # A set without values stays out.
    micro, macro = resampled([np.ones((3, 1)), np.full((1, 1), np.nan)], resamples=5, seed=0)
    assert (micro[0].value, macro[0].value, micro[0].count) == (1.0, 1.0, 3)


def test_the_difference_is_paired_and_knows_that_the_best_was_chosen() -> None:
    rng = np.random.default_rng(0)
    noise = (rng.random(60) < 0.5).astype(float)
    own, other = noise, 1 - noise
    better = np.clip(own + 0.2, 0, None)
    single = [
        system("own", own.tolist(), is_single=True),
        system("other", other.tolist(), is_single=True),
    ]
    sets = [[*single, system("better", better.tolist())]]
    rows = {row.system.name: row for row in measure_rows(sets, {}, **HOW)}
    assert rows["own"].over_best.interval()[1] == 0.0
    best = max(own.mean(), other.mean())
    assert rows["better"].over_best.value == pytest.approx(own.mean() + 0.2 - best)
    low, high = rows["better"].over_best.interval()
    # Against own alone it would be .2 in every resample.
    assert low < 0.15
    assert high <= 0.2 + 1e-9
    assert rows["own"].money is None


def test_two_systems_are_compared_question_by_question() -> None:
    # The second is right on one question more; both vary alike over the others.
    first, second = [0.0, 1.0, 0.0, 1.0, 0.0], [0.0, 1.0, 0.0, 1.0, 1.0]
    sets = [[system("a", first, is_single=True), system("b", second, is_single=True)]]
    ((pair, change),) = differences(sets, measure_rows(sets, {}, **HOW), **HOW).items()
    assert pair == ("a", "b")
    assert change.value == pytest.approx(0.2)
    low, high = change.interval()
    # Each resample has 0 to 5 of that question; unpaired the interval would reach below 0.
    assert low == 0.0
    assert high <= 0.8
    shown = Console(width=80, file=io.StringIO())
    shown.print(difference_table({pair: change}))
    assert "b - a       +.200" in shown.file.getvalue()  # type: ignore[attr-defined]


def test_questions_that_failed_are_no_lead() -> None:
    """The second equals the first, and does not answer the hard half."""
    right = [1.0] * 10
    sets = [
        [
            system("a", [*right, *[0.0] * 10], is_single=True),
            system("b", [*right, *[np.nan] * 10], is_single=True),
        ]
    ]
    sets[0][1].used["b"][10:] = np.nan
    rows = measure_rows(sets, {"a": (1.0, 10.0), "b": (1.0, 10.0)}, **HOW)
    (change,) = differences(sets, rows, **HOW).values()
    assert (change.value, change.interval(), change.count) == (0.0, (0.0, 0.0), 10)
    first, second = rows
    assert (first.over_best.value, second.over_best.value) == (0.0, 0.0)
    assert (first.missing, second.missing) == (0, 10)
    # An answer of either costs the same.
    assert second.tokens == first.tokens == 10.0
    assert second.money == first.money == pytest.approx(0.2)


def test_a_label_is_that_of_all_sets() -> None:
    labels = [
        ("team, vote of 8", "a, else b, by confidence"),
        ("team, vote of 2", "a, else b, by agreement"),
    ]
    sets = [
        [
            system("a", [1.0], is_single=True),
            dataclasses.replace(system("vote", [1.0]), label=vote),
            dataclasses.replace(system("cascade", [1.0]), label=cascade),
        ]
        for vote, cascade in labels
    ]
    assert [row.system.label for row in measure_rows(sets, {}, **HOW)] == [
        "a",
        "team, vote of 2 to 8",
        "a, else b, by confidence or agreement",
    ]


def test_marks_and_money() -> None:
    def rows(count: int) -> list[list[System]]:
        return [[system("a", [0.0] * count, is_single=True), system("b+a", [1.0] * count)]]

    first, second = measure_rows(rows(16), {"a": (1.0, 10.0), "b": (0.0, 50.0)}, **HOW)
    assert not first.over_best.excludes_zero
    assert second.over_best.excludes_zero
    # 100 prompt tokens at 1 and 10 sampled at 10 per million, a thousand times: .1 + .1.
    assert first.money == pytest.approx(0.2)
    assert second.money == pytest.approx(0.5)
    assert (second.tokens, second.seconds) == (10.0, 1.0)
    # One question less is too few to mark anything.
    _, fewer = measure_rows(rows(15), {}, **HOW)
    assert not fewer.over_best.excludes_zero


def test_pass_at_k_beside_its_control() -> None:
    # One question each; of four samples 1 and 2 are right.
    measured = passes([{"a": answers([[1, 0, 0, 0]]), "b": answers([[1, 1, 0, 0]])}], **HOW)

    def values(estimates: Any) -> list[float]:
        return [estimate.value for estimate in estimates]

    assert values(measured.policies["a"]) == pytest.approx([0.25, 0.5, 0.75, 1.0])
    # 1 - (3/4)(2/4); 1 - (C(3,2)/6)(C(2,2)/6) = 1 - (3/6)(1/6)
    assert values(measured.team[:2]) == pytest.approx([1 - 3 / 8, 1 - 1 / 12])
    # b's pass@2 is 1 - 1/6, its pass@4 is 1.
    assert values(measured.control) == pytest.approx([5 / 6, 1.0])
    assert measured.gain[0].value == pytest.approx(5 / 8 - 5 / 6)
    # A second question that a failed, and b never solves, is not the team's either.
    hard = {"a": answers([[1, 0, 0, 0], [np.nan] * 4]), "b": answers([[1, 1, 0, 0], [0] * 4])}
    assert passes([hard], **HOW).gain[0].value == pytest.approx(5 / 8 - 5 / 6)


def test_decomposition_of_every_pair() -> None:
    # a right on questions 1 and 2, b on 2 and 3, of 4: p12 = 1/4.
    sets = [{"a": answers([[1], [1], [0], [0]]), "b": answers([[0], [1], [1], [0]])}]
    (pair,) = pairs(sets, **HOW)
    wanted = {"union": 0.75, "gain": 0.25, "both_wrong": 0.25, "phi": 0.0, "gain_bound": 0.5}
    assert wanted.items() <= {n: measured.value for n, measured in pair.measured.items()}.items()
    # The table says what its headings mean.
    console = Console(width=80, file=io.StringIO())
    console.print(pair_table([pair], "one answer each"))
    shown = console.file.getvalue()  # type: ignore[attr-defined]
    heads, legend = shown.splitlines()[1], " ".join(shown.splitlines()[3:])
    assert "a + b" in shown
    for name in ("gain", "max gain", "independent", "phi"):
        assert name in heads
        assert f"{name}: " in legend


def test_agreement_is_calibrated_like_a_stated_confidence() -> None:
    # Questions answered alike and right, alike and wrong, and half and half.
    own = answers([[1, 1], [0, 0], [1, 0]])
    measured = reliability([{"a": own}], **HOW)["a"]
    content = as_json(measured)
    assert "stated" not in content
    # Agreement 1 1 | 1 1 | 0 0 against right 1 1 | 0 0 | 1 0: bin 1 is right half of the time and
    # bin 0 too.
    assert content["agreement"]["ece"]["value"] == pytest.approx(0.5)
    assert content["agreement"]["auroc"]["value"] == pytest.approx(0.5)
    # Means 1, 0, .5.
    assert measured["variance"].between == pytest.approx(1 / 6)
    assert measured["variance"].within == pytest.approx(0.25 / 3)


def test_what_is_said_of_stated_confidences() -> None:
    # Four questions, one answer each: .9 right, .9 wrong, 1 right, and a wrong one without any.
    own = dataclasses.replace(
        answers([[1], [0], [1], [0]]),
        confidence_QN=np.array([[0.9], [0.9], [1.0], [np.nan]]),
    )
    stated = as_json(reliability([{"a": own}], **HOW))["a"]["stated"]
    # Ten bins: all three in the last one, |2 - 2.8| / 3; silence as 0 is a fourth, without a gap.
    assert stated["ece"]["value"] == pytest.approx(0.8 / 3, abs=1e-6)
    assert stated["ece_missing_as_zero"] == pytest.approx(0.8 / 4, abs=1e-6)
    # Fifteen bins part .9 from 1: |1 - 1.8| / 3 + 0; right-closed tenths do so, too.
    assert stated["ece_15"] == stated["ece_right_closed"] == pytest.approx(0.8 / 3, abs=1e-6)
    assert stated["output_ratio"] == 0.75
