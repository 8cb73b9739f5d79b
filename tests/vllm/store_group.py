"""vLLM's NCCL transfer where there is no GPU: ranks meet as they do, and what would go from GPU to
GPU goes through the store in which they meet."""

from contextlib import nullcontext
from typing import Any

import torch
from vllm.config import WeightTransferConfig
from vllm.distributed.device_communicators import pynccl
from vllm.distributed.weight_transfer import packed_tensor
from vllm.v1.worker.cpu_worker import CPUWorker

from coterie.agents.vllm import engine
from coterie.extras.cluster import engine_worker, sender


class Store:
    """In place of ``PyNcclCommunicator``."""

    def __init__(self, group: Any, device: Any) -> None:
        self.group, self.rank, self.world_size = group, group.rank, group.world_size

    def broadcast(self, tensor: torch.Tensor, src: int, stream: Any = None) -> None:
        tensor.copy_(self.group.broadcast(tensor, src))

    def destroy(self) -> None: ...


class NoStream:
    """In place of a CUDA stream."""

    def synchronize(self) -> None: ...


def without_gpu() -> None:
    """For this process: it has no other use for a GPU."""
    pynccl.PyNcclCommunicator = Store  # type: ignore[misc]
    packed_tensor._get_streams = lambda device, count: (NoStream(),) * count
    torch.cuda.stream = lambda stream: nullcontext()  # type: ignore[assignment, misc]
    torch.accelerator.current_device_index = lambda: 0
    torch.accelerator.synchronize = lambda *device: None


class StoreCPUWorker(CPUWorker):
    """vLLM's own, in the engine's process."""

    def __init__(self, *given: Any, **more: Any) -> None:
        without_gpu()
        super().__init__(*given, **more)


class Sender(sender.Sender):
    def __init__(self, *given: Any, **more: Any) -> None:
        without_gpu()
        super().__init__(*given, **more)


class EngineWorker(engine_worker.EngineWorker):
    def __init__(self, *given: Any, **more: Any) -> None:
        of_vllm = engine.engine_arguments

        def arguments(*spec: Any) -> dict[str, Any]:
            worker = f"{StoreCPUWorker.__module__}.{StoreCPUWorker.__name__}"
            assert spec[0].transfer == "nccl"
            nccl = WeightTransferConfig(backend=spec[0].transfer)
            return {**of_vllm(*spec), "worker_cls": worker, "weight_transfer_config": nccl}

        engine.engine_arguments = arguments
        super().__init__(*given, **more)
