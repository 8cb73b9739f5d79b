"""How a role's new weights reach its engine.

- Adapters: each version is written to a new folder, which the engine loads
  (:class:`AdapterVersions`).
- Full weights through files: :meth:`EngineCheckpoints.write`, then ``Engine.reload``.
- Full weights on a shared GPU: by handles to memory (``Engine.transfer``,
  :mod:`coterie.agents.vllm.transfer`).
- Full weights from a learner on other GPUs: by NCCL (``Engine.receive``, in the extra ``cluster``).

:func:`coterie.agents.vllm.fleet.transfer_of` chooses among the last three.
"""

import shutil
from collections.abc import AsyncIterator, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Protocol

import torch

from coterie.agents.models.handle import ModelHandle
from coterie.agents.models.stored import StoredWeights
from coterie.agents.vllm.engine import Adapter, Engine
from coterie.agents.vllm.export import export_checkpoint, widen_adapter


class Versions(Protocol):
    """The weights of a role in its engine."""

    async def publish(self) -> None:
        """Use the handle's current weights for all later requests."""
        ...

    def request(self) -> AbstractAsyncContextManager[Adapter | None]:
        """Return the adapter for a request, if any; it stays loaded inside the block."""
        ...


@asynccontextmanager
async def no_adapter() -> AsyncIterator[None]:
    """Implement :meth:`Versions.request` for the engine's own weights."""
    yield None


class FrozenWeights:
    """Implements :class:`Versions` for an engine's own weights, which never change, or which
    another process sends (:meth:`coterie.agents.vllm.engine.Engine.receive`)."""

    request = staticmethod(no_adapter)

    async def publish(self) -> None:
        """Do nothing."""


class FullWeights:
    """Implements :class:`Versions` for full weights, whose engine has no other role. The engine
    must be idle when they are published."""

    request = staticmethod(no_adapter)

    def __init__(self, engine: Engine, checkpoints: "EngineCheckpoints", *, transfer: bool) -> None:
        """``transfer``: send handles to GPU memory instead of files."""
        self._engine, self._checkpoints, self._transfer = engine, checkpoints, transfer

    async def publish(self) -> None:
        """See :meth:`Versions.publish`."""
        if self._transfer:
            await self._engine.transfer(self._checkpoints.tensors())
        else:
            await self._engine.reload(self._checkpoints.write())


class AdapterVersions:
    """Implements :class:`Versions` for a LoRA adapter. Each version has its own name, number and
    folder, and is removed when no request uses it any more.

    With an old path, the engine would reuse cached prefixes of the old version.
    """

    def __init__(
        self,
        engine: Engine,
        handle: ModelHandle,
        folder: Path,
        role: str,
        numbers: Iterator[int],
        *,
        width: int | None,
    ) -> None:
        """Args:
        folder: the folder for versions.
        numbers: yields numbers that are unique on this engine.
        width: new width of the heads; None: unchanged.
        """
        self._engine, self._handle, self._folder = engine, handle, folder
        self._role, self._numbers, self._width = role, numbers, width
        self._written: Adapter | None = None
        self._newest: Adapter | None = None
        self._under_way: dict[Adapter, int] = {}

    def write(self) -> Adapter:
        """Write the current weights as the version that is published next."""
        number = next(self._numbers)
        name = f"{self._role}-v{number}"
        adapter = self._written = Adapter(name, number, self._folder / name)
        self._handle.save(adapter.path)
        if self._width is not None:
            widen_adapter(adapter.path, self._handle.causal_lm.config.to_dict(), self._width)
        return adapter

    async def publish(self) -> None:
        """See :meth:`Versions.publish`; requests in progress keep their version."""
        adapter = self._written or self.write()
        self._written = None
        await self._engine.add_adapter(adapter)
        self._newest = adapter
        self._under_way[adapter] = 0
        await self._drop_drained()

    @asynccontextmanager
    async def request(self) -> AsyncIterator[Adapter]:
        """See :meth:`Versions.request`."""
        adapter = self._newest
        assert adapter is not None, "asked before the first version was published"
        self._under_way[adapter] += 1
        try:
            yield adapter
        finally:
            self._under_way[adapter] -= 1
            await self._drop_drained()

    async def _drop_drained(self) -> None:
        drained = [a for a, n in self._under_way.items() if n == 0 and a is not self._newest]
        for adapter in drained:
            del self._under_way[adapter]
            await self._engine.drop_adapter(adapter)
            shutil.rmtree(adapter.path, ignore_errors=True)


class EngineCheckpoints:
    """Writes full weights for an engine, a folder for each version; the previous one is removed."""

    def __init__(
        self,
        handle: ModelHandle,
        folder: Path,
        *,
        width: int | None,
        untie: bool,
        dtype: torch.dtype | None = None,
    ) -> None:
        """Args:
        folder: the folder for versions.
        width: new width of the heads; None: unchanged.
        untie: give a tied head its own copy.
        dtype: number format of the engine; None: that of the weights.
        """
        self._handle, self._folder = handle, folder
        self._width, self._untie = width, untie
        self._dtype = dtype
        self._current: Path | None = None
        self._count = 0

    def write(self) -> Path:
        """Write the current weights; return their folder."""
        self._count += 1
        target, draft = self._folder / f"v{self._count}", self._folder / "draft"
        self._handle.save(draft, self._dtype)
        if self._width is None and not self._untie:
            draft.rename(target)
        else:
            export_checkpoint(draft, target, width=self._width, untie=self._untie)
        previous, self._current = self._current, target
        if previous is not None:
            shutil.rmtree(previous, ignore_errors=True)
        return target

    def tensors(self) -> list[tuple[str, torch.Tensor]]:
        """Return weights by their names in a checkpoint."""
        return list(StoredWeights(self._handle.causal_lm, self._dtype))
