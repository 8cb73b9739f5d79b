"""The evaluation of sd-e2, on outcomes written out by hand and on a play of scripts."""

import copy

import pytest

from coterie.envs.sd_e2.evaluation import EVALUATION, estimate, rows

#            alice   bob     oracle@1            oracle@2
#   p0       1 0     0 0     .5                  1
#   p1       0 0     1 1     1                   1
#   p2       0 0     0 -     0                   (one sample of bob)
OUTCOMES = {
    "problems": ["p0", "p1", "p2"],
    "correct": {"alice": [[1, 0], [0, 0], [0, 0]], "bob": [[0, 0], [1, 1], [0, None]]},
    "strategies": {"alice": [[2, 4], [1, 1], [0, 0]], "bob": [[1, 1]] * 2 + [[1, None]]},
    "distinct": {"alice": [[2, 2], [1, 1], [0, 0]], "bob": [[1, 1]] * 2 + [[1, None]]},
    "any_right": {"alice": [[1, 0.25], [0, 0], [0, 0]], "bob": [[0, 0], [1, 1], [0, None]]},
}


def test_every_metric_of_a_case_worked_out_by_hand() -> None:
    metrics = {name: m.value for name, m in estimate(OUTCOMES, 50, 0).items()}
    assert metrics == pytest.approx(
        {
            "pass@1/alice": 0.5 / 3,
            "pass@1/bob": 1 / 3,
            "team_pass@1": 1.5 / 3,
            "pass@2/alice": 1 / 3,
            "pass@2/bob": 1 / 2,
            "team_pass@2": 1.0,
            "strategies/alice": (3 + 1 + 0) / 3,
            "distinct/alice": 1.0,
            "any_right/alice": 1 / 3,
            "strategies/bob": 1.0,
            "distinct/bob": 1.0,
            "any_right/bob": 1 / 3,
        }
    )
    assert estimate(OUTCOMES, 50, 0)["pass@2/bob"].count == 2


def test_every_row_has_its_metric_and_one_role_is_its_own_oracle() -> None:
    metrics = estimate(OUTCOMES, 10, 0)
    assert {row.metric for row in rows(["alice", "bob"])} == set(metrics)
    alone = copy.deepcopy(OUTCOMES)
    for name in ("correct", "strategies", "distinct", "any_right"):
        del alone[name]["bob"]  # type: ignore[attr-defined]
    metrics = estimate(alone, 10, 0)
    assert {row.metric for row in rows(["alice"])} == {m for m in metrics if "team" not in m}
    for k in (1, 2):
        assert metrics[f"team_pass@{k}"].value == metrics[f"pass@{k}/alice"].value
    assert EVALUATION.headline(["alice"]) == ["measured/alice/correct"]
