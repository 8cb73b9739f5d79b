"""What a placement makes of a case: engines, learners and weights, by the program's own plan and
placement and the speeds of :mod:`scale.constants`."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np

from coterie.agents.engine.settings import VllmSettings
from coterie.algorithms.settings import LearnerSettings
from coterie.cluster.actor import Actor, has_room
from coterie.cluster.bases import cores_and_gpus, plan_bases
from coterie.papers.models import CONFIGS
from coterie.teams.settings import AgentSettings
from coterie.training.command_line import parse
from coterie.training.plan import plan
from coterie.training.plan_hours import RolePlan
from scale.constants import value
from scale.simulation import EngineKind

MODELS = {"4B": "Qwen/Qwen3-4B-Instruct-2507", "32B": "Qwen/QwQ-32B"}
TURNS = (2, 1)
"""How often every policy is asked in each turn: core-teaching's defaults."""
_ENGINE_MEMORY = 0.9
"""Share of a GPU's memory for an engine that has it alone."""


@dataclass(frozen=True)
class Case:
    """What is asked for."""

    size: str
    tuning: str
    policies: int
    gpus: int
    shared: bool = False
    """Engines and learners take turns on the same GPUs; else each has its own."""
    episodes: int = 512
    route: str = "program"
    alike: bool = False
    """Whether all prompts begin with the same long instruction."""


@dataclass(frozen=True)
class Split:
    """GPUs of each base."""

    learner: int
    replicas: int
    spans: int
    """GPUs of one engine (tensor parallelism)."""


@dataclass(frozen=True)
class Roofline:
    """An engine on GPUs: every iteration reads the weights, or computes as long; and reads what its
    rows have in the cache (Williams et al., doi:10.1145/1498765.1498785)."""

    parameters: float
    cache: float
    """Bytes of a token's keys and values."""
    layers: int
    spans: int = 1

    def prefill_s(self, tokens: int) -> float:
        return 2 * self.parameters * tokens / (value("engine_peak") * value("peak") * self.spans)

    def decode_s(self, rows: int, context: float) -> float:
        bandwidth = value("engine_bandwidth") * value("bandwidth") * self.spans
        weights = max(2 * self.parameters / bandwidth, self.prefill_s(rows))
        hops = 2 * self.layers * value("hop_s") * (self.spans > 1)
        return value("iteration_s") + hops + weights + self.cache * context / bandwidth


@lru_cache
def planned(size: str, tuning: str, devices: int) -> tuple[RolePlan, bool, float]:
    """(the model of one policy, whether its learner fits on each of so many GPUs, bytes that it
    keeps there)."""
    said = ["--env", "sd-e2", "--roles", "alice",
            "--env.max-new-tokens", str(int(value("longest"))),
            "--agents.alice.model", MODELS[size], "--agents.alice.tuning", tuning,
            "--agents.alice.learner-devices", str(devices)]  # fmt: skip
    found = plan(parse(said), value("memory") / 2**30, int(value("prompt") + value("hint")))
    ours = next(d for d in found.devices if devices == 1 or d.device.startswith("each of"))
    # Without the sampler of this program, in whose place there are engines.
    parts = [part for part in ours.parts if part.when != "sampling" and "sampler" not in part.what]
    alone = replace(ours, parts=tuple(parts))
    kept = sum(part.size for part in parts if part.when == "always")
    return found.roles["alice"], alone.fits, kept


def bases_of(case: Case) -> int:
    """Adapters share one base; full weights have one each."""
    return 1 if case.tuning == "lora" else case.policies


def holds(case: Case, split: Split) -> bool:
    """Whether the program would place it so, by its own reckoning."""
    role, fits, kept = planned(case.size, case.tuning, split.learner)
    room = _ENGINE_MEMORY * value("memory") * split.spans - 2 * role.found.parameters
    least = (value("longest") + value("prompt") + value("hint")) * role.found.cache_per_token
    if not fits or room - case.shared * kept * split.spans < least:
        return False
    if case.shared:
        return split.replicas * split.spans <= split.learner <= case.gpus // bases_of(case)
    nodes = [{"CPU": math.inf, "GPU": 8.0}] * (case.gpus // 8)
    return has_room(placed(case, split)[1], {"CPU": math.inf, "GPU": case.gpus}, nodes)


def placed(case: Case, split: Split) -> tuple[dict[str, list[str]], dict[str, dict[str, float]]]:
    """(base -> names of its engines, process -> what it needs), by the program."""
    settings = AgentSettings(
        MODELS[case.size], tuning=case.tuning,  # type: ignore[arg-type]
        engine_replicas=split.replicas, learner_devices=split.learner, tensor_parallel=split.spans,
    )  # fmt: skip
    models = {f"policy{i}": settings for i in range(case.policies)}
    found = plan_bases(models, set(models), None, Actor, lambda: "", vllm=VllmSettings(), gpus=True)
    needs, engines = {}, {}
    for base in found:
        engines[base.roles[0]] = [one.name for one in base.engines]
        for actor in base.actors:
            for one in getattr(actor, "ranks", None) or [actor]:
                needs[one.name] = cores_and_gpus(one, cpus=1.0, gpus=True)
    return engines, needs


def learner_s(role: RolePlan, full: bool, rows: Sequence[int], devices: int) -> float:
    """Seconds of one update of one policy: micro-batches as the learner forms them, one on each
    rank at a time, and weights gathered for each (FSDP2, arXiv:2304.11277) while it computes."""
    budget = min(LearnerSettings().micro_batch_tokens, -(-sum(rows) // devices))
    groups, room = [], 0
    for length in sorted(rows, reverse=True):
        if not groups or length > room:
            groups.append(0)
            room = budget
        groups[-1] += length
        room -= length
    found = role.found
    each = 2 + 2 + 2 * full + 2 * found.recomputes  # as in coterie.training.plan_hours
    # Weights of 16 bits before and after, gradients of 32 bits.
    moved = (2 * 2 * found.parameters + found.trained) * (devices > 1)
    seconds = 0.0
    for start in range(0, len(groups), devices):
        compute = max(groups[start : start + devices]) * each * found.parameters
        seconds += max(compute / (value("mfu") * value("peak")), moved / link(devices))
    return seconds


def link(devices: int) -> float:
    """Bytes a second of a collective: within a node by NVLink, beyond by all of its cards."""
    return value("links") * (value("nvlink") if devices <= 8 else 8 * value("network"))


def weights_s(case: Case, role: RolePlan, split: Split, *, nccl: bool = False) -> float:
    """Seconds from the last update to the first request: from the learner's node to all others,
    of which each that has them passes them on; on shared GPUs, from place to place, and the
    engine's weights leave for main memory and come back (sleep level 1)."""
    weights = 2 * role.found.parameters
    if nccl:
        return weights / link(9)
    if case.shared:
        return weights * (case.tuning == "full") / link(9) + 2 * weights / split.spans / value(
            "host"
        )
    size = role.found.trained * (case.policies if case.tuning == "lora" else 1)
    nodes = max(1, split.replicas * split.spans // 8)
    return size / value("store") * (1 + math.ceil(math.log2(nodes + 1)))


def splits(case: Case) -> Iterator[Split]:
    """What could be tried: powers of two, and what is left."""
    each = case.gpus // bases_of(case)
    powers = [2**i for i in range(10) if 2**i <= each]
    for spans in (1, 2, 4, 8):
        if case.shared:
            if each >= spans:
                yield Split(each, each // spans, spans)
            continue
        for learner in [*powers, each // 4 * 3, each // 2 + each // 8]:
            if 0 < learner < each and (each - learner) // spans:
                yield Split(learner, (each - learner) // spans, spans)


def kind_of(case: Case, split: Split) -> EngineKind:
    """Engines of a split."""
    role, _, kept = planned(case.size, case.tuning, split.learner)
    found = role.found
    room = _ENGINE_MEMORY * value("memory") * split.spans - 2 * found.parameters
    room -= kept * split.spans * case.shared
    layers = CONFIGS[MODELS[case.size]]["num_hidden_layers"]
    speed = Roofline(found.parameters, found.cache_per_token, layers, split.spans)
    return EngineKind(speed, room / found.cache_per_token, rows=VllmSettings().max_sequences)


def update_s(case: Case, written: Any, split: Split) -> float:
    """Of all policies: those on one base one after another, bases side by side."""
    role = planned(case.size, case.tuning, split.learner)[0]
    full = case.tuning == "full"
    read = np.repeat([value("prompt"), value("prompt") + value("hint")], TURNS).astype(int)
    times = [
        learner_s(role, full, (written[:, policy] + read).ravel().tolist(), split.learner)
        for policy in range(case.policies)
    ]
    return max(times) if full else sum(times)


def why_not(case: Case) -> str:
    """What is said of a case that cannot be placed."""
    bases = bases_of(case)
    for learner in (2**i for i in range(11)):
        fits = [
            spans
            for spans in (1, 2, 4, 8)
            if holds(replace(case, gpus=10**6), Split(learner, 1, spans))
        ]
        if fits:
            return f"needs {bases * (learner + fits[0] * (not case.shared))} GPUs"
    return "cannot be placed"
