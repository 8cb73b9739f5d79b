"""Print a plan as a table of 80 columns, with the flags that would make the run fit."""

import dataclasses
from collections.abc import Callable, Iterator
from typing import Any

from coterie import envs
from coterie.agents.models.gguf import gguf_file
from coterie.agents.team.model_specs import model_spec
from coterie.agents.team.settings import AgentSettings
from coterie.agents.team.teachers import only_teaches
from coterie.agents.vllm.settings import VllmSettings
from coterie.datatypes import UserError
from coterie.extras.ops.plan import GIB, DevicePlan, Plan, plan
from coterie.extras.ops.plan_hours import RolePlan, card_name
from coterie.problems.prepare import PreparedProblems
from coterie.training.config.preflight import open_problems_here
from coterie.training.config.train_settings import TrainSettings

_WIDTH = 80
_MOMENTS = {"always": "", "sampling": "while sampling: ", "learning": "while learning: "}


def show_plan(settings: TrainSettings, _: Callable[[], PreparedProblems] | None = None) -> int:
    """Print the plan. Problems that are on this machine are read, so that their count is known and
    a run cannot refuse them later. Returns the exit code: 0 if the run fits, else 1."""
    card = settings.run.card
    problems = open_problems_here(settings)
    run_plan = plan(settings, card, measured=len(problems.evaluation) if problems else None)
    print(describe(settings, run_plan))
    if not run_plan.fits:
        print(f"\n{why_not(settings, run_plan, card)}.")
    return 0 if run_plan.fits else 1


def describe(settings: TrainSettings, run_plan: Plan) -> str:
    """The plan as text."""
    return "\n".join([*_about(settings, run_plan), *_tables(run_plan), *_time(settings, run_plan)])


def _about(settings: TrainSettings, run_plan: Plan) -> Iterator[str]:
    yield f"{settings.choice.env} with {settings.choice.algo}, sampled by {settings.run.engine}"
    for role, model in run_plan.roles.items():
        size = model.memory.parameters / 1e9
        name = _short(model.spec.model)
        yield f"  {role}: {name}, {size:.2f} billion weights, {tuning_of(model)}"
        if only_teaches(role):
            continue
        yield (
            f"    a step: {model.rows:,} rows of at most {model.longest:,} tokens, "
            f"{model.prompt:,} of them the prompt"
        )
    costs = envs.spec(settings.choice.env).costs
    for line in costs(settings.env, settings.choice.roles) if costs else ():
        yield f"  {line}"


def tuning_of(model: RolePlan) -> str:
    """How a role learns."""
    return "frozen" if not model.trained else "LoRA" if model.spec.lora else "full weights"


def _short(name: str) -> str:
    return name if len(name) <= 40 else f"...{name[-37:]}"


def _tables(run_plan: Plan) -> Iterator[str]:
    for device in run_plan.devices:
        size = "size unknown" if device.card is None else f"{device.card / GIB:.1f} GiB"
        yield ""
        yield f"{f'{device.device}, {size}':<{_WIDTH - 8}}     GiB"
        for part in device.parts:
            yield f"{f'  {_MOMENTS[part.when]}{part.what}':<{_WIDTH - 8}}{part.size / GIB:8.2f}"
        verdict = "it fits" if device.fits else "it does not fit"
        yield f"{f'  peak: {verdict}':<{_WIDTH - 8}}{device.most / GIB:8.2f}"


def _time(settings: TrainSettings, run_plan: Plan) -> Iterator[str]:
    steps, warmup = settings.run.steps, settings.warmup.steps
    before = f"{warmup:,} steps of imitation and " if warmup else ""
    named = " and ".join(
        dict.fromkeys(card_name(device.device, device.card) for device in run_plan.devices)
    )
    yield ""
    yield f"{before}{steps:,} steps: at most {run_plan.hours:,.1f} hours on {named},"
    yield "with every answer at its limit"
    if evaluation := run_plan.evaluation:
        yield (
            f"{evaluation.times} evaluations of {evaluation.problems:,} problems: "
            f"{evaluation.answers:,} answers, at most {evaluation.hours:,.1f} hours"
        )
    elif settings.eval.enabled:
        yield "evaluations are not planned: only reading the problems tells how many there are"


def why_not(settings: TrainSettings, run_plan: Plan, card: float | None = None) -> str:
    """One sentence about what does not fit, with the flags that would make it fit."""
    worst = max((device for device in run_plan.devices if not device.fits), key=_beyond)
    flags, size = make_fit(settings, card, run_plan)
    need = f"this run needs {worst.most / GIB:.1f} GiB on {worst.device}, which has "
    need += f"{(worst.card or 0) / GIB:.1f} GiB"
    if worst.most <= (worst.card or 0):
        need += f" and can give {worst.usable / GIB:.1f}"
    if flags:
        return f"{need}: {' '.join(flags)} makes it fit ({size / GIB:.1f} GiB)"
    return f"{need}, and no flag makes it fit: take a smaller model or a larger device"


def make_fit(settings: TrainSettings, card: float | None, run_plan: Plan) -> tuple[list[str], int]:
    """(flags that make a run fit, bytes on its fullest device with them); the list is empty if no
    flags are enough. ``run_plan`` is the plan of ``settings`` for ``card``."""
    chosen: dict[str, str] = {}
    while not run_plan.fits:
        # The mildest flag that is enough, or else the flag that saves most.
        best: tuple[str, TrainSettings, Plan] | None = None
        for flag, less in ways_out(settings, run_plan):
            now = plan(less, card)
            if now.fits or best is None or _over(now) < _over(best[2]):
                best = flag, less, now
            if now.fits:
                break
        if best is None or _over(best[2]) >= _over(run_plan):
            return [], 0
        flag, settings, run_plan = best
        chosen[flag.rpartition(" ")[0]] = flag
    return list(chosen.values()), max(device.most for device in run_plan.devices)


def _beyond(device: DevicePlan) -> int:
    return device.most - device.usable


def _over(run_plan: Plan) -> int:
    return sum(max(_beyond(device), 0) for device in run_plan.devices)


def check_plan(settings: TrainSettings) -> None:
    """Refuse a run that cannot fit, before its models are loaded. If this cannot be known, print
    so and continue.

    Raises:
        UserError: the run does not fit; the message names the flags that would make it fit.
    """
    try:
        run_plan = plan(settings)
    except UserError as unknown:
        print(f"Unknown whether the run fits: {unknown}")
        return
    if not run_plan.fits:
        raise UserError(why_not(settings, run_plan))


def ways_out(settings: TrainSettings, run_plan: Plan) -> Iterator[tuple[str, TrainSettings]]:
    """Flags that reduce memory and that a run takes, the mildest first, each with the settings that
    it gives. ``run_plan`` is the plan of ``settings``."""
    learner, vllm, agents = settings.learner, settings.vllm, settings.agents.values()
    learners = {r: a for r, a in settings.agents.items() if a.trained}
    sharded = any(agent.learner_devices > 1 for agent in agents)
    for role, agent in learners.items():
        if agent.recompute != "always":
            yield f"--agents.{role}.recompute always", _agent(settings, role, recompute="always")
    tokens = learner.micro_batch_tokens
    while tokens > 1024:
        tokens //= 2
        less = dataclasses.replace(learner, micro_batch_tokens=tokens)
        flag = f"--learner.micro-batch-tokens {tokens}"
        yield flag, dataclasses.replace(settings, learner=less)
    if settings.run.engine == "vllm":
        places = [model.sampler for model in run_plan.roles.values()]
        sleepless = "cpu" in places or sharded or settings.rollout.overlap
        sleepless = sleepless or any(agent.engine_replicas for agent in agents)
        if vllm.sleep_level == 0 and not sleepless:
            yield "--vllm.sleep-level 1", _vllm(settings, sleep_level=1)
        if not vllm.time_share and not sleepless and len(set(places)) < len(places):
            flag = "--vllm.sleep-level 1 --vllm.time-share"
            yield flag, _vllm(settings, sleep_level=vllm.sleep_level or 1, time_share=True)
        for share in (0.3, 0.2, 0.1):
            if share < vllm.gpu_memory:
                yield f"--vllm.gpu-memory {share}", _vllm(settings, gpu_memory=share)
    full = [role for role, agent in learners.items() if model_spec(agent).lora is None]
    if full and learner.moments == "float32" and not sharded:
        less = dataclasses.replace(learner, moments="8bit")
        yield "--learner.moments 8bit", dataclasses.replace(settings, learner=less)
    for role in full if vllm.sleep_level < 2 else ():
        yield f"--agents.{role}.tuning lora", _agent(settings, role, tuning="lora")
    adapters = [role for role in learners if role not in full]
    if adapters and all(_can_be_nf4(learners[role], settings.run.engine) for role in adapters):
        quantized = settings
        for role in adapters:  # together, because they may share a base
            quantized = _agent(quantized, role, dtype="nf4")
        yield " ".join(f"--agents.{role}.dtype nf4" for role in adapters), quantized
    alone = all(a.tensor_parallel == 1 and a.engine_device == "auto" for a in agents)
    if settings.run.engine == "vllm" and alone and not settings.rollout.overlap:
        local = dataclasses.replace(settings.run, engine="local")
        yield "--engine local", dataclasses.replace(settings, run=local, vllm=VllmSettings())


def _can_be_nf4(agent: AgentSettings, engine: str) -> bool:
    tiny_or_gguf = agent.model.startswith("tiny:") or gguf_file(agent.model) is not None
    apart = agent.learner_devices > 1 or (agent.engine_replicas > 0 and engine == "vllm")
    return not tiny_or_gguf and agent.dtype != "nf4" and not apart


def _agent(settings: TrainSettings, role: str, **changed: Any) -> TrainSettings:
    agent = dataclasses.replace(settings.agents[role], **changed)
    return dataclasses.replace(settings, agents={**settings.agents, role: agent})


def _vllm(settings: TrainSettings, **changed: Any) -> TrainSettings:
    return dataclasses.replace(settings, vllm=dataclasses.replace(settings.vllm, **changed))
