"""Figures of each set of problems beside the whole."""

import numpy as np

from coterie.envs.eapo_consultation.evaluation import EVALUATION as EAPO
from coterie.envs.eapo_consultation.outcome import PARADIGMS
from coterie.envs.solo.evaluation import EVALUATION as SOLO
from coterie.evaluation.by_set import estimate, with_sets
from coterie.evaluation.evaluation import Evaluation, Resampled, Row
from coterie.evaluation.per_episode import EVALUATION as PER_EPISODE
from coterie.evaluation.report.curves import held_out

OUTCOMES = {
    "problems": ["a:0", "b:0", "a:1", "a:2"],
    "correct": [[1.0, 0.0], [0.0, 0.0], [1.0, 1.0], [0.0, 0.0]],
    "stated": [[1.0, 1.0], [1.0, 0.0], [1.0, 1.0], [1.0, 1.0]],
}


def test_each_set_has_the_figures_of_its_own_problems() -> None:
    """A problem of two sets counts in both, and once in the whole."""
    metrics = estimate(SOLO, with_sets(OUTCOMES, [["a"], ["b"], ["a", "b"], ["a"]]), 10, 0)
    values = {name: metric.value for name, metric in metrics.items()}
    # The means of the problems are .5, 0, 1 and 0; in a one of two is right in 2 of 3 problems.
    assert values["pass@1"] == 0.375
    assert values["sets/a/pass@1"] == values["sets/b/pass@1"] == 0.5
    assert np.isclose(values["sets/a/pass@2"], 2 / 3)
    assert values["sets/b/stated"] == 0.75
    assert (metrics["sets/a/pass@1"].count, metrics["sets/b/pass@1"].count) == (3, 2)
    assert "sets_of_problem" not in OUTCOMES


def test_a_single_set_is_the_whole() -> None:
    assert with_sets(OUTCOMES, ()) is OUTCOMES
    assert not [name for name in estimate(SOLO, OUTCOMES, 10, 0) if name.startswith("sets/")]


def test_only_lists_of_problems_are_divided() -> None:
    seen = []

    def remember(outcomes, resamples, seed):
        seen.append(outcomes)
        return {"m": Resampled(0.0, np.zeros(1), 1)}

    async def nothing(*_):
        return {}

    outcomes = {
        "problems": ["p", "q", "r"],
        "by_role": {"alice": [[1, 2, 3], [4, 5, 6], [7, 8, 9]]},
        "hints": [],
        "settings": {"share": 0.5, "names": ["x", "y"]},
    }
    evaluation = Evaluation(nothing, remember, lambda roles: [])
    estimate(evaluation, with_sets(outcomes, [["s"], ["t"], ["s"]]), 1, 0)
    assert seen[1] == {
        "problems": ["p", "r"],
        # The three samples of a problem stay together.
        "by_role": {"alice": [[1, 2, 3], [7, 8, 9]]},
        "hints": [],
        "settings": {"share": 0.5, "names": ["x", "y"]},
    }
    assert seen[2]["by_role"] == {"alice": [[4, 5, 6]]}


def test_the_table_has_the_sets_of_figures_of_which_more_is_better() -> None:
    metrics = estimate(SOLO, with_sets(OUTCOMES, [["a"], ["b"], ["a"], ["a"]]), 10, 0)
    labels = [row.label for row in SOLO.table(["solver"], metrics)]
    assert labels == [
        "Pass@1", "Pass@1, a", "Pass@1, b", "Pass@2", "Pass@2, a", "Pass@2, b",
        "States an answer", "States an answer, a", "States an answer, b",
    ]  # fmt: skip
    plain = Evaluation(SOLO.examine, SOLO.estimate, lambda roles: [Row("M", "pass@1", "neither")])
    assert [row.label for row in plain.table(["solver"], metrics)] == ["M"]


def test_lines_by_name_are_made_of_the_whole_alone() -> None:
    outcomes = {"problems": ["p", "q"], "measured": {"reward/alice": [1.0, 0.0]}}
    metrics = estimate(PER_EPISODE, with_sets(outcomes, [["a"], ["b"]]), 10, 0)
    labels = [row.label for row in PER_EPISODE.table(["alice"], metrics)]
    assert labels == ["Reward alice", "Reward alice, a", "Reward alice, b"]


def test_eapo_divides_generated_problems_by_their_source() -> None:
    table = [[1.0], [0.0], [1.0]]
    names = ("correct", "f1", "formatted", "response_tokens")
    helped = ("consults", "calls", "accepted", "rounds", "errors", "expert_tokens")
    helped += ("answer_in_returns", *(f"paradigm_{paradigm}" for paradigm in PARADIGMS))
    outcomes = {
        "problems": ["1 + 2 =", "1 @ 2 =", "2 + 2 ="],
        "alone": dict.fromkeys(names, table),
        "assisted": dict.fromkeys((*names, *helped), table),
    }
    metrics = estimate(EAPO, with_sets(outcomes, [["plus"], ["at"], ["plus"]]), 10, 0)
    assert metrics["avg@n/alone/plus"].value == 1.0
    assert metrics["avg@n/alone/at"].value == 0.0
    labels = [row.label for row in EAPO.table(["policy", "expert"], metrics)]
    assert "Alone, avg@n, plus" in labels
    assert len(labels) == len({*labels})


def test_curves_of_sets_have_a_line_for_every_role() -> None:
    lines = [
        {"step": step, "sets/a/pass@1/alice": value, "sets/a/pass@1/bob": value / 2}
        for step, value in ((0, 0.5), (4, 1.0))
    ]
    (panel,) = held_out(lines, ["alice", "bob"])
    assert panel.title == "held out: pass@1, a"
    assert [series.name for series in panel.series] == ["alice", "bob"]
