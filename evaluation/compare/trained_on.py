"""Questions of a comparison that a compared run trained on."""

import json
from collections.abc import Iterator, Sequence
from functools import lru_cache
from pathlib import Path

from coterie.datatypes import UserError
from coterie.evaluation.compare.inherited_settings import run_settings
from coterie.evaluation.compare.jobs import Questions
from coterie.evaluation.compare.policies import NamedPolicy
from coterie.problems.canonical import problem_key
from coterie.problems.opening import open_source
from coterie.problems.prepare import prepare
from coterie.training.config.preflight import worked_solutions

STORED = "trained-on.json"
"""File of a run that is not train.py's: its ``settings``, and the canonical ``forms`` of the
problems that it trained on."""


def trained_on(
    policies: Sequence[NamedPolicy], scored: Sequence[Questions], seed: int
) -> Iterator[str]:
    """Yield a sentence for each run and set of which the run trained on some questions.

    Problems of generators are not compared: two streams may share a short problem by chance.
    """
    for run in dict.fromkeys(policy.run for policy in policies if policy.run):
        try:
            keys, run_seed = _trained(run)
        except UserError as error:
            yield f"whether {run} trained on these questions is not known: {error}"
            continue
        for questions in scored:
            seen = sum(problem_key(problem) in keys for problem in questions.problems)
            if not seen:
                continue
            way_out = (
                f"--seed {run_seed}, its own, asks what it held out"
                if run_seed != seed
                else "ask fewer with --questions, or others with --problems"
            )
            yield (
                f"{run} trained on {seen} of {len(questions.problems)} questions of "
                f"{questions.name}: {way_out}"
            )


@lru_cache(maxsize=8)
def _trained(run: Path) -> tuple[frozenset[str], int]:
    """Canonical forms of the problems that a run trained on, or imitated, and its seed; none of a
    generator, or of a folder that does not tell."""
    if (run / STORED).is_file():
        return _stored(run / STORED)
    settings = run_settings(run)
    if settings is None:
        return frozenset(), 0
    problems, warmup, seed = settings.problems, settings.warmup, settings.run.seed
    generated = all(open_source(text, seed=seed).size is None for text in problems.sources)
    if generated and not warmup.steps:
        return frozenset(), seed
    prepared = prepare(problems, seed)
    keys = prepared.train.forms(settings.run.steps * settings.rollout.problems_per_step)
    if warmup.steps:
        worked, _ = worked_solutions(settings, prepared)
        imitated = warmup.steps * warmup.problems_per_step
        keys = keys.union(*(stream.forms(imitated) for stream in worked.values()))
    return keys, seed


def _stored(path: Path) -> tuple[frozenset[str], int]:
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        return frozenset(content["forms"]), int(content["settings"]["seed"])
    except (OSError, ValueError, KeyError, TypeError):
        raise UserError(f"{path} is damaged") from None
