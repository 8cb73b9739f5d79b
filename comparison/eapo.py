"""EAPO's comparison of systems: ``python benchmark.py eapo --eapo runs/x --rl runs/y``."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.markup import escape
from rich.table import Table

import envs
from comparison.brought import Brought, bring, preset_settings, prompting, sampling
from comparison.output import make_table, write_json
from comparison.plan import Job, Lineup, Questions, ask_missing, make_job, open_questions
from comparison.policies import NamedPolicy, find_policy
from comparison.responses import Responses, pool
from comparison.settings import Asking
from comparison.systems import System, alone
from envs.eapo_consultation.settings import EapoConsultationSettings
from envs.leap.settings import LeapSettings
from evaluation.evaluation import Resampled, column_means
from evaluation.metrics.means import Variance, mean_at_n, mean_present, variance
from evaluation.metrics.passk import pass_at_k
from teams.graders import check_graders
from training.plain import override, to_plain
from vocabulary import UserError

_ENV, _ROLE = "eapo-consultation", "policy"
_DEFAULTS: Mapping[str, Any] = envs.spec(_ENV).defaults
_KEEPS = ("f1", "response_tokens", "expert_tokens")
_TRAINED = {
    "distilled": "Distillation",
    "distilled_lora": "Distillation, LoRA",
    "rl": "Self-exploratory RL",
    "eapo": "EAPO",
}


def _trained_with() -> EapoConsultationSettings:
    """What train.py trains with."""
    return override(EapoConsultationSettings(), _DEFAULTS["env"])


@dataclass(frozen=True)
class EapoComparison(Asking):
    """Compare policies alone, policies with experts, and controls (arXiv:2509.23730).

    A policy is a run directory (its trained policy), a checkpoint, a hub id or tiny:NAME; an expert
    is a model, scripted:..., server:... or pool:.... Runs bring the prompt style, token limits and
    sampling that they were evaluated with; flags win.
    """

    preset: str = ""
    """Compare as the paper does: its policy, expert, questions, prompts, limits and sampling."""
    base: str = "tiny:policy"
    """The policy before training."""
    rl: str | None = None
    """The policy trained with --env.consult never (self-exploratory RL)."""
    eapo: str | None = None
    """The policy trained with experts."""
    distilled: str | None = None
    """The policy trained on the expert's solutions (benchmark.py distill)."""
    distilled_lora: str | None = None
    """The same with --tuning lora."""
    others: tuple[str, ...] = ()
    """Further trained policies, a row each: NAME=RUN, such as a control's."""
    expert: str = "tiny:expert"
    """Who helps in the workflow."""
    pools: tuple[str, ...] = ()
    """Further players for the workflow, a row each, such as pool:tiny:policy|tiny:expert."""
    peers: bool = True
    """The row of paths that read each other's summaries (LeaP)."""
    noise: bool = True
    """Rows of the workflow with experts that are always wrong, and that say the same useless text
    to everything."""
    problems: tuple[str, ...] = (_DEFAULTS["problems"]["train"],)
    """Sets of questions to score on, each named as for train.py; several are pooled."""
    samples: int = 8
    """n of avg@n; 32 in the paper."""
    resamples: int = 10_000
    """Bootstrap resamples over questions."""
    out: Path = Path("runs/eapo-comparison")
    """Where responses, results.json and the picture go; responses found there are used again."""
    env: EapoConsultationSettings = field(default_factory=_trained_with)
    """Prompts, budgets and lengths; those of train.py without flags."""
    leap: LeapSettings = field(default_factory=LeapSettings)
    """How paths read each other's summaries."""

    def brought(self, given: Collection[str]) -> dict[str, Any]:
        """What the preset, or the runs, have it be."""
        values: dict[str, Any] = {}
        env: dict[str, Any] = {}
        if self.preset:
            paper = preset_settings(self.preset)
            if paper.choice.env != _ENV:
                raise UserError(f"preset {self.preset} is for {paper.choice.env}, not for {_ENV}")
            values = {
                "base": paper.agents["policy"].model,
                "expert": paper.agents["expert"].model,
                "problems": (paper.problems.eval or paper.problems.train,),
                "samples": paper.env.eval_samples,
            }
            env = to_plain(paper.env)
        found = self._sources()
        drawn = sampling(found, given)
        asked = prompting(found, _ENV, given, prefix="--env.")
        # Peers are asked in the words of all others.
        words = {**vars(self.env), **asked}
        paths = {
            name: words[name]
            for name in ("max_new_tokens", "prompt_style")
            if found and f"--leap.{name.replace('_', '-')}" not in given
        }
        values |= {"env": env | asked} if env or asked else {}
        values |= {"leap": paths} if paths else {}
        return values | drawn

    def _sources(self) -> list[Brought]:
        if self.preset:
            return bring((), self.preset)
        named = [getattr(self, name) for name in ("base", *_TRAINED)]
        named += [text.partition("=")[2] for text in self.others]
        return bring([find_policy("policy", one, _ROLE).run for one in named if one], "")


@dataclass(frozen=True)
class Asked:
    """One system: who answers, with whose help, and what is stored of it."""

    name: str
    label: str
    policy: str
    expert: str | None
    jobs: Sequence[Job]
    """One a set of problems."""


@dataclass(frozen=True)
class Figures:
    """What is said of a system."""

    mean: Resampled
    """avg@n"""
    pass_at_n: Resampled
    f1: float
    variance: Variance
    """Between questions and within them, of being right."""
    f1_variance: Variance
    """The same of F1, which the paper trains on."""
    tokens: float
    """Written by the policy for one answer."""
    expert_tokens: float
    """Experts' tokens in its context."""

    def content(self) -> dict[str, Any]:
        """As JSON names them."""
        return {
            "avg@n": self.mean,
            "pass@n": self.pass_at_n,
            "f1": self.f1,
            "variance": self.variance,
            "f1_variance": self.f1_variance,
            "tokens": self.tokens,
            "expert_tokens": self.expert_tokens,
        }


def compare(settings: EapoComparison) -> None:
    """Sample what is missing, score everything, show the table, write results and picture.

    Raises:
        UserError: a setting or a model that cannot be, before any model is loaded.
    """
    console = Console()
    settings.check()
    rows = list(_rows(settings))
    if len({row[1] for row in rows}) < len(rows):
        raise UserError("--others: two rows have the same name")
    named = {what: find_policy("policy", what, _ROLE) for _, _, what, _, _ in rows}
    experts = {what: find_policy("expert", what, "expert") for *_, what, _ in rows if what}
    for _, _, policy, expert, _ in rows:
        who = [named[policy], *([experts[expert]] if expert else [])]
        settings.check_engine(*who)
    scored = open_questions(settings.problems, settings)
    check_graders(settings.scoring, [problem for one in scored for problem in one.problems])
    asked = [
        Asked(
            name,
            label,
            policy,
            expert,
            [
                _job(
                    name,
                    label,
                    named[policy],
                    experts[expert] if expert else None,
                    mode,
                    one,
                    settings,
                )
                for one in scored
            ],
        )
        for name, label, policy, expert, mode in rows
    ]
    ask_missing([job for one in asked for job in one.jobs], settings, console)
    found = {
        one.name: alone(one.name, one.label, pool([job.responses() for job in one.jobs]))
        for one in asked
    }
    _show(asked, found, scored, settings, console)


def _show(
    asked: Sequence[Asked],
    found: Mapping[str, System],
    scored: Sequence[Questions],
    settings: EapoComparison,
    console: Console,
) -> None:
    """The tables, results.json and the picture."""
    measured = {name: figures_of(one, settings) for name, one in found.items()}
    set_Q = np.repeat(np.arange(len(scored)), [len(one.problems) for one in scored])
    by_set = {
        questions.name: {
            name: figures_of(one.of(set_Q == place), settings) for name, one in found.items()
        }
        for place, questions in enumerate(scored)
        if len(scored) > 1
    }
    content = {
        "questions": len(set_Q),
        "samples": settings.samples,
        "systems": {
            one.name: {
                "label": one.label,
                "policy": one.policy,
                "expert": one.expert,
                **measured[one.name].content(),
            }
            for one in asked
        },
        "sets": {
            name: {"questions": len(one.problems), "systems": _contents(by_set[name])}
            for name, one in ((one.name, one) for one in scored)
            if by_set
        },
        "config": to_plain(settings),
    }
    from comparison.pictures import draw_bars

    results = write_json(settings.out / "results.json", content)
    bars = {found[name].label: one.mean for name, one in measured.items()}
    path = settings.out / "systems.png"
    picture = draw_bars(bars, path, "avg@n, 95 % intervals over questions")
    title = f"{len(set_Q)} questions, {settings.samples} answers each"
    for name, some in {title: measured, **by_set}.items():
        labelled = {found[row].label: one for row, one in some.items()}
        console.print(_table(labelled, name))
        console.print(_f1_table(labelled))
    console.print(f"written: {results}, {picture}", soft_wrap=True)


def _rows(settings: EapoComparison) -> Iterator[tuple[str, str, str, str | None, str]]:
    """(name, label, policy, expert, mode of the environment) of every system."""
    base = settings.base
    yield "base", "Base", base, None, "eval"
    yield "self", "Self-collaboration", base, base, "workflow"
    yield "workflow", "Expert workflow", base, settings.expert, "workflow"
    for place, players in enumerate(settings.pools):
        yield f"pool-{place}", f"Workflow, {players}", base, players, "workflow"
    if settings.noise:
        wrong, useless = "scripted:oracle?p_right=0", "scripted:useless"
        yield "error", "Workflow, wrong experts", base, wrong, "workflow"
        yield "useless", "Workflow, useless experts", base, useless, "workflow"
    if settings.peers:
        yield "peers", "LeaP", base, None, "peers"
    for name, label in _TRAINED.items():
        if (policy := getattr(settings, name)) is not None:
            yield name, label, policy, None, "eval"
            if name in ("rl", "eapo"):
                helped = f"{label}, with experts"
                yield f"{name}-helped", helped, policy, settings.expert, "assisted"
    for place, text in enumerate(settings.others):
        label, equals, policy = text.partition("=")
        if not equals or not label or not policy:
            raise UserError(f"--others {text!r}: write NAME=RUN")
        yield f"other-{place}", label, policy, None, "eval"


def _job(
    name: str,
    label: str,
    policy: NamedPolicy,
    expert: NamedPolicy | None,
    mode: str,
    questions: Questions,
    settings: EapoComparison,
) -> Job:
    peers = mode == "peers"
    who = {_ROLE: (policy,), "expert": (expert,)} if expert else {_ROLE: (policy,)}
    lineup = Lineup(
        name,
        "envs.leap:LeapEnv" if peers else _ENV,
        settings.leap if peers else settings.env,
        "eval" if peers else mode,
        who,
        _ROLE,
        # The same question has the same luck in every row.
        stream=("comparison",),
        # An episode of peers gives an answer a path.
        answers=settings.leap.paths if peers else 1,
        keeps=_KEEPS,
    )
    folder = settings.out / "responses"
    return make_job(lineup, questions, settings, folder, title=label, keyed=True)


def figures_of(system: System, settings: EapoComparison) -> Figures:
    """From a system's responses to its figures."""
    assert system.responses is not None
    return measure_responses(system.responses, settings.resamples, settings.seed)


def measure_responses(own: Responses, resamples: int, seed: int) -> Figures:
    """Means over questions; question by question, so that two systems' resamples pair up."""
    score_QN = own.correct_QN
    mean, passed = (
        column_means({"": column_Q}, resamples, seed)[""]
        for column_Q in (mean_at_n(score_QN), pass_at_k(score_QN, score_QN.shape[1]))
    )

    def average(key: str) -> float:
        return float(mean_present(mean_at_n(own.measured[key])))

    return Figures(
        mean,
        passed,
        average("f1"),
        variance(score_QN),
        variance(own.measured["f1"]),
        average("response_tokens"),
        average("expert_tokens"),
    )


def _contents(measured: Mapping[str, Figures]) -> dict[str, Any]:
    return {name: one.content() for name, one in measured.items()}


def _table(found: Mapping[str, Figures], title: str) -> Table:
    """One line per system; ``tokens`` are the policy's and, after the plus, its experts'."""
    return make_table(
        title,
        "system",
        ("avg@n", "95 %", "Pass@n", "between", "within", "tokens"),
        [
            (
                escape(label),
                [
                    f"{one.mean.value:.3f}",
                    f"\\[{one.mean.low:.2f} {one.mean.high:.2f}]",
                    f"{one.pass_at_n.value:.3f}",
                    f"{one.variance.between:.3f}",
                    f"{one.variance.within:.3f}",
                    f"{one.tokens:.0f} + {one.expert_tokens:.0f}",
                ],
            )
            for label, one in found.items()
        ],
    )


def _f1_table(found: Mapping[str, Figures]) -> Table:
    """What the paper measures: the mean of F1, and its variance between questions."""
    return make_table(
        "F1",
        "system",
        ("avg@n", "between", "within"),
        [
            (
                escape(label),
                [f"{n:.3f}" for n in (one.f1, one.f1_variance.between, one.f1_variance.within)],
            )
            for label, one in found.items()
        ],
    )
