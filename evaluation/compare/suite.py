"""Policies and teams on suites: ``python benchmark.py --policies alice=runs/x --suite core``."""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any

from annotated_types import Ge, MinLen
from rich.console import Console

from coterie import envs
from coterie.agents.team.graders import check_graders
from coterie.datatypes import Needs, UserError
from coterie.evaluation.compare.cross_play import cross_play
from coterie.evaluation.compare.examples import examples
from coterie.evaluation.compare.inherited_settings import (
    Inherited,
    checking,
    inherited_settings,
    preset_problems,
    preset_questions,
    preset_settings,
    prompting,
    roles_of_runs,
    sampling,
)
from coterie.evaluation.compare.jobs import (
    Job,
    Lineup,
    Questions,
    make_job,
    open_questions,
    sample_missing,
)
from coterie.evaluation.compare.output import show_plain, show_written, write_json
from coterie.evaluation.compare.policies import (
    NamedPolicy,
    NamedTeam,
    Prices,
    read_policies,
    read_prices,
    read_team,
    read_teams,
    read_verifier,
)
from coterie.evaluation.compare.settings import ComparisonSettings
from coterie.evaluation.compare.suite_scores import Answered, overall, score
from coterie.evaluation.compare.suites import (
    Suite,
    check_played,
    fitting,
    lineup_of,
    settings_of,
    suite_called,
)
from coterie.evaluation.compare.systems import can_select
from coterie.evaluation.compare.trained_on import trained_on
from coterie.evaluation.compare.verifier import verifying
from coterie.evaluation.metrics.deferral import ThresholdChoice
from coterie.rewards.confidence import ThresholdSource
from coterie.training.config.benchmark_defaults import defaults_notice
from coterie.training.config.model_defaults import as_flag
from coterie.training.config.serialize import to_plain
from coterie.training.run.durable_files import write_or_keep

_CONVENTIONS = {
    "avg": "over all questions; macro: over sets of problems",
    "over_best": "less the best single policy, which every resample chooses anew",
    "differences": "second less first, paired by question",
    "seconds": "until an answer is there, while a batch of episodes is played",
    "ece": "10 bins [a, b), the last closed; valid confidences only",
    "money": "for a thousand answers",
}


@dataclass(frozen=True)
class SuiteComparison(ComparisonSettings):
    """Any policies and teams on any suites: alone, by vote, in a cascade, and what bounds them.

    A policy is NAME=WHAT: a run directory (the model it trained under that name), a checkpoint, an
    adapter, a hub id, tiny:NAME, scripted:..., server:... or pool:.... Name cheap and weak ones
    first: cascade and routing ask the first one first, and the last one where they must. Runs bring
    the prompt style, token limits and sampling that they were evaluated with; flags win.
    """

    policies: tuple[str, ...] = ()
    """Policies to compare, NAME=WHAT each; each plays the suite's role."""
    team: tuple[str, ...] = ()
    """A team to compare, ROLE=WHAT for each role of the environment; with --cross-play, the players
    of the fixed roles."""
    teams: tuple[str, ...] = ()
    """Teams to compare, NAME=RUN each. A run that trained several roles plays all of them, frozen
    roles included; untrained:RUN plays with the models that the run began with; any other model
    plays every role."""
    cross_play: tuple[str, ...] = ()
    """Play all pairings of these over the roles, or over the seats of one role, NAME=WHAT or WHAT
    each: a matrix, in games also wins and ratings."""
    game: bool = False
    """With --cross-play: the highest reward wins, for environments without an outcome."""
    role: str = ""
    """Role whose answers count; default: the suite's role, else the team's reward."""
    suite: Annotated[tuple[str, ...], MinLen(1)] = ("core",)
    """core, corea, eapo, math, an environment as for train.py --env, or a JSON file with a suite's
    fields; several run one after another."""
    preset: str = ""
    """Ask as a paper does: prompt style, token limits, sampling and problems."""
    max_new_tokens: Annotated[int, Ge(0)] = 0
    """Longest answer; 0: the limit of the runs, or of the suite's environment."""
    workflow: bool = True
    """Also let every policy answer after all others, where the suite has such a workflow."""
    verifier: str = ""
    """Policy that rates every answer, by name or as NAME=WHAT: adds a row of the answers it trusts
    most. Empty: none."""
    verifier_tokens: Annotated[int, Ge(1), Needs("verifier")] = 1024
    """Longest rating."""
    threshold: ThresholdSource = "accuracy"
    """How the cascade's threshold for each half of the questions is chosen on the other half."""
    fixed_threshold: Annotated[float, Ge(0), Needs("threshold", "fixed")] = 0.5
    """Threshold for --threshold fixed."""
    accuracy_loss: Annotated[float, Ge(0), Needs("threshold", "accuracy")] = 0.01
    """Accuracy that --threshold accuracy may lose against the last policy."""
    cost_share: Annotated[float, Ge(0), Needs("threshold", "cost")] = 0.8
    """Largest cost with --threshold cost, as a share of the last policy's."""
    prices: tuple[str, ...] = ()
    """Price per million prompt and sampled tokens: NAME=IN,OUT for every policy, or a JSON file
    {"NAME": [IN, OUT]}."""
    out: Path = Path("runs/suite")
    """Folder for responses, results.json and pictures; responses in it are used again."""

    def inherited(self, typed_flags: Collection[str]) -> dict[str, Any]:
        """The settings of sampling and checking of the runs or the preset, and its questions."""
        sources = self.sources()
        paper = preset_questions(self.preset, typed_flags) if self.preset else {}
        return paper | sampling(sources, typed_flags) | checking(sources, typed_flags)

    def sources(self) -> list[Inherited]:
        """The runs or the preset that provide settings."""
        runs = [policy.run for policy in read_policies(self.policies)]
        return inherited_settings(
            [*runs, *(run for team in self.named_teams() for run in team.runs)], self.preset
        )

    def named_teams(self) -> list[NamedTeam]:
        """All teams; in cross-play the competitors, then the team that plays the fixed roles.

        Raises:
            UserError: incompatible flags or an invalid name.
        """
        if self.cross_play and (self.policies or self.teams or self.verifier):
            raise UserError(
                "--cross-play compares alone; leave out --policies, --teams, --verifier"
            )
        taken = [*(text.partition("=")[0] for text in self.policies), *["team"] * bool(self.team)]
        flag = "--cross-play" if self.cross_play else "--teams"
        teams = read_teams(flag, self.cross_play or self.teams, taken, frozen=not self.cross_play)
        return [*teams, NamedTeam("team", read_team(self.team))] if self.team else teams

    @property
    def threshold_choice(self) -> ThresholdChoice:
        """How the cascade's threshold is chosen."""
        return ThresholdChoice(
            self.threshold, self.accuracy_loss, self.cost_share, self.fixed_threshold
        )


def compare(settings: SuiteComparison) -> None:
    """Sample missing responses, score everything, print the tables and write the results.

    Raises:
        UserError: an invalid setting or model; raised before any model is loaded.
    """
    console = Console()
    settings.check_out()
    if settings.game and not settings.cross_play:
        raise UserError("--game is for --cross-play; leave it out, or name players there")
    policies, teams = read_policies(settings.policies), settings.named_teams()
    if not policies and not teams:
        raise UserError(
            "--policies: name who is compared, such as alice=runs/x bob=tiny:bob; or whole teams "
            "with --team, --teams or --cross-play"
        )
    suites = list[Suite]()
    for name in settings.suite:
        suite, line = _fitted(suite_called(name), settings)
        suites.append(suite)
        if line:
            show_plain(console, line)
    if len({suite.name for suite in suites}) < len(suites):
        raise UserError("--suite names a suite twice; name each once")
    everybody = {policy.name: policy for suite in suites for policy in _players(suite, settings)}
    settings.check_engine(*everybody.values())
    prices = read_prices(settings.prices, list(everybody))
    opened = [(suite, open_questions(suite.problems, settings)) for suite in suites]
    scored_questions = [questions for _, sets in opened for questions in sets]
    for line in trained_on(list(everybody.values()), scored_questions, settings.seed):
        show_plain(console, line)
    check_graders(
        settings.scoring, [p for questions in scored_questions for p in questions.problems]
    )
    if settings.cross_play:
        cross_play(opened, teams, prices, settings, console)
        return
    todo = [
        (suite.name, questions, list(_jobs(suite, questions, policies, teams, settings)))
        for suite, sets in opened
        for questions in sets
    ]
    sample_missing(
        [job for *_, jobs in todo for job in jobs], settings, console, "--max-new-tokens"
    )
    answered = [Answered.of(*jobs_of_set) for jobs_of_set in todo]
    if verifier := read_verifier(settings.verifier, policies):
        answered = [_verified(answers, verifier, settings, console) for answers in answered]
        ratings = [answers.verifier for answers in answered if answers.verifier]
        sample_missing(ratings, settings, console, "--verifier-tokens")
    _report(suites, answered, prices, settings, console)


def _report(
    suites: Sequence[Suite],
    answered: Sequence[Answered],
    prices: Prices,
    settings: SuiteComparison,
    console: Console,
) -> None:
    """Score all answers, print the tables and write results, pictures and examples."""
    scored = [
        score(
            [answers for answers in answered if answers.suite == suite.name],
            prices,
            settings.threshold_choice,
            settings,
        )
        for suite in suites
    ]
    content: dict[str, Any] = {
        "suites": {suite_scores.name: suite_scores.content for suite_scores in scored}
    }
    tables = [table for suite_scores in scored for table in suite_scores.tables]
    if len(scored) > 1:
        table, content["all"] = overall(scored, prices, settings)
        tables.append(table)
    for table in tables:
        console.print(table, "")
    for note in (note for suite_scores in scored for note in suite_scores.notes):
        show_plain(console, note)
    content |= {"conventions": _CONVENTIONS, "config": to_plain(settings)}
    files = [write_json(settings.out / "results.json", content)]
    from coterie.evaluation.compare.pictures import draw_rows

    for suite_scores in scored:
        questions = sum(systems[0].score_Q.size for systems in suite_scores.sets)
        title = f"{suite_scores.name}, n = {questions:,} questions"
        files.append(
            draw_rows(suite_scores.figures, settings.out / f"{suite_scores.name}.png", title)
        )
    if text := examples(answered):
        files.append(settings.out / "examples.md")
        write_or_keep(files[-1], text)
    show_written(console, *files)


def _fitted(suite: Suite, settings: SuiteComparison) -> tuple[Suite, str]:
    """(the suite with the settings of runs, preset, flags and models; a line on the latter)."""
    sources = settings.sources()
    inherited = _inherited(suite, settings, sources)
    suite = replace(suite, roles=suite.roles or roles_of_runs(sources, suite.env))
    models = [player.model for player in _players(suite, settings)]
    fit = {} if settings.preset else fitting(suite, models)
    fit = {n: v for n, v in fit.items() if n not in (*suite.settings, *inherited)}
    if settings.problems:
        fit.pop("problems", None)
    line = defaults_notice(fit, models, f"suite {suite.name}: ", _as_written)
    if settings.problems:
        problems = settings.problems
    elif settings.preset and preset_settings(settings.preset).choice.env == suite.env:
        problems = preset_problems(settings.preset)
    else:
        problems = fit.pop("problems", suite.problems)
    values = {**fit, **suite.settings, **inherited}
    suite = replace(suite, problems=problems, settings=values)
    suite = replace(suite, role=_role(suite, settings))
    # The environment checks its settings and modes itself.
    env = envs.make(suite.env, settings=settings_of(suite), roles=suite.roles or None)
    for mode in {suite.mode, suite.workflow or suite.mode}:
        env.reset(seed=0, options={"mode": mode})
    env.close()
    return suite, line


def _inherited(
    suite: Suite, settings: SuiteComparison, sources: Sequence[Inherited]
) -> dict[str, Any]:
    """Settings of the environment from the runs and the preset, and the limit of the flags.

    Raises:
        UserError: a limit for an environment without such a setting.
    """
    decided = {_decided_by("max_new_tokens")} if settings.max_new_tokens else set()
    decided |= {_decided_by(name) for name in suite.settings}
    known = settings_of(suite)
    prompts = prompting(sources, suite.env, decided, _decided_by, whole=suite.bare)
    values = {
        name: value
        for name, value in prompts.items()
        if name not in suite.settings and hasattr(known, name)
    }
    if settings.max_new_tokens:
        # An environment with a separate limit for evaluation gets the same value.
        limits = ("max_new_tokens", "eval_max_new_tokens")
        changed = {name: settings.max_new_tokens for name in limits if hasattr(known, name)}
        if not changed:
            raise UserError(
                f"suite {suite.name}: {suite.env} has no setting max_new_tokens; leave out "
                "--max-new-tokens"
            )
        values |= changed
    return values


def _role(suite: Suite, settings: SuiteComparison) -> str:
    """The role whose answers count; empty if only teams are compared.

    Raises:
        UserError: the environment has no such role, or several and none is named.
    """
    roles, single = _roles(suite), bool(settings.policies or settings.verifier)
    role = settings.role or suite.role or (roles[0] if len(roles) == 1 and single else "")
    needed = [role, *["expert"] * bool(suite.workflow)]
    if unknown := [name for name in needed if name and name not in roles]:
        raise UserError(
            f"suite {suite.name}: {suite.env} has no role {unknown[0]}; its roles are "
            f"{', '.join(roles)}"
        )
    if single and not role:
        raise UserError(
            f"suite {suite.name}: say with --role whose answers count, one of {', '.join(roles)}; "
            "or name whole teams with --teams"
        )
    return role


def _players(suite: Suite, settings: SuiteComparison) -> list[NamedPolicy]:
    """All policies, the players of all teams, and the verifier."""
    policies, teams = read_policies(settings.policies), settings.named_teams()
    players = [player for team in teams for (player,) in team.lineup(_roles(suite, teams)).values()]
    verifier = read_verifier(settings.verifier, policies)
    return [player for player in (*policies, *players, verifier) if player]


def _roles(suite: Suite, teams: Sequence[NamedTeam] = ()) -> tuple[str, ...]:
    """The environment's roles.

    Raises:
        UserError: a team has a player for an unknown role.
    """
    roles = suite.roles or envs.spec(suite.env).roles
    if unknown := [role for team in teams for role in team.players if role not in ("", *roles)]:
        raise UserError(
            f"--team names {unknown[0]}; the roles of {suite.env} are {', '.join(roles)}"
        )
    return roles


def _as_written(name: str, value: Any) -> str:
    """A setting in the form that the user writes."""
    return as_flag(name, value) if hasattr(SuiteComparison, name) else f"{name} {value}"


def _decided_by(name: str) -> str:
    """The flag or file entry that decides a setting."""
    if name == "max_new_tokens":
        return "--max-new-tokens"
    return f"a suite's file, as settings: {name}"


def _jobs(
    suite: Suite,
    questions: Questions,
    policies: Sequence[NamedPolicy],
    teams: Sequence[NamedTeam],
    settings: SuiteComparison,
) -> Iterator[Job]:
    """The jobs of single policies, then teams, then workflows."""
    folder = settings.out / "completions" / suite.name
    title = f"{suite.name}, {questions.name}"
    single = {policy.name: {suite.role: (policy,)} for policy in policies}
    together = {team.name: team.lineup(_roles(suite, teams)) for team in teams}
    for name, players in {**single, **together}.items():
        check_played(suite, players, questions.problems[0])
        # Policies with the same weights need different random streams.
        team = suite.bare or name in together
        lineup = lineup_of(suite, name, players, ("suite", name), team=team)
        yield make_job(lineup, questions, settings, folder, title=f"{title}: {name}")
    if suite.workflow and settings.workflow:
        for policy in policies:
            others = tuple(other for other in policies if other is not policy) or (policy,)
            lineup = Lineup(
                f"workflow-{policy.name}",
                suite.env,
                settings_of(suite),
                suite.workflow,
                {suite.role: (policy,), "expert": others},
                suite.role,
                stream=("suite", policy.name),
            )
            helped = f"{title}: {policy.name}, helped by others"
            yield make_job(lineup, questions, settings, folder, title=helped)


def _verified(
    answered: Answered, verifier: NamedPolicy, settings: SuiteComparison, console: Console
) -> Answered:
    """Add the verifier's job, if there are answers to select from."""
    if not can_select(answered.alone):
        show_plain(
            console,
            f"{answered.suite}, {answered.questions.name}: --verifier adds no row, as episodes "
            "have no single answer that is right or wrong",
        )
        return answered
    job = verifying(
        answered.questions,
        answered.alone,
        verifier,
        settings,
        suite=answered.suite,
        tokens=settings.verifier_tokens,
    )
    return replace(answered, verifier=job)
