"""EAPO's comparison of systems: ``python benchmark.py eapo --eapo runs/x --rl runs/y``."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

from annotated_types import Ge
from rich.console import Console

from coterie import envs
from coterie.agents.team.graders import check_graders
from coterie.datatypes import Needs, UserError
from coterie.envs.eapo_consultation.settings import EapoConsultationSettings
from coterie.envs.presets import preset_called
from coterie.evaluation.compare.inherited_settings import (
    Inherited,
    checking,
    inherited_settings,
    preset_questions,
    preset_settings,
    prompting,
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
from coterie.evaluation.compare.policies import NamedPolicy, find_policy
from coterie.evaluation.compare.responses import Responses, pool
from coterie.evaluation.compare.settings import ComparisonSettings
from coterie.evaluation.compare.trained_on import trained_on
from coterie.extras.papers.eapo_metrics import (
    f1_table,
    figures_table,
    mean_of_sets,
    means_table,
    measure_responses,
)
from coterie.extras.papers.leap.settings import LeapSettings
from coterie.extras.papers.replies import (
    Pick,
    Replies,
    pick_replies,
    sample_replies,
)
from coterie.training.config.benchmark_defaults import PROBLEMS, asking
from coterie.training.config.run_settings import Resamples
from coterie.training.config.serialize import to_plain

_ENV, _ROLE = "eapo-consultation", "policy"
_DEFAULTS: Mapping[str, Any] = envs.spec(_ENV).defaults
_EXTRA_VALUES = ("f1", "response_tokens", "expert_tokens")
# Rows that read stored replies of the expert, and which of them.
_PICKS: Mapping[str, Pick] = {"workflow": "any", "error": "wrong"}
_TRAINED = {
    "distilled": "Distillation",
    "distilled_lora": "Distillation, LoRA",
    "taught": "On-policy distillation",
    "rl": "Self-exploratory RL",
    "eapo": "EAPO",
}


def _flag(name: str) -> str:
    return f"--env.{name.replace('_', '-')}"


@dataclass(frozen=True)
class EapoComparison(ComparisonSettings):
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
    taught: str | None = None
    """The policy trained on the expert's probabilities of its own tokens
    (--algo.distillation.teacher)."""
    others: tuple[str, ...] = ()
    """More trained policies, a row each: NAME=RUN, such as a control."""
    expert: str = "tiny:expert"
    """Expert of the workflow."""
    policies: tuple[str, ...] = ()
    """More policies before training, NAME=MODEL each: a row alone, one helped by itself, and one by
    each of --pools."""
    workflow: bool = True
    """Add a row of the base policy with stored replies of the expert."""
    pools: tuple[str, ...] = ()
    """More experts for the workflow, a row each, such as pool:tiny:policy|tiny:expert."""
    peers: bool = True
    """Add a row of paths that read each other's summaries (LeaP)."""
    noise: bool = True
    """Add rows of the workflow with only the expert's wrong replies, and with one useless text for
    everything."""
    replies: Annotated[int, Ge(1)] = 32
    """Stored replies of the expert to each question. The workflow shows some of them, its row of
    wrong experts some of the wrong ones."""
    reply_temperature: Annotated[float | None, Ge(0)] = None
    """Sampling temperature of these replies; default: --temperature."""
    problems: tuple[str, ...] = (_DEFAULTS["problems"]["train"],)
    """Sets of questions to score on, each named as for train.py; several are pooled."""
    samples: Annotated[int, Ge(1)] = 8
    """n of avg@n; 32 in the paper."""
    resamples: Resamples = 10_000
    """Bootstrap resamples over questions."""
    out: Path = Path("runs/eapo-comparison")
    """Folder for responses, results.json and the picture; responses in it are used again."""
    env: EapoConsultationSettings = field(default_factory=EapoConsultationSettings)
    """Prompts, budgets and lengths; default: train.py's."""
    leap: Annotated[LeapSettings, Needs("peers")] = field(default_factory=LeapSettings)
    """LeaP: paths that read each other's summaries."""

    def check(self) -> None:
        default = EapoComparison
        changed = self.replies != default.replies or self.reply_temperature is not None
        if changed and not (self.workflow or self.noise):
            raise UserError(
                "--replies and --reply-temperature: no row reads stored replies; leave them out, "
                "or one of --no-workflow and --no-noise"
            )

    def models(self) -> list[str]:
        """The names of all models except the members of pools."""
        named = [*((name, _ROLE) for name in self._named()), (self.expert, "expert")]
        return [find_policy(role, name, role).model for name, role in named]

    def fitting(self) -> dict[str, Any]:
        """Defaults for models that are not tiny, by the name of the setting."""
        prompts = asking(_ENV)
        # Peers get the same prompts as all other systems.
        leap = {f"leap.{name}": prompts[name] for name in ("prompt_style", "max_new_tokens")}
        env = {f"env.{name}": value for name, value in prompts.items()}
        return {"problems": (PROBLEMS,), **env, **leap}

    def inherited(self, typed_flags: Collection[str]) -> dict[str, Any]:
        """Values that the preset or the runs set."""
        values: dict[str, Any] = {}
        env: dict[str, Any] = {}
        if self.preset:
            paper = preset_settings(self.preset, _ENV)
            values = {
                "base": paper.agents["policy"].model,
                "expert": paper.agents["expert"].model,
                "problems": paper.problems.evaluated,
                "samples": paper.env.eval_samples,
                **preset_questions(self.preset, typed_flags),
            }
            env = to_plain(paper.env)
        sources = self._sources()
        drawn = sampling(sources, typed_flags)
        prompts = prompting(sources, _ENV, typed_flags, _flag)
        # Peers get the same prompts as all other systems.
        all_prompts = {**vars(self.env), **prompts}
        leap = {n: all_prompts[n] for n in ("max_new_tokens", "prompt_style")} if sources else {}
        values |= {"env": env | prompts} if env or prompts else {}
        if self.preset and not preset_called(self.preset).own:
            leap |= LeapSettings.published()
        values |= {"leap": leap} if leap else {}
        return values | drawn | checking(sources, typed_flags)

    def _sources(self) -> list[Inherited]:
        if self.preset:
            return inherited_settings((), self.preset)
        return inherited_settings(
            [find_policy("policy", policy, _ROLE).run for policy in self._named()], ""
        )

    def _named(self) -> list[str]:
        """The policies as the settings name them."""
        named = [getattr(self, name) for name in ("base", *_TRAINED)]
        named += [text.partition("=")[2] for text in (*self.policies, *self.others)]
        return [policy for policy in named if policy]


@dataclass(frozen=True)
class System:
    """One row: a policy, and the expert that it asks."""

    name: str
    label: str
    policy: str
    expert: str | None
    mode: str
    """Mode of the environment; ``peers``: LeaP."""


def compare(settings: EapoComparison) -> None:
    """Sample missing responses, score all, show the table, write results and picture.

    Raises:
        UserError: a setting or a model is invalid; raised before any model is loaded.
    """
    console = Console()
    settings.check_out()
    systems = list(_systems(settings))
    if len({system.label for system in systems}) < len(systems):
        raise UserError("--policies and --others: two rows have the same name")
    named = {s.policy: find_policy("policy", s.policy, _ROLE) for s in systems}
    experts = {s.expert: find_policy("expert", s.expert, "expert") for s in systems if s.expert}
    for s in systems:
        settings.check_engine(named[s.policy], *([experts[s.expert]] if s.expert else []))
    scored = open_questions(settings.problems, settings)
    for sentence in trained_on([*named.values(), *experts.values()], scored, settings.seed):
        show_plain(console, sentence)
    check_graders(
        settings.scoring, [problem for questions in scored for problem in questions.problems]
    )
    readers = [system.name for system in systems if system.name in _PICKS]
    replies = (
        sample_replies(
            experts[settings.expert],
            scored,
            settings,
            console,
            env=settings.env,
            count=settings.replies,
            temperature=settings.reply_temperature,
        )
        if readers
        else []
    )
    picked = {
        name: pick_replies(replies, _PICKS[name], experts=settings.env.experts, seed=settings.seed)
        for name in readers
    }
    jobs = {
        s.name: [
            _job(
                s,
                named[s.policy],
                experts[s.expert] if s.expert else None,
                questions,
                settings,
                picked[s.name][0][index] if s.name in picked else None,
            )
            for index, questions in enumerate(scored)
        ]
        for s in systems
    }
    sample_missing([job for own in jobs.values() for job in own], settings, console)
    responses = {name: [job.responses() for job in own] for name, own in jobs.items()}
    wrong = {name: share for name, (_, share) in picked.items()}
    _show(systems, responses, wrong, scored, settings, console)


def _show(
    systems: Sequence[System],
    responses: Mapping[str, Sequence[Responses]],
    wrong: Mapping[str, float],
    scored: Sequence[Questions],
    settings: EapoComparison,
    console: Console,
) -> None:
    """Show the tables; write results.json and the picture. ``wrong``: name of a row -> share of
    wrong replies among the stored ones that it reads."""
    drawn = (settings.resamples, settings.seed)
    measured = {name: measure_responses(pool(sets), *drawn) for name, sets in responses.items()}
    by_set = {
        questions.name: {
            name: measure_responses(sets[index], *drawn) for name, sets in responses.items()
        }
        for index, questions in enumerate(scored)
    }
    count = sum(len(questions.problems) for questions in scored)
    content = {
        "questions": count,
        "samples": settings.samples,
        "systems": {
            s.name: {
                "label": s.label,
                "policy": s.policy,
                "expert": s.expert,
                **({"wrong_told": wrong[s.name]} if s.name in wrong else {}),
                **measured[s.name],
                "sets": mean_of_sets([figures[s.name] for figures in by_set.values()]),
            }
            for s in systems
        },
        "sets": {
            questions.name: {
                "questions": len(questions.problems),
                "systems": by_set[questions.name],
            }
            for questions in scored
        },
        "config": to_plain(settings),
    }
    from coterie.evaluation.compare.pictures import draw_bars

    results = write_json(settings.out / "results.json", content)
    labels = {system.name: system.label for system in systems}
    bars = {labels[name]: figures["avg@n"] for name, figures in measured.items()}
    path = settings.out / "systems.png"
    picture = draw_bars(bars, path, "avg@n, 95 % intervals over questions")
    title = f"{count} questions, {settings.samples} answers each"
    several = by_set if len(scored) > 1 else {}
    for name, measured_of_set in {title: measured, **several}.items():
        labelled = {labels[row]: figures for row, figures in measured_of_set.items()}
        console.print(figures_table(labelled, name))
        console.print(f1_table(labelled))
    for name, figures in measured.items():
        if missing := figures["missing"]:
            show_plain(
                console,
                f"{labels[name]}: {missing} of {count * settings.samples} answers failed; its "
                "figures are of the others",
            )
    if several:
        means = {label: content["systems"][name]["sets"] for name, label in labels.items()}
        console.print(means_table(means, f"Mean of the {len(scored)} sets"))
    for name, share in wrong.items():
        console.print(f"{labels[name]}: {share:.0%} of the replies it reads are wrong")
    show_written(console, results, picture)


def _systems(settings: EapoComparison) -> Iterator[System]:
    base = settings.base
    yield System("base", "Base", base, None, "eval")
    yield System("self", "Self-collaboration", base, base, "workflow")
    if settings.workflow:
        yield System("workflow", "Expert workflow", base, settings.expert, "workflow")
    for index, players in enumerate(settings.pools):
        yield System(f"pool-{index}", f"Workflow, {players}", base, players, "workflow")
    if settings.noise:
        yield System("error", "Workflow, wrong experts", base, settings.expert, "workflow")
        useless = "Workflow, useless experts"
        yield System("useless", useless, base, "scripted:useless", "workflow")
    if settings.peers:
        yield System("peers", "LeaP", base, None, "peers")
    for name, label in _TRAINED.items():
        if (policy := getattr(settings, name)) is not None:
            yield System(name, label, policy, None, "eval")
            if name in ("rl", "eapo"):
                helped = f"{label}, with experts"
                yield System(f"{name}-helped", helped, policy, settings.expert, "assisted")
    for index, text in enumerate(settings.policies):
        label, policy = _name_and_policy("--policies", text)
        name, helped = f"policy-{index}", f"{label}, self-collaboration"
        yield System(name, label, policy, None, "eval")
        yield System(f"{name}-self", helped, policy, policy, "workflow")
        for pool_index, players in enumerate(settings.pools):
            helped = f"{label}, workflow, {players}"
            yield System(f"{name}-pool-{pool_index}", helped, policy, players, "workflow")
    for index, text in enumerate(settings.others):
        label, policy = _name_and_policy("--others", text)
        yield System(f"other-{index}", label, policy, None, "eval")


def _name_and_policy(flag: str, text: str) -> tuple[str, str]:
    label, equals, policy = text.partition("=")
    if not equals or not label or not policy:
        raise UserError(f"{flag} {text!r}: write NAME={'MODEL' if flag == '--policies' else 'RUN'}")
    return label, policy


def _job(
    system: System,
    policy: NamedPolicy,
    expert: NamedPolicy | None,
    questions: Questions,
    settings: EapoComparison,
    replies: Replies | None,
) -> Job:
    peers = system.mode == "peers"
    lineup = Lineup(
        system.name,
        "coterie.extras.papers.leap:LeapEnv" if peers else _ENV,
        settings.leap if peers else settings.env,
        "eval" if peers else system.mode,
        {_ROLE: (policy,), "expert": (expert,)} if expert else {_ROLE: (policy,)},
        _ROLE,
        # A question uses the same seed in every row.
        stream=("comparison",),
        # An episode of peers yields one answer per path.
        answers=settings.leap.paths if peers else 1,
        extra_values=_EXTRA_VALUES,
        replies=replies,
    )
    folder = settings.out / "responses"
    return make_job(lineup, questions, settings, folder, title=system.label, keyed=True)
