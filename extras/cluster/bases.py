"""Plan the processes of each base model, and route requests to its engines.

A request goes to an engine that has its prompt's prefix cached, unless that engine is overloaded
(consistent hashing with bounded loads, arXiv:1608.01350).
"""

import hashlib
import threading
from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from functools import cached_property
from math import ceil
from typing import Any

import numpy.typing as npt

from coterie.agents.models.loading import base_key
from coterie.agents.sampling import SamplingRequest
from coterie.agents.team.backend import LearningSetup
from coterie.agents.team.model_specs import model_spec
from coterie.agents.team.settings import AgentSettings
from coterie.agents.vllm.settings import VllmSettings
from coterie.extras.cluster.actor import Actor
from coterie.extras.cluster.engine_worker import EngineWorker
from coterie.extras.cluster.group import Group
from coterie.extras.cluster.sender import Sender
from coterie.extras.cluster.transfer import Transfer
from coterie.extras.cluster.worker import Worker

PREFIX = 256
"""Prompt tokens that decide the engine: requests with the same prefix share its cached work."""
SPARE = 1.25
"""An engine takes no more requests above this multiple of its fair share."""
FEW = 8
"""An engine always takes this many requests: they take hardly longer than a single request."""


@dataclass
class Base:
    """One model, the roles on it and their processes."""

    roles: Sequence[str]
    learner: Actor | None
    engines: Sequence[Actor]
    """Processes that sample, at least one; the learner if there is no other."""
    sent: dict[str, Any] = field(default_factory=dict)
    """Role -> the weights of separate engines: a reference, or the version if NCCL sends them."""
    done: list[tuple[Any, ...]] = field(default_factory=list)
    """The learner's calls since its last checkpoint, in order; a replacement repeats them."""
    transfer: Transfer | None = None
    """Sends weights from GPU to GPU; None: they go through main memory."""
    lock: Any = field(default_factory=threading.RLock)
    """Held while a process is replaced, because bases learn in parallel."""

    @cached_property
    def separate_engines(self) -> list[Actor]:
        """Engines other than the learner, which sends them its weights."""
        return [engine for engine in self.engines if engine is not self.learner]

    @property
    def sampling_learner(self) -> Actor | None:
        """The learner, if its process also samples."""
        return self.learner if self.learner in self.engines else None

    @property
    def actors(self) -> list[Actor]:
        """All actors, the learner first."""
        return ([self.learner] if self.learner else []) + self.separate_engines

    def engine_for(self, request: SamplingRequest, load: Mapping[str, int]) -> Actor:
        """The engine for ``request``, given the requests in flight at each."""
        name = choose(request.tokens, [engine.name for engine in self.engines], load)
        return next(engine for engine in self.engines if engine.name == name)


def plan_bases(
    models: Mapping[str, AgentSettings],
    learns: Set[str],
    learning: LearningSetup | None,
    kind: type[Actor],
    meeting: Callable[[], str],
    *,
    vllm: VllmSettings | None,
    gpus: bool,
    **more: Any,
) -> list[Base]:
    """Plan every base and its processes, without starting any.

    Args:
        models: role -> settings.
        learns: the roles that learn.
        learning: settings of the learners.
        kind: class of the processes.
        meeting: see :class:`coterie.extras.cluster.group.Group`.
        vllm: settings of the vLLM engines; None: the built-in sampler.
        gpus: whether there are GPUs.
        more: further arguments of every :class:`Worker`.
    """
    specs = {role: model_spec(agent) for role, agent in models.items()}
    groups: dict[Any, list[str]] = {}
    for role, spec in specs.items():
        groups.setdefault(base_key(spec) if spec.lora else role, []).append(role)
    served = (EngineWorker, more | {"vllm": vllm}) if vllm else (Worker, more)
    bases = []
    for roles in groups.values():
        agents, name = {role: models[role] for role in roles}, " and ".join(roles)
        trained = learns & set(roles)
        ranks = max((models[role].learner_devices for role in trained), default=0)
        replicas = max(agent.engine_replicas for agent in agents.values()) or int(ranks != 1)
        sends = replicas > 0 and vllm is not None and vllm.weights == "transfer"
        sends = sends and bool(trained) and specs[roles[0]].lora is None
        worker, options = (Sender if sends else Worker, more) if replicas else served
        learners = [
            kind(f"learner{number} of {name}", roles, (agents, trained, learning), options, worker)
            for number in ([f" {i + 1}" for i in range(ranks)] if ranks > 1 else [""] * ranks)
        ]
        learner = learners[0] if learners else None
        if ranks > 1:
            learner = Group(f"learner of {name}", roles, ranks=learners, meeting=meeting)
        if vllm:
            engine_agents = {role: _separate_engine(agent, gpus) for role, agent in agents.items()}
        else:
            engine_agents = agents
        worker, options = served
        engines: list[Actor] = [
            kind(
                f"engine {i + 1} of {name}", roles, (engine_agents, trained, None), options, worker
            )
            for i in range(replicas)
        ]
        bases.append(base := Base(roles, learner, engines or learners))
        if sends and learner is not None:
            base.transfer = Transfer(roles[0], learner, agents[roles[0]].tensor_parallel)
    return bases


def choose(prompt: npt.NDArray[Any], engines: Sequence[str], load: Mapping[str, int]) -> str:
    """Choose the engine for a prompt.

    Rendezvous hashing ranks the engines: the same prefix always gives the same ranking, whatever
    other engines exist. The request goes to the first engine with fewer requests than ``SPARE``
    times its fair share, or than ``FEW``.

    Args:
        prompt: token ids, shape (T,).
        engines: engine names, at least one.
        load: engine name -> requests in flight; 0 if the name is missing.
    """
    total = 1 + sum(load.get(name, 0) for name in engines)
    most = max(FEW, ceil(SPARE * total / len(engines)))
    free = [name for name in engines if load.get(name, 0) < most]
    prefix = hashlib.blake2b(prompt[:PREFIX].tobytes(), digest_size=16).digest()
    return max(free, key=lambda name: _weight(prefix, name))


def _weight(prefix: bytes, name: str) -> bytes:
    # Not a CRC: CRCs are linear and would send half of all prompts to one of three engines.
    return hashlib.blake2b(name.encode(), digest_size=8, key=prefix).digest()


def cores_and_gpus(actor: Actor, *, cpus: float, gpus: bool) -> dict[str, float]:
    """Resources of a process: CPU cores, and a GPU if it uses one, or all that its engine spans.

    Args:
        actor: the process.
        cpus: CPU cores of every process.
        gpus: whether there are GPUs.
    """
    agents: Mapping[str, AgentSettings] = actor.arguments[0]
    count = 0
    for agent in agents.values():
        count = max(count, int(_on_gpu(agent, gpus)))
        if actor.worker is EngineWorker and _answers_on_gpu(agent, gpus):
            count = max(count, agent.tensor_parallel)
    return {"CPU": cpus} | ({"GPU": float(count)} if count else {})


def _on_gpu(settings: AgentSettings, gpus: bool) -> bool:
    return settings.device == "cuda" or (settings.device == "auto" and gpus)


def _answers_on_gpu(settings: AgentSettings, gpus: bool) -> bool:
    """Whether the role's vLLM engine runs on a GPU."""
    if settings.engine_device == "auto":
        return _on_gpu(settings, gpus) or settings.tensor_parallel > 1
    return settings.engine_device == "cuda"


def _separate_engine(settings: AgentSettings, gpus: bool) -> AgentSettings:
    """Settings of an engine process: received weights in main memory, vLLM on the GPU if any."""
    if not _answers_on_gpu(settings, gpus):
        return replace(settings, device="cpu", engine_device="cpu")
    dtype = "bfloat16" if settings.dtype == "auto" else settings.dtype
    return replace(settings, device="cpu", engine_device="cuda", dtype=dtype)
