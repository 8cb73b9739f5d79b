"""Every row by hand, on two agents and two questions."""

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from coterie.datatypes import Problem
from coterie.evaluation.compare.responses import Responses, responses
from coterie.evaluation.compare.systems import System, affordable, systems
from coterie.evaluation.compare.verifier import Judged, verified
from coterie.evaluation.metrics.deferral import ThresholdChoice

PROBLEMS = [Problem("p", "1 + 1 =", "2", "number"), Problem("q", "1 + 2 =", "3", "number")]
NO_MARKS: tuple[float | None, ...] = (None,) * 4


def policy(
    name: str,
    answers: dict[str, tuple[str | None, ...]],
    *,
    tokens: float = 10,
    stated: tuple[float | None, ...] = NO_MARKS,
    seconds: float = 1.0,
) -> Responses:
    records: dict[tuple[str, int], dict[str, Any]] = {}
    problems = [problem for problem in PROBLEMS if problem.id in answers]
    for problem in problems:
        for n, answer in enumerate(answers[problem.id]):
            if answer == "missing":
                continue
            records[problem.id, n] = {
                "correct": int(answer == problem.gold),
                "answer": answer,
                "confidence": stated[n],
                "used": {name: [5, tokens]},
                "seconds": seconds + n,
            }
    return responses(records, problems, 4, [name])


@pytest.fixture
def team() -> dict[str, Responses]:
    # Right: 3 and 1 of 4 (first), 1 and 4 of 4 (second).
    return {
        "first": policy("first", {"p": ("2", "2", "5", "2.0"), "q": ("4", "3", "4", None)}),
        "second": policy("second", {"p": ("7", "8", "2", "7"), "q": ("3",) * 4}),
    }


def rows(team: dict[str, Responses], **more: Any) -> dict[str, System]:
    built: Iterator[System] = systems(team, **{"threshold": ThresholdChoice("accuracy")} | more)
    return {system.name: system for system in built}


@pytest.fixture
def by_name(team: dict[str, Responses]) -> dict[str, System]:
    # "2.0" is right by value; the records of this file compare by text.
    team["first"].correct_QN[0, 3] = 1
    return rows(team)


def scores(system: System) -> list[float]:
    return system.score_Q.tolist()


def test_alone_and_oracles(by_name: dict[str, System]) -> None:
    assert scores(by_name["first"]) == [0.75, 0.25]
    assert scores(by_name["second"]) == [0.25, 1.0]
    assert scores(by_name["best/first"]) == [1.0, 1.0]
    # 1 - (1 - 3/4)(1 - 1/4), 1 - (1 - 1/4)(1 - 1)
    assert scores(by_name["any/first+second"]) == pytest.approx([1 - 0.25 * 0.75, 1.0])
    assert [name for name, system in by_name.items() if system.oracle] == [
        "best/first",
        "best/second",
        "any/first+second",
    ]
    assert [name for name, system in by_name.items() if system.is_single] == ["first", "second"]


def test_votes_at_equal_tokens(team: dict[str, Responses], by_name: dict[str, System]) -> None:
    # 40 tokens: four samples of one policy, or two of each.
    assert affordable(team) == ({"first": 4, "second": 4}, {"first": 2, "second": 2})
    # p: 2 (thrice); q: 4 (twice) against 3, one sample says nothing.
    assert scores(by_name["vote/first"]) == [1.0, 0.0]
    # p: 2 2 7 8; q: 4 3 3 3.
    assert scores(by_name["vote"]) == [1.0, 1.0]
    assert by_name["vote"].used["first"].tolist() == [[10, 20], [10, 20]]
    # p: first agrees with itself (2 2), second does not (7 8); q: 4 3 against 3 3.
    assert scores(by_name["agreement"]) == [1.0, 1.0]


def test_a_dear_policy_has_fewer_votes() -> None:
    same = {"p": ("2",) * 4, "q": ("3",) * 4}
    team = {"cheap": policy("cheap", same), "dear": policy("dear", same, tokens=30)}
    # 40 tokens: 4 x 10, or 1 x 30; together 10 + 30, and nothing that is left would buy.
    assert affordable(team) == ({"cheap": 4, "dear": 1}, {"cheap": 1, "dear": 1})
    names = rows(team)
    assert "vote/dear" not in names  # a vote of one is the policy alone
    assert "agreement" not in names


def test_routing_asks_the_last_policy_where_two_answers_differ(by_name: dict[str, System]) -> None:
    # p, first: 2=2 kept right; 2,5 -> second's 8; 5,2.0 -> second's 2. q: 4,3 -> 3; 3,4 -> 3;
    # 4,None -> 3.
    assert scores(by_name["routing"]) == pytest.approx([2 / 3, 1.0])
    # Two of first, and second for 2/3 and for all.
    assert by_name["routing"].used["first"][:, 1].tolist() == [20, 20]
    assert by_name["routing"].used["second"][:, 1].tolist() == pytest.approx([20 / 3, 10])


def test_silence_is_no_agreement(team: dict[str, Responses]) -> None:
    silent = policy("silent", {"p": (None,) * 4, "q": (None,) * 4})
    routed = rows({"silent": silent, "second": team["second"]})["routing"]
    # second answers everything: 7 8 2 right in the third, and always.
    assert scores(routed) == pytest.approx([1 / 3, 1.0])
    assert routed.used["second"][:, 1].tolist() == [10, 10]


def test_three_policies_route_by_the_first_two(team: dict[str, Responses]) -> None:
    last = policy("last", {"p": ("2",) * 4, "q": ("9",) * 4})
    routed = rows({**team, "last": last})["routing"]
    # They agree nowhere on p; on q at the second sample.
    assert scores(routed) == [1.0, 0.25]
    assert {"any/first+second", "any/first+last", "any/first+second+last"} <= set(
        rows({**team, "last": last})
    )


def test_cascade_goes_by_what_is_stated() -> None:
    small = policy(
        "small", {"p": ("2", "2", "5", "5"), "q": ("3", "3", "4", "4")}, stated=(0.9, 0.9, 0.2, 0.2)
    )
    large = policy("large", {"p": ("2",) * 4, "q": ("3",) * 4}, tokens=100)
    cascade = rows({"small": small, "large": large}, threshold=ThresholdChoice("fixed"))["cascade"]
    assert scores(cascade) == [1.0, 1.0]
    assert cascade.used["small"][:, 1].tolist() == [10, 10]
    assert cascade.used["large"][:, 1].tolist() == [50, 50]
    never = ThresholdChoice("fixed", fixed=0.0)
    kept = rows({"small": small, "large": large}, threshold=never)["cascade"]
    assert scores(kept) == [0.5, 0.5]
    # The small answers alone must cost at most a hundredth of the large ones: nothing can.
    dear = {"small": (0.0, 1.0), "large": (0.0, 1e-3)}
    choice = ThresholdChoice("cost", cost_share=0.01)
    assert scores(
        rows({"small": small, "large": large}, threshold=choice, prices=dear)["cascade"]
    ) == [0.5, 0.5]


def test_one_question_has_no_other_to_choose_a_threshold_on(team: dict[str, Responses]) -> None:
    one = {name: policy(name, {"p": ("2", "2", "5", "2")}) for name in team}
    assert "cascade" not in rows(one)
    assert "cascade" in rows(one, threshold=ThresholdChoice("fixed"))


def test_agreement_is_confidence_where_none_is_stated(team: dict[str, Responses]) -> None:
    # p: 2 2 5 2.0: two others of three say the same; q: 4 3 4 and nothing.
    assert team["first"].agreement_QN()[0].tolist() == pytest.approx([2 / 3, 2 / 3, 0, 2 / 3])
    assert team["first"].agreement_QN()[1][:3].tolist() == pytest.approx([1 / 3, 0, 1 / 3])
    assert math.isnan(team["first"].agreement_QN()[1][3])
    cascade = rows(team, threshold=ThresholdChoice("fixed"))["cascade"]
    # Whoever looks at agreement pays for all samples.
    assert cascade.used["first"][:, 1].tolist() == [40, 40]


def test_what_is_missing_counts_for_nothing() -> None:
    own = policy("own", {"p": ("2", "missing", "5", "missing"), "q": ("missing",) * 4})
    system = rows({"own": own})["own"]
    assert system.score_Q[0] == 0.5
    assert np.isnan(system.score_Q[1])
    assert math.isnan(rows({"own": own})["vote/own"].score_Q[1])
    assert own.slowest_Q(4)[0] == 3.0
    assert own.slowest_Q(2)[0] == 1.0


def test_what_is_half_right_is_not_voted_on(team: dict[str, Responses]) -> None:
    """Such as the mean over several agents, stored with the answer of one of them."""
    team["first"].correct_QN[0, 0] = 0.5
    assert set(rows(team)) == {"first", "second", "best/first", "best/second"}


def test_the_verifier_picks_what_it_trusts(team: dict[str, Responses]) -> None:
    # Of 2 2 | 7 8 it trusts 2, and says nothing of 8; of 4 3 | 3 3 it trusts 3 and 4 alike.
    said = [
        {
            "2": Judged(0.9, (8, 4), 1.0),
            "7": Judged(0.3, (8, 4), 1.0),
            "8": Judged(math.nan, (8, 4), 1.0),
        },
        {"4": Judged(0.5, (8, 4), 2.0), "3": Judged(0.5, (8, 4), 2.0)},
    ]
    system = verified(team, said, "judge")
    assert scores(system) == [1.0, 0.5]
    # Three different answers, then two.
    assert system.used["judge"].tolist() == [[24, 12], [16, 8]]
    assert system.seconds_Q.tolist() == [2.0 + 1.0, 2.0 + 2.0]
    # Silence is trusted least.
    silent = [{v: Judged(math.nan, (8, 4), 1.0) for v in ("2", "7", "8")}, {}]
    assert verified(team, silent, "judge").score_Q.tolist() == pytest.approx([1 / 3, 0.5])
    # A question that one of them did not answer is left out, as it is of the vote.
    team["first"] = policy("first", {"p": ("2", "2", "5", "2"), "q": ("missing",) * 4})
    vetted, voted = verified(team, said, "judge"), rows(team)["vote"]
    assert vetted.score_Q[0] == 1.0
    assert np.isnan([vetted.score_Q[1], voted.score_Q[1]]).all()
