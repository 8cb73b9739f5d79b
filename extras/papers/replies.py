"""Stored replies of an expert to whole questions, for the offline workflow."""

import random
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal

from rich.console import Console

from coterie.datatypes import derive_seed
from coterie.envs.eapo_consultation.settings import EapoConsultationSettings
from coterie.evaluation.compare.jobs import Job, Lineup, Questions, make_job, sample_missing
from coterie.evaluation.compare.policies import NamedPolicy
from coterie.evaluation.compare.settings import ComparisonSettings

Pick = Literal["any", "wrong"]
Replies = Mapping[str, Sequence[str]]
"""Problem id -> the experts' replies, in the order of their seats."""


def sample_replies(
    expert: NamedPolicy,
    scored: Sequence[Questions],
    settings: ComparisonSettings,
    console: Console,
    *,
    env: EapoConsultationSettings,
    count: int,
    temperature: float | None,
) -> list[Job]:
    """Sample ``count`` replies of the expert to every question with the workflow's prompt; one job
    per set; only missing replies are sampled. ``temperature`` None: that of ``settings``."""
    if temperature is not None:
        settings = replace(settings, temperature=temperature)
    # An evaluation has no experts: the expert takes the policy's seat, in the expert's format.
    expert_env = replace(env, max_new_tokens=env.expert_max_new_tokens, eval_max_new_tokens=0)
    lineup = Lineup(
        "replies",
        "eapo-consultation",
        expert_env,
        "eval",
        {"policy": (expert,)},
        "policy",
        stream=("replies",),
    )
    title, folder = "Replies of the expert", settings.out / "responses"
    jobs = [
        make_job(lineup, questions, settings, folder, title=title, samples=count, keyed=True)
        for questions in scored
    ]
    sample_missing(jobs, settings, console)
    return jobs


def pick_replies(
    jobs: Sequence[Job], pick: Pick, *, experts: int, seed: int
) -> tuple[list[Replies], float]:
    """Return (the experts' replies for each job's set, share of wrong ones). Every answer to a
    problem gets the same replies, at most one for each of the ``experts``."""
    replies_by_set: list[Replies] = []
    wrong: list[bool] = []
    for job in jobs:
        records: dict[str, list[Mapping[str, Any]]] = {}
        for (problem, _), record in sorted(job.read().items()):
            records.setdefault(problem, []).append(record)
        replies: dict[str, list[str]] = {}
        for problem, stored in records.items():
            picked = choose_replies(stored, pick, experts, derive_seed(seed, "told", problem))
            replies[problem] = [record["text"] for record in picked]
            wrong += [not record["correct"] for record in picked]
        replies_by_set.append(replies)
    return replies_by_set, sum(wrong) / len(wrong) if wrong else 0.0


def choose_replies(
    records: Sequence[Mapping[str, Any]], pick: Pick, count: int, seed: int
) -> list[Mapping[str, Any]]:
    """Choose ``count`` of the stored replies to one problem, without repetition.

    ``any``: from all; ``wrong``: from the wrong ones, or from all if fewer than ``count`` are wrong
    (EAPO, arXiv:2509.23730, appendix E). Return all replies if there are at most ``count``.
    """
    wrong = [record for record in records if not record["correct"]]
    pool = wrong if pick == "wrong" and len(wrong) >= count else records
    return random.Random(seed).sample(list(pool), min(count, len(pool)))
