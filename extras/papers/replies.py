"""Replies of an expert to whole questions, stored once: what the offline workflow tells."""

import math
import random
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal

from rich.console import Console

from coterie.comparison.plan import Job, Lineup, Questions, ask_missing, make_job
from coterie.comparison.policies import NamedPolicy
from coterie.comparison.settings import Asking
from coterie.datatypes import UserError, derive_seed
from coterie.envs.eapo_consultation.settings import EapoConsultationSettings

Pick = Literal["any", "wrong"]
Told = Mapping[str, Sequence[str]]
"""Problem id -> what the experts say, in the order of their seats."""


def ask_replies(
    expert: NamedPolicy,
    scored: Sequence[Questions],
    settings: Asking,
    console: Console,
    *,
    env: EapoConsultationSettings,
    count: int,
    temperature: float | None,
) -> list[Job]:
    """``count`` replies of the expert to every question, asked as the workflow asks it; one job a
    set, with what is missing sampled.

    Args:
        temperature: of the replies; None: that of everything else.
    """
    if temperature is not None:
        settings = replace(settings, temperature=temperature)
    # Nobody can be asked in an evaluation: the expert sits where the policy does, in its words.
    alone = replace(
        env, max_new_tokens=env.expert_max_new_tokens, eval_max_new_tokens=0, opens_thinking=False
    )
    lineup = Lineup(
        "replies",
        "eapo-consultation",
        alone,
        "eval",
        {"policy": (expert,)},
        "policy",
        stream=("replies",),
    )
    title, folder = "Replies of the expert", settings.out / "responses"
    jobs = [
        make_job(lineup, one, settings, folder, title=title, samples=count, keyed=True)
        for one in scored
    ]
    ask_missing(jobs, settings, console)
    return jobs


def check_temperature_of_replies(temperature: float | None) -> None:
    """Raises:
    UserError: no temperature.
    """
    if temperature is not None and not 0 <= temperature < math.inf:
        raise UserError("--reply-temperature is a number from 0 on")


def tell(jobs: Sequence[Job], pick: Pick, *, experts: int, seed: int) -> tuple[list[Told], float]:
    """(what the experts of each job's set say, share of it that is wrong). It is the same for every
    answer to a problem."""
    told: list[Told] = []
    wrong: list[bool] = []
    for job in jobs:
        records: dict[str, list[Mapping[str, Any]]] = {}
        for (problem, _), record in sorted(job.read().items()):
            records.setdefault(problem, []).append(record)
        chosen = {
            problem: choose_replies(some, pick, experts, derive_seed(seed, "told", problem))
            for problem, some in records.items()
        }
        told.append({problem: [one["text"] for one in some] for problem, some in chosen.items()})
        wrong += [not one["correct"] for some in chosen.values() for one in some]
    return told, sum(wrong) / len(wrong) if wrong else 0.0


def choose_replies(
    records: Sequence[Mapping[str, Any]], pick: Pick, count: int, seed: int
) -> list[Mapping[str, Any]]:
    """``count`` of the stored replies to one problem, none of them twice.

    ``any``: of all; ``wrong``: of the wrong ones, where there are fewer than ``count`` of all
    (EAPO, arXiv:2509.23730, appendix E). All of them where there are no more.
    """
    wrong = [record for record in records if not record["correct"]]
    pool = wrong if pick == "wrong" and len(wrong) >= count else records
    return random.Random(seed).sample(list(pool), min(count, len(pool)))
