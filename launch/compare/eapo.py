"""EAPO's comparison of systems: ``python benchmark.py eapo --eapo runs/x --rl runs/y``."""

import asyncio
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from rich.console import Console
from rich.table import Table

import envs
from agents.engine.settings import VllmSettings
from envs.eapo_consultation.settings import EapoConsultationSettings
from envs.leap.settings import LeapSettings
from evaluation.eapo_systems import Figures, System, draw, figures
from experts.naming import is_player, pool_members
from launch.compare.naming import check_positive, trained_in
from launch.compare.store import Responses, Store, fingerprint
from launch.plain import override
from models.locate import check, local_folder
from models.spec import ModelSpec
from problems.opening import open_source
from problems.split import held_out
from teams.graders import refuse_ungraded
from teams.models import check_engines, model_spec
from teams.players import check_players
from teams.settings import AgentSettings
from vocabulary import Problem, UserError


def _trained_with() -> EapoConsultationSettings:
    """What train.py trains with."""
    values = envs.spec("eapo-consultation").defaults["env"]
    return override(EapoConsultationSettings(), values)


_PROBLEMS: str = envs.spec("eapo-consultation").defaults["problems"]["train"]


@dataclass(frozen=True)
class EapoComparison:
    """Compare policies alone, policies with experts, and controls (arXiv:2509.23730).

    A policy is a run directory (its trained policy), a checkpoint, a hub id or tiny:NAME; an expert
    is a model, scripted:..., server:... or pool:....
    """

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
    problems: str = _PROBLEMS
    """Questions to score on, named as for train.py."""
    questions: int = 128
    """How many of them."""
    samples: int = 8
    """n of avg@n; 32 in the paper."""
    temperature: float = 1.0
    """Sampling temperature."""
    top_p: float = 1.0
    """Nucleus filter; 1 is off."""
    resamples: int = 10_000
    """Bootstrap resamples over questions."""
    seed: int = 0
    """Everything random derives from it."""
    out: Path = Path("runs/eapo-comparison")
    """Where answers, results.json and the picture go; answers found there are used again."""
    engine: Literal["local", "vllm"] = "local"
    """What samples from models: this process, or vLLM in processes of its own."""
    vllm: VllmSettings = field(default_factory=VllmSettings)
    """How engines are run."""
    env: EapoConsultationSettings = field(default_factory=_trained_with)
    """Prompts, budgets and lengths; those of train.py without flags."""
    leap: LeapSettings = field(default_factory=LeapSettings)
    """How paths read each other's summaries."""


def compare(settings: EapoComparison) -> None:
    """Sample what is missing, score everything, show the table, write results and picture.

    Raises:
        UserError: a setting or a model that cannot be, before any model is loaded.
    """
    console = Console()
    systems = _systems(settings)
    problems = _questions(settings)
    store = Store(settings.out / "answers")
    found: dict[str, Figures] = {}
    for system in systems:
        with console.status(system.label):
            answers = store.get(
                system.name,
                _what(system, problems, settings),
                lambda system=system: sample(system, problems, settings),
            )
        found[system.label] = figures(answers, settings.resamples, settings.seed)
    results = {
        "questions": len(problems),
        "samples": settings.samples,
        "systems": {
            system.name: {
                "label": system.label,
                "policy": system.policy,
                "expert": system.expert,
                **found[system.label].as_json(),
            }
            for system in systems
        },
    }
    settings.out.mkdir(parents=True, exist_ok=True)
    (settings.out / "results.json").write_text(json.dumps(results, indent=2), encoding="utf-8")
    picture = draw(found, settings.out / "systems.png")
    console.print(table(found, f"{len(problems)} questions, {settings.samples} answers each"))
    console.print(f"written: {settings.out / 'results.json'}, {picture}", soft_wrap=True)


def table(found: Mapping[str, Figures], title: str) -> Table:
    """One line per system; ``tokens`` are the policy's and, after the plus, its experts'."""
    shown = Table(box=None, pad_edge=False, header_style="bold", title=title, title_justify="left")
    shown.add_column("system", no_wrap=True)
    for heading in ("avg@n", "95 %", "Pass@n", "between", "within", "tokens"):
        shown.add_column(heading, justify="right", no_wrap=True)
    for label, one in found.items():
        low, high = one.mean.interval()
        shown.add_row(
            label,
            f"{one.mean.value:.3f}",
            f"\\[{low:.2f} {high:.2f}]",
            f"{one.pass_at_n.value:.3f}",
            f"{one.variance.between:.3f}",
            f"{one.variance.within:.3f}",
            f"{one.tokens:.0f} + {one.expert_tokens:.0f}",
        )
    return shown


def sample(system: System, problems: Sequence[Problem], settings: EapoComparison) -> Responses:
    """Play every question ``samples`` times."""
    # Torch and transformers wait until something has to be sampled.
    from rewards.grading.scorer import AnswerScorer
    from rollouts import Collector, tasks_for
    from teams.team import build_team
    from vocabulary import Sampling

    team = build_team(
        _agents(system),
        vllm=settings.vllm if settings.engine == "vllm" else None,
        seed=settings.seed,
    )
    scorer = AnswerScorer()
    peers = system.mode == "peers"
    codecs = {"policy": team.codecs["policy"]} if peers else team.codecs
    collector = Collector(
        lambda: envs.make(  # type: ignore[arg-type,return-value]
            "envs.leap:LeapEnv" if peers else "eapo-consultation",
            settings=settings.leap if peers else settings.env,
            codecs=codecs,
            scorer=scorer,
        ),
        team.policies,
        sampling=Sampling(settings.env.max_new_tokens, settings.temperature, settings.top_p),
        scorer=scorer,
    )
    # An episode of peers gives an answer a path.
    episodes_each = -(-settings.samples // (settings.leap.paths if peers else 1))
    mode = "eval" if peers else system.mode
    tasks = tasks_for(problems, seed=settings.seed, mode=mode, replicas=episodes_each)

    async def play() -> list[Any]:
        async with team.open():
            return await collector.collect(tasks)

    try:
        episodes = asyncio.run(play())
    finally:
        scorer.close()
    answers: list[list[Any]] = []
    for place in range(0, len(episodes), episodes_each):
        played = episodes[place : place + episodes_each]
        rows = [row for episode in played for row in episode.trajectories if row.role == "policy"]
        answers.append(rows[: settings.samples])
    return {
        key: [
            [float(row.info[key]) if row.status == "ok" else None for row in rows]
            for rows in answers
        ]
        for key in ("correct", "f1", "response_tokens", "expert_tokens")
    }


def _systems(settings: EapoComparison) -> list[System]:
    check_positive(settings, "questions", "samples", "resamples")
    if not 0 <= settings.temperature < math.inf or not 0 < settings.top_p <= 1:
        raise UserError("--temperature is a number from 0 on, --top-p one above 0 and at most 1")
    base = settings.base
    rows = [
        System("base", "Base", base),
        System("self", "Self-collaboration", base, base, "workflow"),
        System("workflow", "Expert workflow", base, settings.expert, "workflow"),
    ]
    for place, pool in enumerate(settings.pools):
        rows.append(System(f"pool-{place}", f"Workflow, {pool}", base, pool, "workflow"))
    if settings.noise:
        wrong, useless = "scripted:oracle?p_right=0", "scripted:useless"
        rows.append(System("error", "Workflow, wrong experts", base, wrong, "workflow"))
        rows.append(System("useless", "Workflow, useless experts", base, useless, "workflow"))
    if settings.peers:
        rows.append(System("peers", "LeaP", base, mode="peers"))
    trained = {
        "distilled": "Distillation",
        "distilled_lora": "Distillation, LoRA",
        "rl": "Self-exploratory RL",
        "eapo": "EAPO",
    }
    for name, label in trained.items():
        if (policy := getattr(settings, name)) is not None:
            rows.append(System(name, label, policy))
            if name in ("rl", "eapo"):
                helped = f"{label}, with experts"
                rows.append(System(f"{name}-helped", helped, policy, settings.expert, "assisted"))
    for place, text in enumerate(settings.others):
        label, equals, policy = text.partition("=")
        if not equals or not label or not policy:
            raise UserError(f"--others {text!r}: write NAME=RUN")
        rows.append(System(f"other-{place}", label, policy))
    if len({row.label for row in rows}) < len(rows):
        raise UserError("--others: two rows have the same name")
    found = [
        System(r.name, r.label, _folder(r.policy), r.expert and _expert(r.expert), r.mode)
        for r in rows
    ]
    for system in found:
        agents = _agents(system)
        check_players(agents)
        check_engines(settings.engine, settings.vllm, agents)
    return found


def _agents(system: System) -> dict[str, AgentSettings]:
    return {
        "policy": AgentSettings(system.policy, trained=False),
        "expert": AgentSettings(system.expert or "scripted:silent", trained=False),
    }


def _folder(name: str) -> str:
    """The folder of a model, so that its weights can be told apart from others."""
    if trained := trained_in(name, "policy"):
        return str(trained)
    check(model_spec(AgentSettings(name, trained=False)))
    return name


def _expert(name: str) -> str:
    """A player as it was named, a model by its folder."""
    if not is_player(name):
        return _folder(name)
    for member in pool_members(name):
        if not is_player(member):
            _folder(member)
    return name


def _what(system: System, problems: Sequence[Problem], settings: EapoComparison) -> dict[str, Any]:
    folder = local_folder(ModelSpec(system.policy))
    return {
        "policy": fingerprint(folder) if folder else system.policy,
        "expert": system.expert,
        "mode": system.mode,
        "problems": [problem.id for problem in problems],
        "samples": settings.samples,
        "sampling": [settings.temperature, settings.top_p],
        "env": vars(settings.leap)
        if system.mode == "peers"
        else {k: v for k, v in vars(settings.env).items() if k != "eval_samples"},
        "seed": settings.seed,
    }


def _questions(settings: EapoComparison) -> tuple[Problem, ...]:
    source = open_source(settings.problems, purpose="eval", seed=settings.seed)
    problems = held_out(source, source, settings.questions, settings.seed)[0]
    refuse_ungraded(problems)
    return problems
