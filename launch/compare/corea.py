"""COREA's comparison of systems: ``python benchmark.py corea --corea runs/x --rlvr runs/y``."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Literal

import numpy as np
from rich.console import Console

import envs
from agents.engine.settings import VllmSettings, check_engine
from evaluation.cascade import ThresholdChoice
from evaluation.corea_report import Figures, curves, figures, plain, table
from evaluation.corea_systems import SYSTEMS, systems
from launch.compare.naming import check_positive, trained_in
from launch.compare.store import Responses, Store, fingerprint
from launch.numbers import check_temperature
from launch.plain import to_plain
from models.locate import check, local_folder
from models.spec import ModelSpec
from problems.opening import open_source
from problems.source import ProblemSource
from problems.split import held_out
from teams.graders import refuse_ungraded
from teams.settings import AgentSettings
from vocabulary import Problem, UserError

_STOP: tuple[str, ...] = envs.spec("corea-deferral").defaults["env"]["stop"]
# They go by the model's own probabilities.
_PROBABLE = ("rlvr-avgprob", "corea-ties")


@dataclass(frozen=True)
class CoreaComparison:
    """Compare small models, their cascades with a large one, and controls (arXiv:2603.03752).

    A model is a run directory (its trained small role), a checkpoint, a hub id or tiny:NAME.
    """

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
    """Rows to show, by name; without any, all for which there are models."""
    problems: str = "recall"
    """Questions to score on, named as for train.py."""
    questions: int = 512
    """How many of them."""
    fit_questions: int = 1000
    """Further questions on which probe and router are fitted."""
    samples: int = 2
    """Responses of every model to each question."""
    temperature: float = 1.0
    """Sampling temperature."""
    max_new_tokens: int = 40
    """Longest response."""
    stop: tuple[str, ...] = _STOP
    """Strings that end a response; by default those that train.py trains with."""
    threshold: Literal["accuracy", "cost", "large-pass@1", "fixed"] = "cost"
    """How the threshold of each half of the questions is chosen on the other half."""
    threshold_on_test: bool = False
    """Choose it on the scored questions themselves, as the paper does."""
    fixed_threshold: float = 0.5
    """The threshold of --threshold fixed."""
    accuracy_loss: float = 0.01
    """Accuracy that --threshold accuracy may give up."""
    cost_share: float = 0.8
    """Share of the large model's cost that --threshold cost may take."""
    size_ratio: float = 32 / 7
    """Parameters of the large model over those of the small one, nominal sizes."""
    output_weight: float = 4.0
    """Price of an output token in prompt tokens."""
    router_lr: float = 1e-3
    """Learning rate of the router's fine-tuning; 5e-5 in the paper."""
    router_epochs: int = 10
    """Its epochs; 2 in the paper."""
    probe_lr: float = 5e-5
    """Learning rate of the probe."""
    resamples: int = 2000
    """Bootstrap resamples over questions."""
    seed: int = 0
    """Everything random derives from it."""
    out: Path = Path("runs/corea-comparison")
    """Where responses, results.json and pictures go; responses found there are used again."""
    engine: Literal["local", "vllm"] = "local"
    """What samples from models: this process, or vLLM in processes of its own."""
    vllm: VllmSettings = field(default_factory=VllmSettings)
    """How engines are run."""


def compare(settings: CoreaComparison) -> None:
    """Sample what is missing, score everything, show the table and write results and pictures.

    Raises:
        UserError: a setting or a model that cannot be, before any model is loaded.
    """
    console = Console()
    models = _models(settings)
    wanted = _wanted(settings, models)
    scored, fitted = _questions(settings, needs_fit={"rlvr-probe", "router"} & wanted)
    store = Store(settings.out / "responses")

    stored: dict[str, Responses] = {}
    for name, folder in models.items():
        with console.status(f"responses of {name}: {folder}"):
            stored[name] = _responses(store, name, folder, scored, settings)
    extras: dict[str, Any] = {}
    if fitted:
        from launch.compare.fitted import probe_scores, routing

        if "rlvr-probe" in wanted:
            with console.status("fitting the probe"):
                own = _responses(store, "rlvr-fit", models["rlvr"], fitted, settings, samples=1)
                extras["probe_QS"] = probe_scores(
                    models["rlvr"], fitted, own, scored, stored["rlvr"], settings
                )
        if "router" in wanted:
            with console.status("fitting the router"):
                eight = _responses(store, "rlvr-eight", models["rlvr"], fitted, settings, samples=8)
                extras["routing"] = routing(models["base"], fitted, eight, scored, settings)
    how = ThresholdChoice(
        settings.threshold,
        settings.accuracy_loss,
        settings.cost_share,
        settings.fixed_threshold,
        settings.threshold_on_test,
    )
    found = [
        system
        for system in systems(
            stored,
            how,
            size_ratio=settings.size_ratio,
            output_weight=settings.output_weight,
            **extras,
        )
        if system.name in wanted
    ]
    solvable_Q = np.array([bool(problem.meta.get("solvable", True)) for problem in scored])
    measure = partial(figures, resamples=settings.resamples, seed=settings.seed)
    results = measure(found)
    knowable: Figures = {}
    if solvable_Q.any() and not solvable_Q.all():
        knowable = measure([system.of(solvable_Q) for system in found])
    content = {
        "systems": plain(results),
        "solvable": plain(knowable),
        "curves": curves(found),
        "conventions": {"ece": "10 bins [a, b), the last closed; valid confidences only"},
        "config": to_plain(settings),
    }
    settings.out.mkdir(parents=True, exist_ok=True)
    (settings.out / "results.json").write_text(json.dumps(content, indent=1), encoding="utf-8")
    console.print(table(results, f"{len(scored)} questions, {settings.samples} responses each"))
    if knowable:
        console.print(table(knowable, f"the {int(solvable_Q.sum())} that can be known"))
    from evaluation.corea_pictures import draw

    files = [settings.out / "results.json", *draw(found, settings.out)]
    console.print(f"written: {', '.join(map(str, files))}", soft_wrap=True)


def _models(settings: CoreaComparison) -> dict[str, Path]:
    """The folder of every model that was named."""
    check_positive(settings, "questions", "samples", "max_new_tokens", "fit_questions", "resamples")
    check_temperature(settings.temperature)
    # One model at a time.
    check_engine(settings.engine, settings.vllm, [("auto", "auto")])
    named = {
        name: value
        for name in ("base", "rlvr", "brier", "corea", "large")
        if (value := getattr(settings, name)) is not None
    }
    return {name: _folder(value) for name, value in named.items()}


def _folder(value: str) -> Path:
    if trained := trained_in(value, "small"):
        return trained
    check(ModelSpec(value))
    folder = local_folder(ModelSpec(value))
    if folder is None:
        from huggingface_hub import snapshot_download

        folder = Path(snapshot_download(value))
    return folder


def _wanted(settings: CoreaComparison, models: dict[str, Path]) -> set[str]:
    needs = {"slm": "base", "rlvr": "rlvr", "brier": "brier", "router": "rlvr", "llm": "large"}
    needs |= dict.fromkeys(("l1", "corea", "random", "always", "never", "oracle"), "corea")

    def needed(system: str) -> str:
        return needs.get(system) or needs[system.split("-")[0]]

    for name in settings.systems:
        if name not in SYSTEMS:
            raise UserError(f"unknown system {name!r}; known: {', '.join(SYSTEMS)}")
        if needed(name) not in models:
            raise UserError(f"system {name} needs a model: --{needed(name)} RUN")
        if name == "rlvr-agreement" and settings.samples < 2:
            raise UserError("system rlvr-agreement needs --samples 2 at least")
        if name in _PROBABLE and settings.temperature != 1:
            raise UserError(f"system {name} needs probabilities at --temperature 1")
    chosen = settings.systems or [name for name in SYSTEMS if needed(name) in models]
    if not settings.systems and settings.temperature != 1:
        chosen = [name for name in chosen if name not in _PROBABLE]
    return set(chosen)


def _questions(
    settings: CoreaComparison, *, needs_fit: set[str]
) -> tuple[tuple[Problem, ...], tuple[Problem, ...]]:
    """Questions to score, and others to fit on, none of them twice."""
    source: ProblemSource = open_source(settings.problems, purpose="eval", seed=settings.seed)
    further = settings.fit_questions if needs_fit else 0
    drawn, _ = held_out(source, source, settings.questions + further, settings.seed)
    refuse_ungraded(drawn)
    return drawn[: settings.questions], drawn[settings.questions :]


def _responses(
    store: Store,
    name: str,
    folder: Path,
    problems: Sequence[Problem],
    settings: CoreaComparison,
    *,
    samples: int | None = None,
) -> Responses:
    what = {
        "model": fingerprint(folder),
        "problems": [problem.id for problem in problems],
        "samples": samples or settings.samples,
        "temperature": settings.temperature,
        "max_new_tokens": settings.max_new_tokens,
        "stop": settings.stop,
        "seed": settings.seed,
    }

    def sample() -> Responses:
        from launch.compare.respond import ROLE, respond
        from teams.team import build_team

        team = build_team(
            {ROLE: AgentSettings(str(folder), trained=False)},
            vllm=settings.vllm if settings.engine == "vllm" else None,
            seed=settings.seed,
        )
        return respond(
            team,
            problems,
            samples=what["samples"],
            temperature=settings.temperature,
            max_new_tokens=settings.max_new_tokens,
            stop=settings.stop,
            seed=settings.seed,
        )

    return store.get(name, what, sample)
