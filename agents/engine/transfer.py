"""Full weights from this process to an engine on the same GPU, through vLLM's weight transfer."""

from collections.abc import Iterable
from typing import Any

import torch
from torch import Tensor


async def send(llm: Any, weights: Iterable[tuple[str, Tensor]], *, first: bool) -> None:
    """Hand over handles to tensors in GPU memory, which the engine copies from.

    Args:
        llm: vLLM's ``AsyncLLM``, configured for the backend ``ipc``, with no request under way.
        weights: names as in the checkpoint, and tensors on the engine's GPU.
        first: whether nothing was ever sent to this engine.
    """
    from torch.multiprocessing.reductions import reduce_tensor
    from vllm.distributed.weight_transfer.base import (  # pyright: ignore[reportMissingImports]
        WeightTransferInitRequest,
        WeightTransferUpdateRequest,
    )

    if first:
        await llm.init_weight_transfer_engine(WeightTransferInitRequest({"packed": False}))
    # Handles do not keep their memory alive: these references do, until the engine is done.
    alive = [(name, tensor.detach().contiguous()) for name, tensor in weights]
    device = alive[0][1].device
    uuid = str(torch.cuda.get_device_properties(device).uuid)
    torch.cuda.synchronize(device)
    info = {
        "names": [name for name, _ in alive],
        "dtype_names": [str(tensor.dtype).rpartition(".")[2] for _, tensor in alive],
        "shapes": [list(tensor.shape) for _, tensor in alive],
        "ipc_handles": [{uuid: reduce_tensor(tensor)[1]} for _, tensor in alive],
    }
    await llm.start_weight_update()
    await llm.update_weights(WeightTransferUpdateRequest(info))
    await llm.finish_weight_update()
    del alive
    torch.cuda.ipc_collect()
