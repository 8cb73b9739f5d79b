"""COREA's comparison of systems: ``python benchmark.py corea --corea runs/x --rlvr runs/y``."""

# Q questions of all sets, S responses of each

import shlex
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, fields
from itertools import chain
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
from annotated_types import Ge, Gt
from rich.console import Console

from coterie.agents.team.graders import check_graders
from coterie.datatypes import Needs, UserError, did_you_mean
from coterie.envs.corea_deferral import CoreaDeferralSettings
from coterie.evaluation.cascade import (
    Deferral,
    ThresholdChoice,
    average,
    measure,
    measure_runs,
)
from coterie.evaluation.compare.inherited_settings import (
    Inherited,
    checking,
    inherited_settings,
    preset_comparison,
    preset_problems,
    preset_questions,
    preset_settings,
    prompting,
    sampling,
)
from coterie.evaluation.compare.jobs import (
    Job,
    Lineup,
    Questions,
    further_questions,
    make_job,
    open_questions,
    sample_missing,
)
from coterie.evaluation.compare.output import show_plain, show_written, write_json
from coterie.evaluation.compare.policies import NamedPolicy, find_policy
from coterie.evaluation.compare.responses import Responses, pool
from coterie.evaluation.compare.settings import ComparisonSettings
from coterie.evaluation.compare.trained_on import trained_on
from coterie.evaluation.metrics.means import Floats
from coterie.evaluation.metrics.runs import averaged_over_sets
from coterie.experts.naming import is_player
from coterie.extras.papers.corea_systems import (
    SYSTEMS,
    Measured,
    Runs,
    at_thresholds,
    curve_content,
    runs_table,
    systems_by_set,
    table,
    with_threshold,
)
from coterie.rewards.confidence import ThresholdSource
from coterie.training.config.benchmark_defaults import PROBLEMS, asking
from coterie.training.config.serialize import to_plain

_ENV, _ROLE = "corea-deferral", "small"
_MODELS = ("base", "rlvr", "brier", "corea", "large")
# These read the probabilities or hidden states of a model: system -> its model.
_READS_STATES = {
    "rlvr-avgprob": "rlvr",
    "corea-ties": "corea",
    "rlvr-probe": "rlvr",
    "router": "base",
}
# Jobs whose tokens and probabilities are stored.
_READ = ("rlvr", "rlvr-fit", "corea")
_FITTED = ("rlvr-probe", "router")
ROUTER_RESPONSES = 8
"""Responses to a question from which the router learns accuracy; the probe uses the first."""


@dataclass(frozen=True)
class CoreaComparison(ComparisonSettings):
    """Compare small models, their cascades with a large one, and controls (arXiv:2603.03752).

    A model is a run directory (its trained small role), a checkpoint, a hub id, tiny:NAME or a
    player such as server:.... Runs bring the token limits, stop strings and sampling that they were
    evaluated with; flags win.
    """

    preset: str = ""
    """Compare as the paper does: its models, questions, limits, sampling and costs."""
    base: str = "tiny:small"
    """The small model before training (SLM)."""
    rlvr: str | None = None
    """The small model trained with --env.confidence-reward none."""
    brier: str | None = None
    """The small model trained with --env.confidence-reward l2 --env.p-hat sample."""
    corea: str | None = None
    """The small model trained with --env.confidence-reward l1."""
    large: str = "tiny:large"
    """The large model."""
    systems: tuple[str, ...] = ()
    """Rows to show, by name; default: all that have their models."""
    problems: tuple[str, ...] = ("recall",)
    """Sets of questions to score on, each named as for train.py. Each has its own thresholds; a
    figure over several is the mean of theirs, weighted by questions."""
    averages: tuple[str, ...] = ()
    """Means over some of the sets, each NAME=SETS, such as "OOD Math=math500 gsm8k"."""
    questions: Annotated[int, Ge(0)] = 512
    """Questions of each set; a smaller set is taken whole."""
    fit_problems: str = ""
    """Questions on which probe and router are fitted; default: the unscored questions of the scored
    sets."""
    fit_questions: Annotated[int, Ge(2), Needs("rlvr")] = 1000
    """Number of those questions."""
    samples: Annotated[int, Ge(1)] = 2
    """Responses of each model to a question."""
    max_new_tokens: Annotated[int, Ge(1)] = 40
    """Longest response."""
    stop: tuple[str, ...] = CoreaDeferralSettings().stop
    """Strings that end a response; default: train.py's."""
    prefill_confidence: bool = False
    r"""Ask for the answer alone, and begin its confidence: ``... is \confidence{`` is added, and
    the model writes the number."""
    threshold: ThresholdSource = "cost"
    """How the threshold for each half of the questions is chosen on the other half."""
    threshold_on_test: Annotated[bool, Needs("threshold", "accuracy", "cost", "large-pass@1")] = (
        False
    )
    """Choose the threshold on the scored questions themselves, as the paper does."""
    fixed_threshold: Annotated[float, Ge(0), Needs("threshold", "fixed")] = 0.5
    """Threshold for --threshold fixed."""
    accuracy_loss: Annotated[float, Ge(0), Needs("threshold", "accuracy")] = 0.01
    """Accuracy that --threshold accuracy may lose."""
    cost_share: Annotated[float, Ge(0), Needs("threshold", "cost")] = 0.8
    """Largest cost with --threshold cost, as a share of the large model's."""
    size_ratio: Annotated[float, Gt(0)] = 32 / 7
    """Parameters of the large model divided by those of the small one."""
    output_weight: Annotated[float, Ge(0)] = 4.0
    """Price of an output token, in prompt tokens."""
    router_lr: Annotated[float, Gt(0), Needs("rlvr")] = 1e-3
    """Learning rate of the router's fine-tuning; 5e-5 in the paper."""
    router_epochs: Annotated[int, Ge(1), Needs("rlvr")] = 10
    """Epochs of the router; 2 in the paper."""
    router_batch: Annotated[int, Ge(1), Needs("rlvr")] = 32
    """Questions of a step of the router."""
    router_tuning: Annotated[Literal["auto", "full", "lora"], Needs("rlvr")] = "auto"
    """Weights of the router that are fine-tuned; auto: all of a tiny model, LoRA else."""
    probe_lr: Annotated[float, Gt(0), Needs("rlvr")] = 5e-5
    """Learning rate of the probe."""
    probe_epochs: Annotated[int, Ge(1), Needs("rlvr")] = 20
    """Epochs of the probe; the weights of the lowest held-out loss are kept."""
    probe_batch: Annotated[int, Ge(1), Needs("rlvr")] = 32
    """Responses of a step of the probe."""
    out: Path = Path("runs/corea-comparison")
    """Folder for responses, results.json and pictures; responses in it are used again."""

    @property
    def paper_settings(self) -> dict[str, Any]:
        """The paper's settings of this comparison; nothing without a preset."""
        return preset_comparison(self.preset) if self.preset else {}

    def policies(self) -> dict[str, NamedPolicy]:
        """All models that the settings name, by the name of the setting."""
        named = {name: getattr(self, name) for name in _MODELS}
        return {
            name: find_policy(name, what, "large" if name == "large" else _ROLE)
            for name, what in named.items()
            if what is not None
        }

    def models(self) -> list[str]:
        """The names of all models."""
        return [policy.model for policy in self.policies().values()]

    def fitting(self) -> dict[str, Any]:
        """Defaults for models that are not tiny, by the name of the setting."""
        known = {field.name for field in fields(self)}
        prompts = {name: value for name, value in asking(_ENV).items() if name in known}
        return {"problems": (PROBLEMS,), **prompts}

    def inherited(self, typed_flags: Collection[str]) -> dict[str, Any]:
        """Values that the preset or the runs set."""
        values: dict[str, Any] = {}
        if self.preset:
            paper = preset_settings(self.preset, _ENV)
            env, small = paper.env, paper.agents[_ROLE].model
            values = {
                "base": small,
                "large": paper.agents["large"].model,
                "threshold": env.threshold_source,
                "threshold_on_test": env.threshold_on_test,
                "size_ratio": env.size_ratio,
                "output_weight": env.output_weight,
                "problems": preset_problems(self.preset),
                "samples": env.eval_traces,
                **preset_questions(self.preset, typed_flags),
                **self.paper_settings,
            }
            if "--problems" in typed_flags:
                # These are means over the paper's sets, which --problems replaces.
                values.pop("averages", None)
        sources = self._sources()
        drawn = sampling(sources, typed_flags)
        prompts = prompting(sources, _ENV, typed_flags)
        prompts.pop("eval_max_new_tokens", None)
        return values | drawn | prompts | checking(sources, typed_flags)

    def _sources(self) -> list[Inherited]:
        if self.preset:
            return inherited_settings((), self.preset)
        return inherited_settings([policy.run for policy in self.policies().values()], "")


def compare(settings: CoreaComparison) -> None:
    """Sample missing responses, score all, show the table and write results and pictures.

    Raises:
        UserError: a setting or a model is invalid; raised before any model is loaded.
    """
    console = Console()
    settings.check_out()
    groups = _groups(settings)
    policies = settings.policies()
    # Load one model at a time.
    settings.check_engine(*policies.values())
    wanted = _wanted(settings, policies)
    scored = open_questions(settings.problems, settings)
    for sentence in trained_on(list(policies.values()), scored, settings.seed):
        show_plain(console, sentence)
    fitted: Questions | None = None
    if needs_fit := wanted & {*_FITTED}:
        fitted = further_questions(scored, settings.fit_problems, settings.fit_questions, settings)
        if fitted is None or len(fitted.problems) < 2:
            fitted = None
            wanted -= _without_fit(settings, needs_fit, console)
    elif settings.fit_problems != settings.paper_settings.get("fit_problems", ""):
        raise UserError("--fit-problems: no row is fitted here; leave it out, or name --rlvr RUN")
    check_graders(
        settings.scoring,
        [p for questions in (*scored, *filter(None, [fitted])) for p in questions.problems],
    )
    jobs = {
        name: [_job(name, policy, questions, settings) for questions in scored]
        for name, policy in policies.items()
    }
    count = ROUTER_RESPONSES if "router" in wanted else 1
    fit_job = fitted and _job("rlvr-fit", policies["rlvr"], fitted, settings, count)
    sample_missing(
        [*chain.from_iterable(jobs.values()), *filter(None, [fit_job])], settings, console
    )
    by_model = {name: [job.responses() for job in own] for name, own in jobs.items()}
    answered = {name: pool(sets) for name, sets in by_model.items()}
    more: dict[str, Any] = {"probability_QS": _probabilities(answered, policies, wanted, settings)}
    if fitted and fit_job:
        more |= _fit(
            fitted, fit_job.responses(), scored, answered["rlvr"], policies, wanted, settings
        )
    choice = ThresholdChoice(
        settings.threshold,
        settings.accuracy_loss,
        settings.cost_share,
        settings.fixed_threshold,
        settings.threshold_on_test,
    )
    costs = {"size_ratio": settings.size_ratio, "output_weight": settings.output_weight}
    by_set = [
        {name: deferral for name, deferral in rows.items() if name in wanted}
        for rows in systems_by_set(by_model, choice, **costs, **more)
    ]
    _show(by_set, scored, groups, settings, console)


def _groups(settings: CoreaComparison) -> dict[str, list[int]]:
    """Name of each of ``--averages`` -> indices of its sets."""
    groups: dict[str, list[int]] = {}
    for text in settings.averages:
        name, _, sets = text.partition("=")
        try:
            named = shlex.split(sets)
        except ValueError:
            named = []
        if not name.strip() or not named:
            raise UserError(
                f'--averages {text!r}: write NAME=SETS, such as "OOD Math=math500 gsm8k"'
            )
        if unknown := [each for each in named if each not in settings.problems]:
            raise UserError(
                f"--averages {name}: {unknown[0]} is not scored; name it with --problems, one of "
                f"{', '.join(settings.problems)}"
            )
        if name in groups:
            raise UserError(f"--averages names {name} twice; give each mean a name of its own")
        groups[name] = [settings.problems.index(each) for each in dict.fromkeys(named)]
    return groups


def _show(
    by_set: Sequence[Mapping[str, Deferral]],
    scored: Sequence[Questions],
    groups: Mapping[str, Sequence[int]],
    settings: CoreaComparison,
    console: Console,
) -> None:
    """Show the tables; write results.json and the pictures."""
    counts = [len(questions.problems) for questions in scored]
    measured = [_measured(rows, settings, index) for index, rows in enumerate(by_set)]
    runs = [{name: measure_runs(row) for name, row in rows.items()} for rows in by_set]
    results, spread = _mean(measured), _mean_of_runs(runs, counts)
    several = f" of {len(scored)} sets" if len(scored) > 1 else ""
    title = f"{sum(counts)} questions{several}, {settings.samples} responses each"
    console.print(table(results, title))
    if settings.samples > 1:
        console.print(runs_table(spread, f"mean ± standard deviation of {settings.samples} runs"))
    knowable = _knowable(by_set, scored, settings)
    if knowable:
        solvable = sum(bool(p.meta.get("solvable", True)) for q in scored for p in q.problems)
        console.print(table(knowable, f"the {solvable} that can be known"))
    by_name = {q.name: metrics for q, metrics in zip(scored, measured)} if len(scored) > 1 else {}
    averages = {name: _mean([measured[i] for i in indices]) for name, indices in groups.items()}
    for name, metrics in {**averages, **by_name}.items():
        console.print(table(metrics, name))
    deferrals = {name: Deferral.join([rows[name] for rows in by_set]) for name in by_set[0]}
    deferring = with_threshold(deferrals)
    content = {
        "systems": results,
        "solvable": knowable,
        "sets": by_name,
        "averages": averages,
        "runs": {
            "systems": spread,
            "sets": {questions.name: of_set for questions, of_set in zip(scored, runs)},
            "averages": {
                name: _mean_of_runs([runs[i] for i in indices], [counts[i] for i in indices])
                for name, indices in groups.items()
            },
        },
        "curves": {name: curve_content(deferral) for name, deferral in deferring.items()},
        "curves of sets": {
            questions.name: {
                name: curve_content(deferral) for name, deferral in with_threshold(rows).items()
            }
            for questions, rows in (zip(scored, by_set) if by_name else ())
        },
        "at threshold": {name: at_thresholds(deferral) for name, deferral in deferring.items()},
        "conventions": {
            "ece": "10 bins [a, b), the last closed; valid confidences only",
            "several sets": "each has its own threshold; means weighted by questions; curves, "
            "figures at a threshold and pictures are of all questions together",
            "runs": "run s is the s-th response to every question",
        },
        "config": to_plain(settings),
    }
    from coterie.extras.papers.corea_pictures import draw_cascades

    files = [write_json(settings.out / "results.json", content)]
    files += draw_cascades(deferrals, settings.out, sets=len(scored))
    show_written(console, *files)


def _mean(sets: Sequence[Measured]) -> Measured:
    """Average every system's metrics over several sets."""
    return {name: average([of_set[name] for of_set in sets]) for name in sets[0]}


def _mean_of_runs(sets: Sequence[Runs], questions: Sequence[int]) -> Runs:
    """Average every system's means and deviations over several sets."""
    return {
        name: averaged_over_sets([of_set[name] for of_set in sets], questions) for name in sets[0]
    }


def _knowable(
    by_set: Sequence[Mapping[str, Deferral]],
    scored: Sequence[Questions],
    settings: CoreaComparison,
) -> Measured:
    """Metrics on the solvable questions; nothing if all or none are solvable."""
    solvable = [
        np.array([bool(problem.meta.get("solvable", True)) for problem in questions.problems])
        for questions in scored
    ]
    known = np.concatenate(solvable)
    if known.all() or not known.any():
        return {}
    return _mean(
        [
            _measured({n: row.of(solvable_Q) for n, row in rows.items()}, settings, index)
            for index, (rows, solvable_Q) in enumerate(zip(by_set, solvable))
            if solvable_Q.any()
        ]
    )


def _wanted(settings: CoreaComparison, policies: Mapping[str, NamedPolicy]) -> set[str]:
    """The requested rows, or by default all rows that the models allow."""
    needs = {"slm": "base", "rlvr": "rlvr", "brier": "brier", "router": "rlvr", "llm": "large"}
    needs |= dict.fromkeys(("l1", "corea", "random", "always", "never", "oracle"), "corea")

    def needed(system: str) -> str:
        return needs.get(system) or needs[system.split("-")[0]]

    def unreadable(system: str) -> str:
        """The model whose states a system reads, if it is a player, which shows none."""
        key = _READS_STATES.get(system, "")
        return key if key in policies and is_player(policies[key].model) else ""

    for name in settings.systems:
        if name not in SYSTEMS:
            near = did_you_mean(name, SYSTEMS)
            raise UserError(f"unknown system {name!r}; {near}known: {', '.join(SYSTEMS)}")
        if needed(name) not in policies:
            raise UserError(f"system {name} needs a model: --{needed(name)} RUN")
        if name == "rlvr-agreement" and settings.samples < 2:
            raise UserError("system rlvr-agreement needs --samples 2 at least")
        if key := unreadable(name):
            raise UserError(
                f"system {name} reads the model's own states, which {policies[key].model} does "
                f"not show; name a model with --{key}"
            )
    possible = [name for name in SYSTEMS if needed(name) in policies and not unreadable(name)]
    return set(settings.systems or possible)


def _without_fit(settings: CoreaComparison, rows: set[str], console: Console) -> set[str]:
    """The rows to leave out, as there are not two questions to fit on."""
    sentence = f"{', '.join(settings.problems)}: there are no two questions that are not scored"
    if chosen := [name for name in settings.systems if name in rows]:
        raise UserError(
            f"system {chosen[0]} is fitted on other questions; {sentence}: name some with "
            "--fit-problems, such as the training set"
        )
    show_plain(console, f"no rows of probe and router: {sentence} (--fit-problems)")
    return rows


def _job(
    name: str,
    policy: NamedPolicy,
    questions: Questions,
    settings: CoreaComparison,
    samples: int | None = None,
) -> Job:
    """Sample a model with the prompt of corea-deferral's small role."""
    lineup = Lineup(
        name,
        _ENV,
        CoreaDeferralSettings(
            traces=1,
            learners=(_ROLE,),
            max_new_tokens=settings.max_new_tokens,
            stop=settings.stop,
            prefill_confidence=settings.prefill_confidence,
        ),
        "train",
        {_ROLE: (policy,)},
        _ROLE,
        stream=("comparison",),
        extra_values=("probability", "tokens", "turns") if name in _READ else (),
    )
    folder, title = settings.out / "responses", f"responses of {name}: {policy.model}"
    return make_job(lineup, questions, settings, folder, title=title, samples=samples, keyed=True)


def _probabilities(
    answered: Mapping[str, Responses],
    policies: Mapping[str, NamedPolicy],
    wanted: set[str],
    settings: CoreaComparison,
) -> dict[str, Floats]:
    """Mean probabilities at temperature 1 of the tokens that a model wrote."""
    keys = [_READS_STATES[name] for name in ("rlvr-avgprob", "corea-ties") if name in wanted]
    if settings.temperature == settings.top_p == 1:
        # The sampler recorded the same probabilities.
        return {key: answered[key].measured["probability"] for key in keys}
    from coterie.extras.papers.probe import mean_probabilities

    return {key: mean_probabilities(policies[key], answered[key]) for key in keys}


def _fit(
    fitted: Questions,
    fitting_responses: Responses,
    scored: Sequence[Questions],
    answered: Responses,
    policies: Mapping[str, NamedPolicy],
    wanted: set[str],
    settings: CoreaComparison,
) -> dict[str, Any]:
    """Fit probe and router; return their predictions by the argument of systems_by_set."""
    predicted: dict[str, Any] = {}
    if "rlvr-probe" in wanted:
        from coterie.extras.papers.probe import probe_scores

        predicted["probe_QS"] = probe_scores(
            policies["rlvr"],
            fitting_responses,
            answered,
            seed=settings.seed,
            learning_rate=settings.probe_lr,
            epochs=settings.probe_epochs,
            batch=settings.probe_batch,
        )
    if "router" in wanted:
        from coterie.extras.papers.router import routing_by

        predicted["routing"] = routing_by(
            policies["base"],
            [problem.question for problem in fitted.problems],
            fitting_responses,
            [problem.question for questions in scored for problem in questions.problems],
            seed=settings.seed,
            learning_rate=settings.router_lr,
            epochs=settings.router_epochs,
            batch=settings.router_batch,
            tuning=settings.router_tuning,
        )
    return predicted


def _measured(rows: Mapping[str, Deferral], settings: CoreaComparison, index: int) -> Measured:
    """Metrics of the systems on the set number ``index``."""
    # Sets have independent resamples.
    resampling = {"resamples": settings.resamples, "seed": settings.seed + index}
    return {name: measure(deferral, **resampling) for name, deferral in rows.items()}
