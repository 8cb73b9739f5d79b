"""Plan the resources of a run before anything is loaded: bytes on each device, and hours.

:func:`plan` reads only the settings and each model's ``config.json``. It assumes the worst case:
the longest allowed prompt, and answers of maximum length.
"""

import dataclasses
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from coterie.agents.models.damage import in_one_sentence
from coterie.agents.models.family import tokens_kept
from coterie.agents.models.locate import hub_snapshot, local_folder
from coterie.agents.models.number_format import number_format_of
from coterie.agents.models.papers import CONFIGS
from coterie.agents.models.process import quietly
from coterie.agents.models.spec import ModelSpec
from coterie.agents.sampling import KEEPS_FROM, KEPT_BYTES, copies
from coterie.agents.team.model_specs import model_spec
from coterie.agents.team.players import local_models
from coterie.agents.team.settings import AgentSettings
from coterie.agents.team.teachers import only_teaches
from coterie.algorithms import Algorithm
from coterie.algorithms.batching import capped_budget
from coterie.extras.ops.footprint import Load, footprint
from coterie.extras.ops.machine import card_bytes
from coterie.extras.ops.plan_hours import EvaluationPlan, RolePlan, evaluations, hours, rows_of
from coterie.training.config.run_settings import MAX_NEW_TOKENS
from coterie.training.config.train_settings import TrainSettings
from coterie.training.hosts import lives_elsewhere
from coterie.training.warmup import NOBODY

When = Literal["always", "sampling", "learning"]
GIB = 2**30

PROMPT = 512
"""Tokens of a prompt if the settings have no limit."""
_PROGRAM = int(0.6 * GIB)
"""Bytes of Python with torch and transformers, or of CUDA's context."""
_SPARE = 0.95
"""Usable share of a card: allocators leave gaps."""
_MOMENTS = {"float32": 2.0, "8bit": 0.5}
"""Bytes of AdamW's moments per byte of weights; paged ones need not be on the device."""
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

    kind: str
    """What the memory is for, such as ``weights``."""
    whose: str
    """The roles; empty for the program's own memory."""
    size: int
    """Bytes."""
    when: When = "always"
    loaded: int = 0
    """Bytes of it that are there before the first step, once models and engines are loaded."""

    @property
    def what(self) -> str:
        """The line's text."""
        return f"{self.kind}, {self.whose}" if self.whose else self.kind

    @property
    def added(self) -> int:
        """Bytes that a training step adds."""
        return self.size - self.loaded


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
        return _peak((part.when, part.size) for part in self.parts)

    @property
    def added(self) -> int:
        """Peak in bytes beside what is loaded before the first step."""
        return _peak((part.when, part.added) for part in self.parts)

    @property
    def usable(self) -> int:
        """Bytes that the peak may take. On a CPU no share is spared for gaps; the system can fill
        them."""
        if self.card is None:
            return self.most
        return self.card if self.device == "cpu" else int(_SPARE * self.card)

    @property
    def fits(self) -> bool:
        """Whether the peak fits."""
        return self.most <= self.usable


def _peak(sizes: Iterable[tuple[When, int]]) -> int:
    total = {"always": 0, "sampling": 0, "learning": 0}
    for when, size in sizes:
        total[when] += size
    return total["always"] + max(total["sampling"], total["learning"])


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


def plan(
    settings: TrainSettings,
    card: float | None = None,
    prompt: int | None = None,
    *,
    measured: int | None = None,
) -> Plan:
    """Plan a run from its settings, and from this machine if ``card`` is None.

    Args:
        settings: as parsed by ``train.py`` (:func:`coterie.cli.command_line.parse`).
        card: GiB of every GPU; device ``auto`` then means a GPU. None: use this machine's devices.
        prompt: tokens of the longest prompt; None: the limit of the settings, or 512.
        measured: number of evaluation problems, if they have been read.

    Raises:
        UserError: a ``config.json`` cannot be loaded, or transformers cannot build the model.
    """
    roles = {
        role: _role(settings, role, agent, card, prompt)
        for role, agent in local_models(settings.players).items()
    }
    devices = tuple(_devices(settings, roles, card))
    cards = {device.device: device.card for device in devices}
    evaluation = evaluations(settings, roles, cards, measured)
    return Plan(devices, roles, hours(settings, roles, cards), evaluation)


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
    spec = model_spec(agent)
    device = _resolve(agent.device, card)
    cpu = device == "cpu"
    placed = dataclasses.replace(spec, device=device)
    learner, sampler, shards = _places(settings, role, agent, card)
    dtype = number_format_of(placed).dtype
    config = config_of(spec)
    text = config.get_text_config()
    prompt = prompt or settings.rollout.max_prompt_tokens or PROMPT
    answer = getattr(settings.env, "max_new_tokens", MAX_NEW_TOKENS)
    context = agent.context or getattr(text, "max_position_embeddings", None) or 1 << 20
    longest = min(context, prompt + getattr(settings.env, "read_tokens", 0) + answer)
    rows, starts = rows_of(settings, role)
    load = None
    if agent.trained:
        learning, algo = settings.learner_of(role), settings.algorithms.of(role)
        tokens = learning.micro_batch_tokens
        if cpu and spec.recompute == "auto":
            tokens = capped_budget(tokens, longest, tokens_kept(text, dtype.itemsize))
        load = Load(
            tokens,
            longest,
            min(answer, longest - 1),
            algo.entropy_coefficient != 0,
            most=max(1, -(-rows // learning.minibatches)),
            prompt=min(prompt, longest - 1),
            starts=starts,
        )
    memory = footprint(config, placed, load, dtype)
    if cpu:
        gaps = _GAPS["an adapter"] * (spec.lora is not None)
        gaps += _GAPS["16 bits"] * (dtype.itemsize == 2)
        memory = dataclasses.replace(memory, activations=int((1 + gaps) * memory.activations))
    imitates = agent.trained and agent.warmup != NOBODY and settings.warmup.steps > 0
    return RolePlan(
        rows=0 if only_teaches(role) else rows,
        prompt=prompt,
        longest=longest,
        answer=answer,
        memory=memory,
        config=text,
        device=learner,
        sampler=sampler,
        tensor_parallel=agent.tensor_parallel,
        spec=spec,
        trained=agent.trained,
        shards=shards,
        itemsize=dtype.itemsize,
        imitated=imitates * settings.warmup.problems_per_step,
        continues=getattr(settings.env, "continues", False),
    )


def _resolve(device: str, card: float | None) -> str:
    """Resolve ``auto`` for this machine, or for one with a card of ``card`` GiB."""
    if device == "auto":
        import torch

        return "cuda:0" if card is not None or torch.cuda.is_available() else "cpu"
    return "cuda:0" if device == "cuda" else device


def _places(
    settings: TrainSettings, role: str, agent: AgentSettings, card: float | None
) -> tuple[str, str, int]:
    """(device of the learner, device of the sampler, shards of the learner)."""
    device = _resolve(agent.device, card)
    sampler = device if agent.engine_device == "auto" else _resolve(agent.engine_device, card)
    if not lives_elsewhere(settings):
        return device, sampler, 1
    # Every process has GPUs of its own; on a CPU, all are in the same memory.
    owner, models = _owner(role, agent), local_models(settings.players)
    mates = [mate for name, mate in models.items() if _owner(name, mate) == owner]
    shards = max(mate.learner_devices for mate in mates) if device != "cpu" else 1
    replicas = max(mate.engine_replicas for mate in mates)
    learns = any(mate.trained for mate in mates)
    if sampler != "cpu":
        beside = learns and shards == 1 and replicas == 0 and device != "cpu"
        engine = "the engines" if replicas > 1 else "the engine"
        count = max(replicas, 1) * agent.tensor_parallel
        sampler = _gpus(1, owner) if beside else _gpus(count, f"{engine} of {owner}")
    if device != "cpu":
        device = _gpus(shards, owner)
    return device if learns else sampler, sampler, shards


def _owner(role: str, agent: AgentSettings) -> str:
    """Whose processes a role is in: adapters of one model share them."""
    spec = model_spec(agent)
    return spec.model if spec.lora else role


def _gpus(count: int, owner: str) -> str:
    return f"GPU of {owner}" if count == 1 else f"each of {count} GPUs of {owner}"


def _devices(
    settings: TrainSettings, roles: Mapping[str, RolePlan], card: float | None
) -> Iterator[DevicePlan]:
    vllm = settings.run.engine == "vllm"
    engines = list(_engines(roles)) if vllm else []
    names = {model.device for model in roles.values()}
    names |= {device for device, _ in engines} or {model.sampler for model in roles.values()}
    for device in sorted(names, key=str.lower):
        size = card_bytes(device) if card is None or device == "cpu" else int(card * GIB)
        here = {role: model for role, model in roles.items() if model.device == device}
        if vllm:
            served = [group for place, group in engines if place == device]
            parts = [*_program(device, here), *_learned(settings, here)]
            parts += _served(settings, roles, served, device, size)
        else:
            # A sampler apart from the learner holds the whole model.
            sampled = {
                role: model if role in here else dataclasses.replace(model, trained=False, shards=1)
                for role, model in roles.items()
                if model.sampler == device
            }
            parts = [*_program(device, here), *_learned(settings, here | sampled)]
            parts += _sampled(sampled, size, sum(part.size for part in parts))
        yield DevicePlan(device, size, tuple(parts))


def _program(device: str, here: Mapping[str, RolePlan]) -> Iterator[MemoryPart]:
    """Memory of Python, torch and CUDA."""
    kind = "Python, torch" if device == "cpu" else "CUDA"
    yield MemoryPart(kind, "", _PROGRAM, loaded=_PROGRAM)
    if device == "cpu" and any(model.itemsize == 2 for model in here.values()):
        yield MemoryPart("kernels of 16 bits", "", _KERNELS_16)


def _learned(settings: TrainSettings, here: Mapping[str, RolePlan]) -> Iterator[MemoryPart]:
    """Weights of the roles' models in this process, and what their training adds."""
    bases: set[Any] = set()
    for role, model in here.items():
        memory, lora, shards = model.memory, model.spec.lora, model.shards
        if settings.run.engine == "vllm" and not model.trained:
            continue  # Only its engine holds the weights.
        base = _base(role, model)
        if base not in bases:
            size = memory.weights // shards
            yield MemoryPart("weights", role, size, loaded=size)
        bases.add(base)
        if lora:
            size = memory.trained // shards
            yield MemoryPart("adapter", role, size, loaded=size)
        if model.trained:
            moments = int(_MOMENTS.get(settings.learner_of(role).moments, 0.0) * memory.trained)
            yield MemoryPart("moments", role, moments // shards)
            if earlier := _earlier_copies(settings.algorithms.of(role), model):
                size = earlier * memory.trained // shards
                yield MemoryPart("earlier weights", role, size, loaded=size)
    if learners := [role for role, model in here.items() if model.trained]:
        # Learners take turns.
        role = max(learners, key=lambda role: here[role].memory.learning)
        memory, shards = here[role].memory, here[role].shards
        yield MemoryPart("gradients", role, memory.trained // shards, "learning")
        if shards > 1:
            yield MemoryPart("gathered from all", role, _gathered(here[role]), "learning")
        kind = "activations and logits"
        whose = f"{role} (recomputed)" if memory.recomputes else role
        yield MemoryPart(kind, whose, memory.activations, "learning")


def _base(role: str, model: RolePlan) -> Any:
    """What is equal for roles that share the base model's weights."""
    spec = model.spec
    if spec.lora is None and model.trained:
        return role
    return spec.lora is None, spec.model, spec.revision, spec.dtype


def _earlier_copies(algorithm: Algorithm, model: RolePlan) -> int:
    """Copies of earlier weights: a reference, and a reader that averages."""
    lora, distillation = model.spec.lora, algorithm.distillation
    # Without a new adapter, the base has the weights from before training.
    is_new = lora is not None and lora.adapter is None
    reference = algorithm.needs_reference and not is_new
    return reference + distillation.averages


def _gathered(model: RolePlan) -> int:
    """Bytes that a rank gathers unsharded: weights outside the blocks, two blocks, a gradient."""
    memory = model.memory
    size = memory.weights + memory.trained * (model.spec.lora is not None)
    size += 3 * memory.layers // model.config.num_hidden_layers - memory.layers
    if model.spec.lora:
        return size
    return size * model.itemsize * memory.parameters // memory.weights


def _sampled(here: Mapping[str, RolePlan], card: int | None, taken: int) -> Iterator[MemoryPart]:
    """Memory that this process needs to sample from these models."""
    batches: dict[str, int] = {}
    heads: set[Any] = set()
    for role, model in here.items():
        memory, config = model.memory, model.config
        copy = memory.weights if memory.int8 else memory.parameters * model.itemsize
        # Experts and large models have no rows in a step, but are sampled.
        logits = 16 * config.vocab_size
        rows = min(model.rows, max(1, _LOGITS // logits))
        contexts = rows * model.longest * memory.cache_per_token
        plays = memory.fused and not only_teaches(role)
        if plays and copies(copy, None if model.device == "cpu" else card):
            # Learning makes the copy of a role that learns stale, and gets its memory.
            when: When = "sampling" if model.trained else "always"
            head = 0 if (base := _base(role, model)) in heads else memory.head
            heads.add(base)
            yield MemoryPart("sampler's weights", role, memory.copied + head, when)
            if contexts and model.continues and copy >= KEEPS_FROM:
                kept = min(KEPT_BYTES, contexts)
                yield MemoryPart("contexts of answers", role, kept, "sampling")
        limit = _CPU_CACHE
        if model.device != "cpu" and card is not None:
            limit = max(card - taken, 0) // 4
        cache = min(limit, contexts)
        read = min(_PREFILL, rows * model.prompt)
        width = 4 * config.hidden_size + 3 * (getattr(config, "intermediate_size", None) or 0)
        batches[role] = cache + rows * logits + read * width * model.itemsize
    role = max(batches, key=batches.__getitem__, default="")
    if batches.get(role):
        yield MemoryPart("cache and logits of a batch", role, batches[role], "sampling")


def _engines(roles: Mapping[str, RolePlan]) -> Iterator[tuple[str, list[str]]]:
    """(device, roles) of each engine, on each of its GPUs; frozen roles and adapters share a
    base."""
    served: dict[tuple[Any, ...], list[str]] = {}
    for role, model in roles.items():
        spec = model.spec
        own = role if model.trained and spec.lora is None else None
        same = (spec.model, spec.revision, spec.dtype, spec.context)
        served.setdefault((own, model.sampler, model.tensor_parallel, *same), []).append(role)
    for (_, device, count, *_), names in served.items():
        kind, _, first = device.partition(":")
        if kind == "cuda":
            yield from ((f"cuda:{int(first) + number}", names) for number in range(count))
        else:
            yield device, names


def _served(
    settings: TrainSettings,
    roles: Mapping[str, RolePlan],
    engines: Sequence[Sequence[str]],
    device: str,
    card: int | None,
) -> Iterator[MemoryPart]:
    """Memory that vLLM takes: its share of a GPU, or weights and cache on a CPU."""
    vllm = settings.vllm
    when: When = "sampling" if vllm.sleep_level else "always"
    parts = []
    for names in engines:
        model = roles[names[0]]
        weights = model.memory.parameters * model.itemsize // model.tensor_parallel
        cache = model.longest * model.memory.cache_per_token // model.tensor_parallel
        if device == "cpu":
            # The cache is allocated as the engine samples.
            loaded = weights + _PROGRAM
            size = max(loaded + vllm.cpu_cache_gb * GIB, weights + cache)
        else:
            share = int(vllm.gpu_memory * card) if card is not None else weights
            size = loaded = max(share, weights + cache)
        parts.append(MemoryPart("engine", ", ".join(names), size, when, loaded))
    if vllm.time_share and parts:
        parts = [max(parts, key=lambda part: part.size)]
    yield from parts
