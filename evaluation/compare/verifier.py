"""Select the answer that a verifier trusts most; each distinct answer is a separate problem."""

# Q questions

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from coterie.datatypes import Problem
from coterie.envs.solo import SoloSettings
from coterie.evaluation.compare.jobs import Job, Lineup, Questions, make_job
from coterie.evaluation.compare.policies import NamedPolicy
from coterie.evaluation.compare.responses import Responses
from coterie.evaluation.compare.settings import ComparisonSettings
from coterie.evaluation.compare.systems import System, affordable, selected, total_used

_QUESTION = """\
{question}

Proposed answer: {answer}

Check the proposed answer step by step. Then output the probability (0.0-1.0) that it is correct \
within \\confidence{}."""
# Characters of an answer; a longer text is hardly an answer, and is cut.
_LONGEST = 512


@dataclass(frozen=True)
class Judged:
    """A verifier's judgement of one answer to one question."""

    trust: float
    """Probability that the answer is right; NaN if the verifier gave no valid one."""
    used: tuple[float, float]
    """Prompt and sampled tokens of the verifier."""
    seconds: float


Judgements = Sequence[Mapping[str, Judged]]
"""For each question: answer in normal form -> its judgement."""


def verifying(
    questions: Questions,
    answered: Mapping[str, Responses],
    verifier: NamedPolicy,
    settings: ComparisonSettings,
    *,
    suite: str,
    tokens: int,
) -> Job:
    """The verifier's job on one set, after the policies have answered; each distinct answer is
    judged once, in at most ``tokens``.

    A scripted oracle gets the solution 1 for right answers and 0 for wrong answers.
    """
    problems: dict[str, Problem] = {}
    for responses in answered.values():
        for q, problem in enumerate(questions.problems):
            for vote, record in zip(responses.votes[q], responses.records[q]):
                if vote is not None and record is not None:
                    rating = _rating_problem(
                        problem, vote, str(record["answer"]), int(record["correct"])
                    )
                    problems.setdefault(rating.id, rating)
    lineup = Lineup(
        f"verifier-{verifier.name}",
        "coterie.envs.solo:SoloEnv",
        SoloSettings(prompt="{question}", max_new_tokens=tokens),
        "eval",
        {"solver": (verifier,)},
        "solver",
        stream=("suite", verifier.name),
    )
    return make_job(
        lineup,
        replace(questions, problems=tuple(problems.values())),
        settings,
        settings.out / "completions" / suite,
        title=f"{suite}, {questions.name}: {verifier.name}",
        samples=1,
    )


def judgements(job: Job, questions: Questions, votes: Mapping[str, Responses]) -> Judgements:
    """The stored judgements of each question; ``votes``: policy -> the responses it judges."""
    stored = job.read()
    (verifier,) = job.lineup.needed
    by_question: list[dict[str, Judged]] = []
    for q, problem in enumerate(questions.problems):
        row: dict[str, Judged] = {}
        for vote in {
            vote for responses in votes.values() for vote in responses.votes[q] if vote is not None
        }:
            if record := stored.get((_id(problem, vote), 0)):
                trust = record["confidence"]
                prompt, sampled = record["used"][verifier]
                row[vote] = Judged(
                    float("nan") if trust is None else trust, (prompt, sampled), record["seconds"]
                )
        by_question.append(row)
    return by_question


def verified(answered: Mapping[str, Responses], judgements: Judgements, verifier: str) -> System:
    """The most trusted answer among those in a team's vote; ties are broken at random.

    Each distinct answer costs one judgement. An answer without a valid judgement has least trust.
    """
    _, counts = affordable(answered)
    scores: list[float] = []
    judging_Q2 = np.zeros((len(judgements), 2))
    waited_Q = np.zeros(len(judgements))
    for q, judged in enumerate(judgements):
        candidates: dict[str, list[float]] = {}
        for name, count in counts.items():
            responses = answered[name]
            for vote, right in zip(responses.votes[q][:count], responses.correct_QN[q][:count]):
                if vote is not None:
                    candidates.setdefault(vote, []).append(float(right))
        scores.append(_chosen(candidates, judged))
        found = [judged[vote] for vote in candidates if vote in judged]
        judging_Q2[q] = np.sum([judgement.used for judgement in found], axis=0) if found else 0.0
        waited_Q[q] = max((judgement.seconds for judgement in found), default=0.0)
    label = f"team, vetted by {verifier}, of {sum(counts.values())}"
    chosen = selected("verifier", label, scores, answered, counts)
    return replace(
        chosen,
        used=total_used([chosen.used, {verifier: judging_Q2}]),
        seconds_Q=chosen.seconds_Q + waited_Q,
    )


def _chosen(candidates: Mapping[str, Sequence[float]], judged: Mapping[str, Judged]) -> float:
    """Expected correctness of a random choice among the most trusted answers."""
    if not candidates:
        return 0.0

    def trust(vote: str) -> float:
        known = judged[vote].trust if vote in judged else np.nan
        return -1.0 if np.isnan(known) else float(known)

    most = max(map(trust, candidates))
    # The first sample with an answer decides its correctness.
    return float(np.mean([right[0] for vote, right in candidates.items() if trust(vote) == most]))


def _rating_problem(problem: Problem, vote: str, answer: str, correct: int) -> Problem:
    # Not str.format: both texts contain many braces.
    before, _, after = _QUESTION.partition("{question}")
    middle, _, after = after.partition("{answer}")
    question = f"{before}{problem.question}{middle}{answer[:_LONGEST]}{after}"
    return Problem(_id(problem, vote), question, str(correct), "number")


def _id(problem: Problem, vote: str) -> str:
    return f"{problem.id}|{hashlib.sha256(vote.encode('utf-8', 'replace')).hexdigest()[:12]}"
