"""Systems that select one answer from the stored responses of several policies.

A deployable system uses answers, confidences and votes; an oracle also uses the gold answer and
is an upper bound. Scores are per question, so that any two systems can be compared by pairs.
"""

# Q questions, N samples of one policy, M policies, S pairs of samples

from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from types import MappingProxyType

import numpy as np

from coterie.evaluation.cascade import Cascade, ScoredResponses, ThresholdChoice
from coterie.evaluation.compare.policies import Prices
from coterie.evaluation.compare.responses import Responses, Used
from coterie.evaluation.metrics.means import Floats, as_floats, mean_at_n, mean_present
from coterie.evaluation.metrics.passk import is_binary, majority_vote, pass_at_k, union


@dataclass(frozen=True)
class System:
    """One row: scores and costs of a system on one set of questions."""

    name: str
    """Identifies the row on every set."""
    label: str
    score_Q: Floats
    """Probability that the answer is right."""
    used: Used
    seconds_Q: Floats
    """Samples of one policy are drawn in parallel."""
    oracle: bool = False
    """Whether it uses the gold answer."""
    is_single: bool = False
    """Whether it is one response of one policy."""
    responses: Responses | None = None
    """The responses, if one lineup gives all answers."""


def systems(
    answered: Mapping[str, Responses],
    *,
    prices: Prices = MappingProxyType({}),
    threshold: ThresholdChoice,
    workflows: Mapping[str, Responses] = MappingProxyType({}),
) -> Iterator[System]:
    """All rows that these responses allow.

    Args:
        answered: policy -> responses, cheap and weak policies first: cascade and routing start with
            the first policy and fall back to the last.
        prices: costs for the choice of the cascade's threshold; default: sampled tokens.
        threshold: how the threshold is chosen.
        workflows: policy -> its responses after the others had answered.
    """
    for name, responses in answered.items():
        yield one_response(name, name, responses)
    for name, responses in workflows.items():
        others = ", ".join(other for other in answered if other != name) or name
        yield one_response(
            f"workflow/{name}", f"{name}, helped by {others}", responses, is_single=False
        )
    if can_select(answered):
        yield from _votes(answered)
        if len(answered) > 1:
            yield from _selections(answered, threshold, prices)
    for name, responses in answered.items():
        if responses.samples > 1:
            yield best_of(name, responses, responses.samples)
    binary = all(is_binary(responses.correct_QN) for responses in answered.values())
    if binary and len(answered) > 1:
        # All pairs, and the whole team.
        for size in sorted({2, len(answered)}):
            for members in combinations(answered, size):
                yield any_of({name: answered[name] for name in members})


def can_select(answered: Mapping[str, Responses]) -> bool:
    """Whether every response is an answer that is right or wrong, so that one can be selected."""
    return all(
        responses.has_answers and is_binary(responses.correct_QN) for responses in answered.values()
    )


def one_response(name: str, label: str, responses: Responses, *, is_single: bool = True) -> System:
    """One response of one lineup."""
    return System(
        name,
        label,
        mean_at_n(responses.correct_QN),
        responses.used_by(1),
        mean_present(responses.seconds_QN, axis=1),
        is_single=is_single,
        responses=responses,
    )


def best_of(name: str, responses: Responses, k: int) -> System:
    """Oracle: whether one of k responses is right."""
    return System(
        f"best/{name}",
        f"{name}, best of {k}",
        pass_at_k(responses.correct_QN, k),
        responses.used_by(k),
        responses.slowest_Q(k),
        oracle=True,
    )


def any_of(answered: Mapping[str, Responses]) -> System:
    """Oracle of independently trained models: whether one of M responses, one each, is right."""
    solved = {name: mean_at_n(responses.correct_QN) for name, responses in answered.items()}
    return System(
        f"any/{'+'.join(answered)}",
        f"{' + '.join(answered)}, best of {len(answered)}",
        union(solved),
        total_used([responses.used_by(1) for responses in answered.values()]),
        np.max(
            [mean_present(responses.seconds_QN, axis=1) for responses in answered.values()], axis=0
        ),
        oracle=True,
    )


def affordable(answered: Mapping[str, Responses]) -> tuple[dict[str, int], dict[str, int]]:
    """(samples of each policy alone, samples of each in a team) for equally many sampled tokens.

    The budget is the cost of all samples of the cheapest policy, to the nearest sample. The team
    takes one sample of each policy in turn within the budget; each policy has at least one vote.
    """
    cost = {name: responses.sampled_tokens() for name, responses in answered.items()}
    most = min(responses.samples for responses in answered.values())
    budget = min(cost.values()) * most
    by_itself = {n: max(1, min(most, round(budget / c))) for n, c in cost.items()}
    together, left = dict.fromkeys(cost, 0), budget
    for _ in range(most):
        for name, price in cost.items():
            if not together[name] or price / 2 <= left:
                together[name] += 1
                left -= price
    return by_itself, together


def _votes(answered: Mapping[str, Responses]) -> Iterator[System]:
    if any(
        np.isnan(responses.sampled_tokens()) or not responses.sampled_tokens()
        for responses in answered.values()
    ):
        return
    by_itself, together = affordable(answered)
    for name, count in by_itself.items():
        if count > 1:
            yield _voted(f"vote/{name}", f"{name}, vote of {count}", answered, {name: count})
    if len(answered) > 1:
        total = sum(together.values())
        yield _voted("vote", f"team, vote of {total}", answered, together)
        if min(together.values()) > 1:
            yield _most_agreed(answered, together)


def _voted(
    name: str, label: str, answered: Mapping[str, Responses], counts: Mapping[str, int]
) -> System:
    """Majority vote over samples; ties are broken at random."""
    scores = [
        majority_vote(
            {a: answered[a].votes[q][:n] for a, n in counts.items()},
            {a: (answered[a].correct_QN[q][:n] > 0).tolist() for a, n in counts.items()},
        ).expected
        for q in range(_questions(answered))
    ]
    return selected(name, label, scores, answered, counts)


def _most_agreed(answered: Mapping[str, Responses], counts: Mapping[str, int]) -> System:
    """The vote of the policy that agrees most with itself; agreement acts as confidence."""
    scores: list[float] = []
    for q in range(_questions(answered)):
        polls: list[tuple[float, float]] = []
        for name, count in counts.items():
            votes: list[Hashable] = list(answered[name].votes[q][:count])
            right = (answered[name].correct_QN[q][:count] > 0).tolist()
            poll = majority_vote({name: votes}, {name: right})
            agreed = 0 if poll.winner is None else votes.count(poll.winner)
            polls.append((agreed / count, poll.expected))
        surest = max(share for share, _ in polls)
        scores.append(float(np.mean([right for share, right in polls if share == surest])))
    total = sum(counts.values())
    label = f"team, surest by agreement of {total}"
    return selected("agreement", label, scores, answered, counts)


def _selections(
    answered: Mapping[str, Responses], threshold: ThresholdChoice, prices: Prices
) -> Iterator[System]:
    first, *between, last = answered
    if between or answered[first].samples > 1:
        yield _routed(answered, first, between[0] if between else first, last)
    has_confidence = bool((~np.isnan(answered[first].confidence_QN)).any())
    # The threshold of one question is chosen on others.
    has_threshold = _questions(answered) > 1 or threshold.source == "fixed"
    if has_threshold and (has_confidence or answered[first].samples > 1):
        yield _cascade(answered, first, last, has_confidence, threshold, prices)


def _routed(answered: Mapping[str, Responses], first: str, second: str, last: str) -> System:
    """Two cheap answers; if they differ, the last policy's answer."""
    first_own, second_own, judge = answered[first], answered[second], answered[last]
    shift = 1 if first == second else 0
    samples = min(responses.samples for responses in answered.values()) - shift
    kept_QS = np.array(
        [
            [vote is not None and vote == other for vote, other in zip(row, others[shift:])]
            for row, others in zip(first_own.votes, second_own.votes)
        ]
    )[:, :samples]
    score_QS = np.where(kept_QS, first_own.correct_QN[:, :samples], judge.correct_QN[:, :samples])
    judged_Q = 1 - kept_QS.mean(axis=1)
    both = total_used([first_own.used_by(1), second_own.used_by(1)])
    extra = {name: used * judged_Q[:, None] for name, used in judge.used_by(1).items()}
    quick = np.maximum(
        mean_present(first_own.seconds_QN, axis=1), mean_present(second_own.seconds_QN, axis=1)
    )
    pair = f"{first} twice" if first == second else f"{first}, {second}"
    return System(
        "routing",
        f"{pair}, {last} if they differ",
        mean_present(score_QS, axis=1),
        total_used([both, extra]),
        quick + judged_Q * mean_present(judge.seconds_QN, axis=1),
    )


def _cascade(
    answered: Mapping[str, Responses],
    first: str,
    last: str,
    has_confidence: bool,
    threshold: ThresholdChoice,
    prices: Prices,
) -> System:
    """The first policy's answer if its confidence is high enough, else the last policy's."""
    small, large = answered[first], answered[last]
    score_QN = small.confidence_QN if has_confidence else small.agreement_QN()
    # Agreement requires every sample.
    calls = 1 if has_confidence else small.samples
    cascade = Cascade(_answers(small, prices, calls), _answers(large, prices, 1), score_QN)
    deferred_QN = cascade.defer(cascade.thresholds(threshold))
    deferred_Q = deferred_QN.mean(axis=1)
    extra = {name: used * deferred_Q[:, None] for name, used in large.used_by(1).items()}
    waited_Q = mean_present(small.seconds_QN, axis=1) if calls == 1 else small.slowest_Q(calls)
    return System(
        "cascade",
        f"{first}, else {last}, by {'confidence' if has_confidence else 'agreement'}",
        # A failure of the policy that is not used does not matter.
        mean_present(np.where(deferred_QN, large.correct_QN, small.correct_QN), axis=1),
        total_used([small.used_by(calls), extra]),
        waited_Q + deferred_Q * mean_present(large.seconds_QN, axis=1),
    )


def _answers(responses: Responses, prices: Prices, calls: int) -> ScoredResponses:
    """Score responses to choose a threshold; a failed response is wrong, silent and free."""
    cost_QN = np.zeros_like(responses.correct_QN)
    for name, used_QN2 in responses.used_QN2.items():
        price = prices.get(name, (0.0, 1.0))
        cost_QN = cost_QN + np.nan_to_num(used_QN2 @ as_floats(price))
    return ScoredResponses(
        np.nan_to_num(responses.correct_QN), responses.confidence_QN, calls * cost_QN
    )


def selected(
    name: str,
    label: str,
    scores: Sequence[float],
    answered: Mapping[str, Responses],
    counts: Mapping[str, int],
) -> System:
    """A choice among the first samples of several policies, with its score on each question.

    A question that a policy did not answer at all has no score.
    """
    lacking = [np.isnan(answered[a].correct_QN).all(axis=1) for a in counts]
    return System(
        name,
        label,
        np.where(np.any(lacking, axis=0), np.nan, as_floats(scores)),
        total_used([answered[a].used_by(n) for a, n in counts.items()]),
        np.max([answered[a].slowest_Q(n) for a, n in counts.items()], axis=0),
    )


def _questions(answered: Mapping[str, Responses]) -> int:
    return len(next(iter(answered.values())).votes)


def total_used(parts: Sequence[Used]) -> Used:
    """Sum of token use for each policy."""
    total: dict[str, Floats] = {}
    for part in parts:
        for name, used in part.items():
            total[name] = total[name] + used if name in total else used
    return total
