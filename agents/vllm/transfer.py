"""Sends full weights from GPU to GPU: by handles to memory on a shared GPU (:func:`send_handles`),
or by NCCL between GPUs (:func:`join`, :func:`open_trainer`, :func:`receive`).

The other ways, through files, are in :mod:`coterie.agents.vllm.weight_updates`;
:func:`coterie.agents.vllm.fleet.transfer_of` chooses.
"""

import os
from collections.abc import Iterable, Mapping
from typing import Any

import torch
from torch import Tensor

from coterie.agents.models.stored import StoredWeights


async def send_handles(llm: Any, weights: Iterable[tuple[str, Tensor]], *, first: bool) -> None:
    """Send handles to tensors in GPU memory, from which the engine copies.

    Args:
        llm: vLLM's ``AsyncLLM`` with the backend ``ipc`` and no request in progress.
        weights: names as in the checkpoint, and tensors on the engine's GPU.
        first: whether this is the first transfer to the engine.
    """
    from torch.multiprocessing.reductions import reduce_tensor

    if first:
        await _begin(llm, {"packed": False})
    # Handles do not keep memory alive, so these references must live until the engine is done.
    alive = [(name, tensor.detach().contiguous()) for name, tensor in weights]
    device = alive[0][1].device
    uuid = str(torch.cuda.get_device_properties(device).uuid)
    torch.cuda.synchronize(device)
    handles = [{uuid: reduce_tensor(tensor)[1]} for _, tensor in alive]
    await receive(llm, {**describe(alive), "ipc_handles": handles})
    del alive
    torch.cuda.ipc_collect()


def describe(weights: Iterable[tuple[str, Any]]) -> dict[str, Any]:
    """Return vLLM's description of named weights: names, formats and shapes."""
    named = list(weights)
    return {
        "names": [name for name, _ in named],
        "dtype_names": [str(weight.dtype).rpartition(".")[2] for _, weight in named],
        "shapes": [list(weight.shape) for _, weight in named],
    }


async def join(llm: Any, meeting: Mapping[str, Any]) -> None:
    """Make each GPU of an engine a rank of a new NCCL group; it leaves the previous group.

    Args:
        llm: vLLM's ``AsyncLLM`` with the backend ``nccl`` and no request in progress.
        meeting: fields of vLLM's ``NCCLWeightTransferInitInfo``.
    """
    await llm.shutdown_weight_transfer_engine()
    await _begin(llm, {**meeting, "packed": True})


async def receive(llm: Any, described: Mapping[str, Any]) -> None:
    """Make the engine receive weights that a learner sends concurrently, or those whose handles
    ``described`` has."""
    from vllm.distributed.weight_transfer.base import WeightTransferUpdateRequest  # pyright: ignore[reportMissingImports]

    await llm.start_weight_update()
    await llm.update_weights(WeightTransferUpdateRequest(dict(described)))
    await llm.finish_weight_update()


async def _begin(llm: Any, info: dict[str, Any]) -> None:
    from vllm.distributed.weight_transfer.base import WeightTransferInitRequest  # pyright: ignore[reportMissingImports]

    await llm.init_weight_transfer_engine(WeightTransferInitRequest(info))


class _NoClient:
    """A ``VLLMWeightSyncClient`` of vLLM without an engine, which the learner's caller calls."""

    def init_weight_transfer_engine(self, init_info: object) -> None: ...

    def start_weight_update(self) -> None: ...

    def update_weights(self, update_info: object) -> None: ...

    def finish_weight_update(self, weight_version: object = None) -> None: ...


def open_trainer(weights: StoredWeights, rank: int, host: str, port: int, size: int) -> Any:
    """Return vLLM's ``TrainerWeightTransferEngine`` for a rank of a learner. The first rank waits
    until the whole NCCL group has met; the others only help to gather weights.

    Args:
        weights: the weights to send.
        rank: rank of this process in the learner; the first is also rank 0 of the NCCL group.
        host: host of the meeting point.
        port: port of the meeting point.
        size: size of the group: one plus all GPUs of all engines.
    """
    os.environ.setdefault("VLLM_LOGGING_LEVEL", "ERROR")
    from vllm.distributed.weight_transfer.nccl_engine import (  # pyright: ignore[reportMissingImports]
        NCCLTrainerInitInfo,
        NCCLTrainerWeightTransferEngine,
    )

    group = NCCLTrainerInitInfo(host, port, size, rank=rank)
    client = _NoClient()
    return NCCLTrainerWeightTransferEngine.trainer_init(group, client=client, source=weights)
