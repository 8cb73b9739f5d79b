"""Plan the resources of a run before anything is loaded: bytes on each device, and hours.

:func:`plan` reads only the settings and each model's ``config.json``. It assumes the worst case:
the longest allowed prompt, and answers of maximum length.
"""

import dataclasses
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from coterie.agents.models.damage import in_one_sentence
from coterie.agents.models.family import tokens_kept
from coterie.agents.models.locate import hub_snapshot, local_folder
from coterie.agents.models.number_format import number_format_of
from coterie.agents.models.papers import CONFIGS
from coterie.agents.models.process import quietly
from coterie.agents.models.spec import ModelSpec
from coterie.agents.sampling import copies
from coterie.agents.team.model_specs import model_spec
from coterie.agents.team.players import local_models
from coterie.agents.team.settings import AgentSettings
from coterie.algorithms.batching import capped_budget
from coterie.extras.ops.doctor.memory import card_bytes, optimiser_bytes
from coterie.extras.ops.footprint import Load, footprint
from coterie.extras.ops.plan_hours import EvaluationPlan, RolePlan, evaluations, hours, rows_of
from coterie.training.config.run_settings import MAX_NEW_TOKENS
from coterie.training.config.train_settings import TrainSettings
from coterie.training.warmup import NOBODY

When = Literal["always", "sampling", "learning"]
GIB = 2**30

PROMPT = 512
"""Tokens of a prompt if the settings have no limit."""
_PROGRAM = {"cpu": int(0.6 * GIB), "cuda": int(0.6 * GIB)}
"""Bytes of Python with torch and transformers, or of CUDA's context."""
_SPARE = 0.95
"""Usable share of a card: allocators leave gaps."""
_CPU_CACHE, _LOGITS = 2 << 30, 1 << 29
"""Limits of the sampler in this process, in bytes: :mod:`coterie.agents.sampling`."""
_PREFILL = 1 << 14
_GAPS = {"an adapter": 0.25, "16 bits": 0.5}
"""On a CPU, memory that malloc wastes between blocks, as shares of an update: small results beside
large ones, and blocks that 16 bits shrink to below 32 MiB."""
_KERNELS_16 = 450 << 20
"""On a CPU, bytes of the kernels that oneDNN compiles for products in 16 bits."""


@dataclass(frozen=True)
class MemoryPart:
    """One line of a device's plan."""

    what: str
    size: int
    """Bytes."""
    when: When = "always"


@dataclass(frozen=True)
class DevicePlan:
    """The memory plan of one device."""

    device: str
    card: int | None
    """Memory of the device in bytes; None if unknown."""
    parts: tuple[MemoryPart, ...]

    @property
    def most(self) -> int:
        """Peak memory in bytes, over sampling and learning."""
        always, *moments = (
            sum(part.size for part in self.parts if part.when == when)
            for when in ("always", "sampling", "learning")
        )
        return always + max(moments)

    @property
    def fits(self) -> bool:
        """Whether the peak fits. On a CPU no share is spared for gaps; the system can fill them."""
        spare = 1.0 if self.device == "cpu" else _SPARE
        return self.card is None or self.most <= spare * self.card


@dataclass(frozen=True)
class Plan:
    """The plan of a whole run."""

    devices: tuple[DevicePlan, ...]
    roles: Mapping[str, RolePlan]
    hours: float
    """Upper bound on the hours of sampling and learning; see
    :mod:`coterie.extras.ops.plan_hours`."""
    evaluation: EvaluationPlan | None = None
    """None without evaluations, or where only reading a problem set tells its size."""

    @property
    def fits(self) -> bool:
        return all(device.fits for device in self.devices)


def plan(settings: TrainSettings, card: float | None = None, prompt: int | None = None) -> Plan:
    """Plan a run from its settings, and from this machine if ``card`` is None.

    Args:
        settings: as parsed by ``train.py`` (:func:`coterie.cli.command_line.parse`).
        card: GiB of every GPU; device ``auto`` then means a GPU. None: use this machine's devices.
        prompt: tokens of the longest prompt; None: the limit of the settings, or 512.

    Raises:
        UserError: a ``config.json`` cannot be loaded, or transformers cannot build the model.
    """
    roles = {
        role: _role(settings, role, agent, card, prompt)
        for role, agent in local_models(settings.agents).items()
    }
    devices = tuple(_devices(settings, roles, card))
    cards = {device.device: device.card for device in devices}
    return Plan(devices, roles, hours(settings, roles, cards), evaluations(settings, roles, cards))


def config_of(spec: ModelSpec) -> Any:
    """The ``config.json`` of a model, as transformers reads it: from a folder, the hub's cache on
    this disk, the built-in configurations of models in papers, or the hub.

    Raises:
        UserError: it cannot be loaded.
    """
    from transformers import AutoConfig

    folder = local_folder(spec) or hub_snapshot(spec)
    if folder is None and spec.model in CONFIGS:
        with quietly():
            return AutoConfig.for_model(**CONFIGS[spec.model])
    name = spec.model if folder is None else str(folder)
    why = f"there is no plan without the config.json of {spec.model!r}, in a folder or on the hub"
    with quietly(), in_one_sentence(why):
        return AutoConfig.from_pretrained(
            name, revision=spec.revision, trust_remote_code=spec.trust_remote_code
        )


def _role(
    settings: TrainSettings, role: str, agent: AgentSettings, card: float | None, prompt: int | None
) -> RolePlan:
    import torch

    spec = model_spec(agent)
    device = place(agent.device, card)
    cpu = device == "cpu"
    devices = 1 if cpu else agent.learner_devices  # on a CPU, all shards are in the same memory
    owner = spec.model if spec.lora else role
    dtype = getattr(torch, number_format_of(dataclasses.replace(spec, device=device)).name)
    config = config_of(spec)
    most = getattr(config.get_text_config(), "max_position_embeddings", None) or 1 << 20
    prompt = prompt or settings.rollout.max_prompt_tokens or PROMPT
    answer = getattr(settings.env, "max_new_tokens", MAX_NEW_TOKENS)
    read = prompt + getattr(settings.env, "read_tokens", 0)
    longest = min(agent.context or most, read + answer)
    rows, starts = rows_of(settings, role)
    load = None
    if agent.trained:
        tokens = settings.learner.micro_batch_tokens
        if cpu and spec.recompute == "auto":
            keeps = tokens_kept(config.get_text_config(), dtype.itemsize)
            tokens = capped_budget(tokens, longest, keeps)
        load = Load(
            tokens,
            longest,
            min(answer, longest - 1),
            settings.algo.entropy_coefficient != 0,
            most=max(1, -(-rows // settings.learner.minibatches)),
            prompt=min(prompt, longest - 1),
            starts=starts,
        )
    memory = footprint(config, spec, load, dtype)
    if cpu:
        gaps = _GAPS["an adapter"] * (spec.lora is not None)
        gaps += _GAPS["16 bits"] * (dtype.itemsize == 2)
        memory = dataclasses.replace(memory, update=int((1 + gaps) * memory.update))
    device = device if devices == 1 else f"each of {devices} GPUs of {owner}"
    imitates = agent.trained and agent.warmup != NOBODY and settings.warmup.steps > 0
    return RolePlan(
        *(rows, prompt, longest, answer, memory, device, spec, agent.trained),
        devices=devices,
        bits=8 * dtype.itemsize,
        imitated=imitates * settings.warmup.problems_per_step,
    )


def place(device: str, card: float | None) -> str:
    """Resolve ``device``, for this machine or for one with a card of ``card`` GiB."""
    if device == "auto":
        import torch

        return "cuda:0" if card is not None or torch.cuda.is_available() else "cpu"
    return "cuda:0" if device == "cuda" else device


def _devices(
    settings: TrainSettings, roles: Mapping[str, RolePlan], card: float | None
) -> Iterator[DevicePlan]:
    engines = _engine_devices(settings, roles, card)
    for device in sorted({model.device for model in roles.values()} | set(engines.values())):
        size = card_bytes(device) if card is None or device == "cpu" else int(card * GIB)
        mine = {role: model for role, model in roles.items() if model.device == device}
        parts = [MemoryPart("Python, torch" if device == "cpu" else "CUDA", _program(device))]
        if device == "cpu" and any(model.bits == 16 for model in mine.values()):
            parts.append(MemoryPart("kernels of 16 bits", _KERNELS_16))
        parts += _models(settings, mine)
        apart = device.startswith("each of")
        if settings.run.engine != "local":
            parts += _engines(settings, roles, engines, device, size)
        elif not apart:
            parts += _sampler(mine, size, sum(part.size for part in parts))
        yield DevicePlan(device, size, tuple(parts))
        if apart:
            yield _engine_apart(settings, mine, size)


def _engine_apart(
    settings: TrainSettings, mine: Mapping[str, RolePlan], card: int | None
) -> DevicePlan:
    """The engine of roles with a sharded learner: it holds the whole model on a separate GPU."""
    frozen = {
        role: dataclasses.replace(model, trained=False, devices=1) for role, model in mine.items()
    }
    parts = [MemoryPart("CUDA", _program("cuda")), *_models(settings, frozen)]
    parts += _sampler(frozen, card, sum(part.size for part in parts))
    return DevicePlan(f"GPU of the engine of {' and '.join(mine)}", card, tuple(parts))


def _program(device: str) -> int:
    return _PROGRAM["cpu" if device == "cpu" else "cuda"]


def _models(settings: TrainSettings, mine: Mapping[str, RolePlan]) -> Iterator[MemoryPart]:
    """Memory of the roles' models in this process, and of their training."""
    bases: set[Any] = set()
    for role, model in mine.items():
        memory, lora = model.memory, model.spec.lora
        if settings.run.engine == "vllm" and not model.trained:
            continue  # Only its engine holds the weights.
        key = (model.spec.model, model.spec.revision, model.spec.dtype) if lora else role
        if key not in bases:
            yield MemoryPart(f"weights, {role}", memory.weights // model.devices)
        bases.add(key)
        if lora:
            yield MemoryPart(f"adapter, {role}", memory.trained // model.devices)
        if model.trained:
            moments = optimiser_bytes(memory.trained, settings.learner.moments)["moments"]
            yield MemoryPart(f"moments, {role}", moments // model.devices)
            new = lora is not None and lora.adapter is None
            copies = settings.algo.needs_reference and not new
            reads = settings.algo.distillation
            copies += bool(reads.beta and reads.reader == "average")
            if copies:
                yield MemoryPart(
                    f"earlier weights, {role}", copies * memory.trained // model.devices
                )
    learners = {role: model.memory for role, model in mine.items() if model.trained}
    if learners:
        # Learners take turns.
        most = max(learners, key=lambda role: learners[role].gradients + learners[role].update)
        memory = learners[most]
        recomputed = " (recomputed)" if memory.recomputes else ""
        ranks = mine[most].devices
        yield MemoryPart(f"gradients, {most}", memory.gradients // ranks, "learning")
        if ranks > 1:
            yield MemoryPart(f"gathered from all, {most}", _gathered(mine[most]), "learning")
        yield MemoryPart(f"activations and logits, {most}{recomputed}", memory.update, "learning")


def _gathered(model: RolePlan) -> int:
    """Bytes that a rank gathers unsharded: weights outside the blocks, two blocks, a gradient."""
    memory, text = model.memory, config_of(model.spec).get_text_config()
    size_all = memory.weights + memory.trained * (model.spec.lora is not None)
    size = size_all - memory.layers + 3 * memory.layers // text.num_hidden_layers
    if model.spec.lora:
        return size
    return size * _itemsize(model) * memory.parameters // memory.weights


def _sampler(mine: Mapping[str, RolePlan], card: int | None, taken: int) -> Iterator[MemoryPart]:
    """Memory that this process needs to sample from these models."""
    most, whose = 0, ""
    for role, model in mine.items():
        memory = model.memory
        copy = memory.parameters * model.bits // 8
        if memory.fused and copies(copy, None if model.device == "cpu" else card):
            # Learning makes the copy of a role that learns stale, and gets its memory.
            when: When = "sampling" if model.trained else "always"
            layers = memory.layers * copy // memory.weights
            yield MemoryPart(f"sampler's weights, {role}", layers, when)
        limit = _CPU_CACHE
        if model.device != "cpu" and card is not None:
            limit = max(card - taken, 0) // 4
        config = config_of(model.spec).get_text_config()
        rows = min(model.rows, max(1, _LOGITS // (16 * config.vocab_size)))
        cache = min(limit, rows * model.longest * memory.cache_per_token)
        read = min(_PREFILL, rows * model.prompt)
        wide = 4 * config.hidden_size + 3 * (getattr(config, "intermediate_size", None) or 0)
        size = cache + rows * 16 * config.vocab_size + read * wide * _itemsize(model)
        if size > most:
            most, whose = size, role
    if most:
        yield MemoryPart(f"cache and logits of a batch, {whose}", most, "sampling")


def _itemsize(model: RolePlan) -> int:
    auto = 4 if model.device == "cpu" else 2
    return {"auto": auto, "float32": 4}.get(model.spec.dtype, 2)


def _engine_devices(
    settings: TrainSettings, roles: Mapping[str, RolePlan], card: float | None
) -> dict[str, str]:
    """Role -> device of its engine; empty without engines."""
    if settings.run.engine != "vllm":
        return {}
    named = {role: settings.agents[role].engine_device for role in roles if role in settings.agents}
    return {
        role: model.device if named.get(role, "auto") == "auto" else place(named[role], card)
        for role, model in roles.items()
    }


def engine_keys(
    roles: Mapping[str, RolePlan], engines: Mapping[str, str]
) -> dict[tuple[Any, ...], list[str]]:
    """Engine key -> roles that it serves; frozen roles and adapters share a base."""
    served: dict[tuple[Any, ...], list[str]] = {}
    for role, device in engines.items():
        spec = roles[role].spec
        own = role if roles[role].trained and spec.lora is None else None
        key = (own, device, spec.model, spec.revision, spec.dtype, spec.context)
        served.setdefault(key, []).append(role)
    return served


def _engines(
    settings: TrainSettings,
    roles: Mapping[str, RolePlan],
    engines: Mapping[str, str],
    device: str,
    card: int | None,
) -> Iterator[MemoryPart]:
    """Memory that vLLM takes: its share of a GPU, or weights and cache on a CPU."""
    vllm, here = settings.vllm, []
    for key, names in engine_keys(roles, engines).items():
        if key[1] != device:
            continue
        model = roles[names[0]]
        weights = model.memory.parameters * _itemsize(model)
        room = int(vllm.gpu_memory * card) if card is not None else weights
        if device == "cpu":
            room = weights + vllm.cpu_cache_gb * GIB + _program("cpu")
        least = weights + model.longest * model.memory.cache_per_token
        here.append((", ".join(names), max(room, least)))
    when: When = "sampling" if vllm.sleep_level else "always"
    if vllm.time_share and here:
        here = [max(here, key=lambda pair: pair[1])]
    for names, size in here:
        yield MemoryPart(f"engine, {names}", size, when)
