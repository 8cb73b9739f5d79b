"""Full weights from GPU to GPU by vLLM's weight transfer: by handles to memory where learner and
engine share a GPU, by NCCL where they do not."""

import os
from collections.abc import Iterable, Mapping
from typing import Any

import torch
from torch import Tensor

from coterie.agents.models.stored import StoredWeights


async def send_handles(llm: Any, weights: Iterable[tuple[str, Tensor]], *, first: bool) -> None:
    """Hand over handles to tensors in GPU memory, which the engine copies from.

    Args:
        llm: vLLM's ``AsyncLLM``, configured for the backend ``ipc``, with no request under way.
        weights: names as in the checkpoint, and tensors on the engine's GPU.
        first: whether nothing was ever sent to this engine.
    """
    from torch.multiprocessing.reductions import reduce_tensor

    if first:
        await _begin(llm, {"packed": False})
    # Handles do not keep their memory alive: these references do, until the engine is done.
    alive = [(name, tensor.detach().contiguous()) for name, tensor in weights]
    device = alive[0][1].device
    uuid = str(torch.cuda.get_device_properties(device).uuid)
    torch.cuda.synchronize(device)
    handles = [{uuid: reduce_tensor(tensor)[1]} for _, tensor in alive]
    await receive(llm, {**describe(alive), "ipc_handles": handles})
    del alive
    torch.cuda.ipc_collect()


def describe(weights: Iterable[tuple[str, Any]]) -> dict[str, Any]:
    """vLLM's description of named weights: names, formats and shapes."""
    named = list(weights)
    return {
        "names": [name for name, _ in named],
        "dtype_names": [str(weight.dtype).rpartition(".")[2] for _, weight in named],
        "shapes": [list(weight.shape) for _, weight in named],
    }


async def join(llm: Any, meeting: Mapping[str, Any]) -> None:
    """Have each of an engine's GPUs become a rank of a NCCL group, and leave the one before.

    Args:
        llm: vLLM's ``AsyncLLM``, configured for the backend ``nccl``, with no request under way.
        meeting: fields of vLLM's ``NCCLWeightTransferInitInfo``.
    """
    await llm.shutdown_weight_transfer_engine()
    await _begin(llm, {**meeting, "packed": True})


async def receive(llm: Any, described: Mapping[str, Any]) -> None:
    """Have the engine take weights that are sent meanwhile, or that ``described`` names."""
    from vllm.distributed.weight_transfer.base import WeightTransferUpdateRequest  # pyright: ignore[reportMissingImports]

    await llm.start_weight_update()
    await llm.update_weights(WeightTransferUpdateRequest(dict(described)))
    await llm.finish_weight_update()


async def _begin(llm: Any, said: dict[str, Any]) -> None:
    from vllm.distributed.weight_transfer.base import WeightTransferInitRequest  # pyright: ignore[reportMissingImports]

    await llm.init_weight_transfer_engine(WeightTransferInitRequest(said))


class _AskedElsewhere:
    """vLLM's ``VLLMWeightSyncClient`` that calls no engine: the caller of the learner does."""

    def init_weight_transfer_engine(self, init_info: object) -> None: ...

    def start_weight_update(self) -> None: ...

    def update_weights(self, update_info: object) -> None: ...

    def finish_weight_update(self, weight_version: object = None) -> None: ...


def open_trainer(weights: StoredWeights, rank: int, host: str, port: int, size: int) -> Any:
    """vLLM's ``TrainerWeightTransferEngine`` in each of a learner's ranks. The first waits here
    until the whole NCCL group has met; the others gather with it, and send nothing.

    Args:
        weights: what is sent.
        rank: of this process among the learner's; the first is rank 0 of the NCCL group, too.
        host: where the group meets.
        port: where the group meets.
        size: of the group: one and all GPUs of all engines.
    """
    os.environ.setdefault("VLLM_LOGGING_LEVEL", "ERROR")
    from vllm.distributed.weight_transfer.nccl_engine import (  # pyright: ignore[reportMissingImports]
        NCCLTrainerInitInfo,
        NCCLTrainerWeightTransferEngine,
    )

    group = NCCLTrainerInitInfo(host, port, size, rank=rank)
    client = _AskedElsewhere()
    return NCCLTrainerWeightTransferEngine.trainer_init(group, client=client, source=weights)
