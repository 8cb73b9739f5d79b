"""One worker process of a cluster: a base model, the roles that share it, and their learners.

A worker is a plain class: Ray wraps it in an actor (:mod:`coterie.extras.cluster.actor`), and
tests call it directly.
"""

import hashlib
import os
import pickle
import sys
import tempfile
from collections.abc import Mapping, Set
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, cast

import torch
from torch import Tensor

from coterie.agents.models.checksums import sha256_of
from coterie.agents.models.shards import gather, join_ranks
from coterie.agents.models.threads import fix_threads
from coterie.agents.sampling.policy import LocalPolicy
from coterie.agents.team.backend import Backend, LearningSetup
from coterie.agents.team.local_backend import LocalBackend
from coterie.agents.team.reading import read_rows
from coterie.agents.team.settings import AgentSettings
from coterie.agents.team.trained_role import TrainedRole
from coterie.agents.team.vllm_backend import VllmBackend
from coterie.agents.vllm.settings import VllmSettings
from coterie.datatypes import TokenCodec

Stamp = tuple[int, int]
"""Changes whenever a role's weights change; the first number counts updates."""
Files = dict[str, bytes]
"""Path below a folder, with slashes -> content."""
Weights = tuple[Mapping[str, Tensor], int]
"""(name -> weight, number of updates so far)."""


@dataclass(frozen=True)
class About:
    """What the driver knows about a role's model."""

    codec: TokenCodec
    context: int
    vocab_size: int
    stamp: Stamp


@dataclass(frozen=True)
class Rank:
    """The place of one process in a group of ranks that learn together."""

    number: int = 0
    size: int = 1
    meeting: str = ""
    """See :func:`coterie.agents.models.shards.join_ranks`."""


class Worker:
    """Loads roles that share a process; trains those that learn and samples for all."""

    def __init__(
        self,
        name: str,
        models: Mapping[str, AgentSettings],
        learns: Set[str],
        learning: LearningSetup | None,
        *,
        seed: int,
        threads: int,
        rank: Rank = Rank(),
        vllm: VllmSettings | None = None,
    ) -> None:
        """``learning``: None if the learner is another process, which sends the weights.
        ``vllm``: settings of the vLLM engines, for
        :class:`coterie.extras.cluster.engine_worker.EngineWorker`."""
        fix_threads(threads)
        self._name = name
        self.rank = rank
        self.backend: Backend = LocalBackend() if vllm is None else VllmBackend(vllm)
        self._load = partial(self.backend.load, models, learns, learning, seed)

    def __repr__(self) -> str:
        return self._name

    def code(self) -> str:
        """A digest of all code files in this process; see :func:`code_mark`."""
        return code_mark()

    def where(self) -> tuple[str, str, list[str]]:
        """(node, address, GPUs) of this process."""
        ray: Any = sys.modules.get("ray")
        if ray is None or not ray.is_initialized():
            seen = os.environ.get("CUDA_VISIBLE_DEVICES", "")
            return "here", f"process {os.getpid()}", seen.split(",") if seen else []
        context = ray.get_runtime_context()
        gpus = context.get_accelerator_ids().get("GPU", [])
        return context.get_node_id(), ray.util.get_node_ip_address(), gpus

    def load(self) -> dict[str, About]:
        """Load the models, together with the other ranks; return a description of each role."""
        if self.rank.size > 1:
            join_ranks(self.rank.number, self.rank.size, self.rank.meeting)
        self.models = self._load()
        return {
            role: About(
                loaded.codec, loaded.handle.context, loaded.handle.vocab_size, loaded.handle.stamp
            )
            for role, loaded in self.models.loaded.items()
        }

    def sample(self, role: str, requests: bytes, version: int) -> bytes:
        """Sample a completion for each (agent, request) pair; input and output are pickled.

        Args:
            role: the role that answers.
            requests: a pickled list of (agent,
                :class:`coterie.agents.sampling.SamplingRequest`).
            version: number of updates that the weights must have.

        Raises:
            RuntimeError: the weights here do not have this ``version``.
        """
        policy = cast(LocalPolicy, self.models.policies[role])
        handle = self.models.loaded[role].handle
        if version != handle.version:
            raise RuntimeError(
                f"{role} has version {handle.version} here, but version {version} was requested"
            )
        return pickle.dumps(policy.answer(pickle.loads(requests)))

    def rest(self) -> None:
        """Free sampling memory, and forget contexts, which new weights make stale."""
        cast(LocalBackend, self.backend).free()

    def score(self, role: str, arguments: bytes) -> bytes:
        """Return a frozen model's probabilities of the tokens of rows; all is pickled.

        Args:
            role: the name of the model.
            arguments: pickled rows, and a :class:`coterie.agents.team.reading.ReadRequest`.
        """
        handle = self.models.loaded[role].handle
        return pickle.dumps(read_rows(handle, *pickle.loads(arguments)))

    def learn(self, role: str, verb: str, arguments: bytes) -> tuple[Any, Stamp]:
        """Call a method of :class:`coterie.agents.team.trained_role.TrainedRole`; return its result
        and the new stamp. The arguments are pickled, because arrays from Ray are read-only."""
        trained = cast(TrainedRole, self.models.trained[role])
        result = getattr(trained, verb)(*pickle.loads(arguments))
        return result, trained.loaded.handle.stamp

    def update(self, role: str, arguments: bytes) -> tuple[Any, Stamp]:
        """Like :meth:`learn`; also return the bonus on each row's advantages, by row index.

        Args:
            role: the role that learns.
            arguments: pickled rows, advantages and turn bonuses.
        """
        trained = cast(TrainedRole, self.models.trained[role])
        metrics = trained.update(*pickle.loads(arguments))
        return (metrics, trained.token_bonus), trained.loaded.handle.stamp

    def seen(self, path: Path) -> bytes:
        """The content of a file; empty if it does not exist."""
        return path.read_bytes() if path.is_file() else b""

    def write(self, role: str, verb: str, folder: Path | None) -> tuple[Any, Files]:
        """Call ``save`` or ``export``; return its result and the files that it wrote. With
        ``folder``, the files stay there instead.

        Args:
            role: the role.
            verb: ``save`` or ``export``.
            folder: a folder that this process sees; None: send the files back.

        Raises:
            FileNotFoundError: this process does not see that folder.
        """
        trained = cast(TrainedRole, self.models.trained[role])
        if folder is not None:
            # A folder created here would not be the one that the main process uses.
            return getattr(trained, verb)(folder.resolve(strict=True)), {}
        with tempfile.TemporaryDirectory(prefix="coterie-") as temporary:
            result = getattr(trained, verb)(Path(temporary))
            return result, files_below(Path(temporary))

    def read(self, role: str, files: Files | Path, plain: dict[str, Any]) -> Stamp:
        """Restore a checkpoint that :meth:`write` saved: its files, or the folder with them.

        Args:
            role: the role.
            files: the checkpoint: its files, or its folder.
            plain: the result of ``save``.
        """
        trained = cast(TrainedRole, self.models.trained[role])
        if isinstance(files, Path):
            trained.load(files, plain)
        else:
            with tempfile.TemporaryDirectory(prefix="coterie-") as folder:
                write_files(files, Path(folder))
                trained.load(Path(folder), plain)
        return trained.loaded.handle.stamp

    def weights(self, role: str) -> Weights:
        """The role's trained weights on the CPU; of several ranks, only the first has them."""
        handle = self.models.loaded[role].handle
        tensors = {name: weight.cpu() for name, weight in gather(handle.parameters()).items()}
        return tensors, handle.version

    def take(self, role: str, weights: Weights) -> None:
        """Sample with these weights from now on."""
        self.models.loaded[role].handle.take(*weights)


def files_below(folder: Path) -> Files:
    """All files in ``folder``, and in folders of it."""
    paths = (path for path in folder.rglob("*") if path.is_file())
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in paths}


def write_files(files: Files, folder: Path) -> None:
    """The inverse of :func:`files_below`; ``folder`` exists."""
    for name, content in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)


def code_mark() -> str:
    """A digest of every Python file of the package and of the torch version."""
    import coterie

    # Some folders of a checkout are symbolic links, which rglob does not follow.
    folders = os.walk(Path(coterie.__file__).parent, followlinks=True)
    paths = sorted(Path(at, name) for at, _, names in folders for name in names)
    digests = sha256_of(path for path in paths if path.suffix == ".py")
    return hashlib.sha256(f"{torch.__version__} {digests}".encode()).hexdigest()
