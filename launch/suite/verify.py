"""Every different answer, put to a verifier as a problem of its own."""

import hashlib
from collections.abc import Mapping
from dataclasses import replace

from evaluation.suite.responses import Responses
from evaluation.suite.suites import Suite
from evaluation.suite.verified import Judged, Judgements
from launch.suite.agents import Agent
from launch.suite.answered import Answered
from launch.suite.asked import Asked
from launch.suite.plan import Job, ProblemSet, job_of
from launch.suite.settings import SuiteComparison
from vocabulary import Problem

_QUESTION = """\
{question}

Proposed answer: {answer}

Check the proposed answer step by step. Then output the probability (0.0-1.0) that it is correct \
within \\confidence{}."""
# A longer one is no answer.
_LONGEST = 512


def verifying(one: Answered, verifier: Agent, settings: SuiteComparison) -> Job:
    """The verifier's job on one set, after the agents have answered.

    A scripted oracle is told 1 for right answers and 0 for wrong ones.
    """
    problems: dict[str, Problem] = {}
    for job in one.jobs:
        if job.asked.experts:
            continue
        found = job.read()
        for q, problem in enumerate(one.where.problems):
            for n, vote in enumerate(one.alone[job.asked.agent].votes[q]):
                if vote is not None:
                    record = found[problem.id, n]
                    asked = _asked(problem, vote, str(record["answer"]), int(record["correct"]))
                    problems.setdefault(asked.id, asked)
    suite = Suite(
        one.where.suite.name,
        "envs.solo:SoloEnv",
        "solver",
        (one.where.name,),
        settings={"prompt": "{question}", "max_new_tokens": settings.verifier_tokens},
    )
    place = replace(one.where, suite=suite, problems=tuple(problems.values()))
    identities = {verifier.name: verifier.identity}
    return job_of(Asked(suite, verifier.name), place, identities, settings, kind="verifier-")


def judgements(asked: Job, where: ProblemSet, votes: Mapping[str, Responses]) -> Judgements:
    """What the verifier has said, question by question."""
    found = asked.read()
    said: list[dict[str, Judged]] = []
    for q, problem in enumerate(where.problems):
        row: dict[str, Judged] = {}
        for vote in {vote for own in votes.values() for vote in own.votes[q] if vote is not None}:
            if record := found.get((_id(problem, vote), 0)):
                trust = record["confidence"]
                given, sampled = record["used"][asked.asked.agent]
                row[vote] = Judged(
                    float("nan") if trust is None else trust, (given, sampled), record["seconds"]
                )
        said.append(row)
    return said


def _asked(problem: Problem, vote: str, answer: str, correct: int) -> Problem:
    # Not str.format: both texts are full of braces.
    before, _, after = _QUESTION.partition("{question}")
    middle, _, after = after.partition("{answer}")
    question = f"{before}{problem.question}{middle}{answer[:_LONGEST]}{after}"
    return Problem(_id(problem, vote), question, str(correct), "number")


def _id(problem: Problem, vote: str) -> str:
    return f"{problem.id}|{hashlib.sha256(vote.encode('utf-8', 'replace')).hexdigest()[:12]}"
