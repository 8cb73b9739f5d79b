"""Models whose weights are sharded over several ranks (FSDP2, arXiv:2304.11277).

A rank is a process with its own device. Every decoder block is a group of weights, and the modules
around the blocks form another. A group is gathered on every rank while it computes; otherwise it is
sharded, as are gradients and the optimizer's moments. Each rank computes different rows of a step,
and the gradients are summed.
"""

import os
import sys
from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from typing import Any, TypeVar

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.distributed.tensor import DTensor, distribute_tensor

from coterie.agents.models.blocks import blocks

T = TypeVar("T")

_PATIENCE = timedelta(minutes=10)
"""Longest wait of a rank for the others during an update."""
_LOOPBACK = "lo0" if sys.platform == "darwin" else "lo"


def join_ranks(rank: int, size: int, meeting: str) -> None:
    """Make this process one of several ranks that compute together, by NCCL with a GPU, else by
    gloo.

    Args:
        rank: rank of this process, from 0.
        size: number of processes.
        meeting: HOST:PORT of a TCPStore, or a file if all ranks are on one machine.
    """
    host, _, port = meeting.rpartition(":")
    torch_stores: Any = dist
    if host:
        store = torch_stores.TCPStore(host, int(port), is_master=False, timeout=_PATIENCE)
    else:
        os.environ.setdefault("GLOO_SOCKET_IFNAME", _LOOPBACK)
        store = torch_stores.FileStore(meeting, size)
    backend = "cpu:gloo,cuda:nccl" if torch.cuda.is_available() else "gloo"
    dist.init_process_group(backend, store=store, rank=rank, world_size=size, timeout=_PATIENCE)


def joined() -> bool:
    """Whether this process is one of several ranks."""
    return dist.is_initialized() and dist.get_world_size() > 1


class Ranks:
    """The processes that compute a model's updates together: without a model, only this one. All of
    them must make the same calls in the same order."""

    def __init__(
        self,
        module: nn.Module | None = None,
        device: torch.device | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        """Shard ``module``, of which every rank has all weights.

        Args:
            module: the model; None: there are no other ranks.
            device: the device of this rank.
            dtype: format of the computation, if it differs from that of the weights.
        """
        self.size, self.rank = 1, 0
        if module is not None:
            self.size, self.rank = dist.get_world_size(), dist.get_rank()
            self._root, self._device = _Pass(module), device
            _shard(self._root, device or torch.device("cpu"), dtype)

    def forward(self, work: Callable[[], T]) -> T:
        """Return the result of ``work``, a computation with the model, whose weights are
        gathered."""
        return work() if self.size == 1 else self._root(work)

    def share(self, groups: Sequence[list[int]]) -> list[tuple[list[int], bool]]:
        """Return this rank's micro-batches, each with whether it counts. All ranks compute the same
        number, because each needs the others' shards; repeated ones do not count."""
        mine = [(group, True) for group in groups[self.rank :: self.size]]
        most = -(-len(groups) // self.size)
        return mine + [(group, False) for group in groups[-1:] for _ in range(most - len(mine))]

    def add(self, tensor: Tensor) -> Tensor:
        """Return the sum over ranks."""
        return self._reduced(tensor, dist.ReduceOp.SUM)

    def largest(self, tensor: Tensor) -> Tensor:
        """Return the maximum over ranks."""
        return self._reduced(tensor, dist.ReduceOp.MAX)

    def exchange(self, tensors: Sequence[Tensor]) -> list[Tensor]:
        """Return tensors of which each was computed by one rank and is 0 on all others."""
        if self.size == 1 or not tensors:
            return list(tensors)
        return list(self.add(torch.cat(list(tensors))).split([len(tensor) for tensor in tensors]))

    def _reduced(self, tensor: Tensor, operation: Any) -> Tensor:
        if self.size == 1:
            return tensor
        shared = tensor.to(self._device, copy=True)
        dist.all_reduce(shared, operation)
        return shared.to(tensor.device)


class _Pass(nn.Module):
    """Wraps any computation as a forward pass of the model, for which FSDP gathers the weights."""

    def __init__(self, module: nn.Module) -> None:
        super().__init__()
        self.module = module

    def forward(self, work: Callable[[], Any]) -> Any:
        return work()


def _shard(root: _Pass, device: torch.device, dtype: torch.dtype | None) -> None:
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import FSDPModule, MixedPrecisionPolicy, fully_shard

    mesh = init_device_mesh(device.type, (dist.get_world_size(),))
    policy = MixedPrecisionPolicy(param_dtype=dtype, reduce_dtype=dtype and torch.float32)
    for part in (*blocks(root.module), root):
        fully_shard(part, mesh=mesh, reshard_after_forward=True, mp_policy=policy)
    for part in root.modules():
        if isinstance(part, FSDPModule):
            # Losses of the ranks are parts of a sum, not means.
            part.set_gradient_divide_factor(1.0)
            part.set_force_sum_reduction_for_comms(True)


def gather(tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Gather sharded tensors one by one onto the CPU of rank 0; other ranks do not get them. Every
    rank must call this."""
    gathered: dict[int, Tensor | None] = {}
    for tensor in tensors.values():
        if id(tensor) not in gathered:
            gathered[id(tensor)] = _gathered(tensor.detach())
    named = {name: gathered[id(tensor)] for name, tensor in tensors.items()}
    return {name: tensor for name, tensor in named.items() if tensor is not None}


def _gathered(tensor: Tensor) -> Tensor | None:
    if not isinstance(tensor, DTensor):
        return tensor
    whole = tensor.full_tensor()
    return whole.cpu() if dist.get_rank() == 0 else None


def whole(tensor: Tensor) -> Tensor:
    """Gather a sharded tensor on every rank; return others unchanged. Every rank must call this."""
    return tensor.full_tensor() if isinstance(tensor, DTensor) else tensor


def shard_as(tensor: Tensor, other: Tensor) -> Tensor:
    """Return this rank's shard of ``tensor``, of which every rank has a copy, if ``other`` is
    sharded; else ``tensor``."""
    if not isinstance(other, DTensor):
        return tensor
    moved = tensor.to(other.to_local().device)
    return distribute_tensor(moved, other.device_mesh, other.placements, src_data_rank=None)
