"""Agents on suites: sample what is missing, score everything, show and write it."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from rich.console import Console

from evaluation.suite.suites import suite_called
from launch.compare.naming import check_positive
from launch.numbers import check_temperature
from launch.suite.agents import Agent, read_agents, read_prices, read_verifier
from launch.suite.answered import Answered
from launch.suite.plan import Job, fitted, jobs, problem_sets
from launch.suite.scored import overall, score, write
from launch.suite.settings import SuiteComparison
from launch.suite.verify import verifying
from teams.models import check_engines
from vocabulary import UserError, user_path


def compare(settings: SuiteComparison) -> None:
    """Raises:
    UserError: a setting or a model that cannot be, before any model is loaded.
    """
    console = Console()
    _check(settings)
    agents = read_agents(settings.agents)
    verifier = read_verifier(settings.verifier, agents)
    everybody = list(agents) if verifier in (None, *agents) else [*agents, verifier]
    check_engines(
        settings.engine, settings.vllm, {agent.name: agent.settings for agent in everybody}
    )
    prices = read_prices(settings.prices, [agent.name for agent in everybody])
    suites = [fitted(suite_called(name), settings) for name in settings.suite]
    if len({suite.name for suite in suites}) < len(suites):
        raise UserError("--suite names a suite twice")
    sets = [one for suite in suites for one in problem_sets(suite, settings)]
    todo = list(jobs(sets, agents, settings))
    # Reading refuses what was sampled otherwise.
    _ask(todo, settings.samples, agents, settings, console)
    answered = [Answered.of(one, todo, settings) for one in sets]
    if verifier:
        answered = [replace(one, verifier=verifying(one, verifier, settings)) for one in answered]
        _ask([one.verifier for one in answered if one.verifier], 1, [verifier], settings, console)
    results: dict[str, Any] = {}
    scored = [
        score(suite, [one for one in answered if one.where.suite is suite], prices, settings)
        for suite in suites
    ]
    for one in scored:
        for table in one.tables:
            console.print(table, "")
        results[one.name] = one.content
    content: dict[str, Any] = {"suites": results}
    if len(scored) > 1:
        table, content["all"] = overall(scored, prices, settings)
        console.print(table, "")
    files = write(scored, content, settings)
    console.print(f"written: {', '.join(map(str, files))}", soft_wrap=True)


def _ask(
    todo: Sequence[Job],
    samples: int,
    agents: Sequence[Agent],
    settings: SuiteComparison,
    console: Console,
) -> None:
    # Reading refuses what was sampled otherwise.
    missing = [(job, wanted) for job in todo if (wanted := job.missing(samples))]
    if missing:
        # Torch and transformers wait until something has to be sampled.
        from launch.suite.ask import ask

        ask(missing, agents, settings, console)


def _check(settings: SuiteComparison) -> None:
    check_positive(settings, "questions", "samples", "batch", "resamples", "verifier_tokens")
    check_temperature(settings.temperature)
    user_path(settings.out)
    for wrong, sentence in [
        (not 0 < settings.top_p <= 1, "--top-p must be above 0 and at most 1"),
        (settings.max_new_tokens < 0, "--max-new-tokens must not be negative"),
        (not settings.suite, "--suite: name one, such as core"),
    ]:
        if wrong:
            raise UserError(sentence)
