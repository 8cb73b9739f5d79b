"""The engines of a team: which roles share one, and how they start, refresh and rest.

:func:`transfer_of` chooses how full weights reach an engine; the ways are those
of :mod:`coterie.agents.vllm.weight_updates`.
"""

import dataclasses
import gc
import itertools
import os
import shutil
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch

from coterie.agents.models.loading import LoadedRole
from coterie.agents.models.locate import local_folder
from coterie.agents.models.number_format import number_format_of
from coterie.agents.models.quantized import free
from coterie.agents.models.spec import ModelSpec
from coterie.agents.vllm.engine import Engine
from coterie.agents.vllm.export import cpu_width, export_checkpoint
from coterie.agents.vllm.policy import VllmPolicy
from coterie.agents.vllm.processes import engine_environment, memory_folder
from coterie.agents.vllm.settings import VllmSettings
from coterie.agents.vllm.spec import PLAIN, EngineSpec, Transfer, is_plain
from coterie.agents.vllm.turns import Turns
from coterie.agents.vllm.weight_updates import (
    AdapterVersions,
    EngineCheckpoints,
    FrozenWeights,
    FullWeights,
    Versions,
)
from coterie.datatypes import UserError


@dataclass(frozen=True)
class Seat:
    """A role that an engine samples for."""

    role: str
    loaded: LoadedRole
    spec: ModelSpec
    trained: bool
    device: str
    """Device of the engine; ``auto``: that of the model."""
    tensor_parallel: int = 1
    """GPUs of the engine."""
    apart: bool = False
    """Whether the role learns in another process."""


class Fleet:
    """The engines of a team, and a policy for each role."""

    def __init__(
        self,
        seats: list[Seat],
        settings: VllmSettings,
        *,
        seed: int = 0,
    ) -> None:
        """Prepare the engines. Frozen roles and roles with adapters share one engine for each base
        model, and weights of frozen roles leave this process. Call :meth:`start` before the first
        request.

        Raises:
            UserError: a model cannot be exported for engines.
        """
        self._folder = memory_folder(sum(_written_bytes(seat, settings) for seat in seats))
        self._settings = settings
        self._seed = seed
        self._benches: dict[tuple[Any, ...], _Bench] = {}
        self._dtypes = {seat.role: _dtype(seat) for seat in seats}
        self.policies: dict[str, VllmPolicy] = {}
        try:
            placed = [(seat, self._bench(seat, seats)) for seat in seats]
            engines = [bench.engine for bench in self._benches.values()]
            self._turns = Turns(engines) if settings.time_share else None
            for seat, bench in placed:
                self.policies[seat.role] = VllmPolicy(
                    bench.engine,
                    seat.loaded.handle,
                    seat.loaded.codec,
                    self._versions(seat, bench),
                    turns=self._turns,
                )
        except BaseException as error:
            self.close()
            if isinstance(error, OSError):
                raise UserError(f"weights for engines cannot be written: {error}") from error
            raise
        _free_weights(seats, settings)

    async def start(self) -> None:
        """Start every engine in the event loop of later requests, which this blocks.

        Raises:
            UserError: vLLM is missing or fails to start.
        """
        engines = [bench.engine for bench in self._benches.values()]
        on_gpu = any(engine.spec.on_gpu for engine in engines)
        transfer = any(bench.transfer == "ipc" for bench in self._benches.values())
        _free_gpu()
        try:
            with engine_environment(
                self._settings, engines=len(engines), on_gpu=on_gpu, transfer=transfer
            ):
                if not on_gpu:
                    with ThreadPoolExecutor(min(len(engines), os.cpu_count() or 1)) as pool:
                        list(pool.map(Engine.start, engines))
                    return
                # In sequence, because each engine measures the free memory.
                for engine in engines:
                    engine.start()
                    if self._turns is not None:
                        await engine.sleep()
        except BaseException:
            self.close()
            raise

    @property
    def specs(self) -> list[EngineSpec]:
        """The specs of all engines."""
        return [bench.engine.spec for bench in self._benches.values()]

    def dtype_of(self, role: str) -> torch.dtype:
        """Return the number format in which the role's engine computes."""
        return self._dtypes[role]

    async def refresh(self) -> None:
        """Send every role's current weights to its engine; no request may be in progress."""
        if self._settings.sleep_level:
            _free_gpu()
        for bench in self._benches.values():
            if self._turns is None:
                await bench.engine.wake()
        for policy in self.policies.values():
            await policy.refresh()

    async def rest(self) -> None:
        """Free the GPU for the learner; no request may be in progress."""
        if self._turns is not None:
            await self._turns.rest()
            return
        for bench in self._benches.values():
            await bench.engine.sleep()

    def close(self) -> None:
        """End all processes and remove the folder for weights."""
        if self._benches:
            # Each engine takes seconds to end.
            with ThreadPoolExecutor(len(self._benches)) as pool:
                list(pool.map(lambda bench: bench.engine.close(), self._benches.values()))
        shutil.rmtree(self._folder, ignore_errors=True)

    def _bench(self, seat: Seat, seats: list[Seat]) -> "_Bench":
        key = _key(seat)
        if key not in self._benches:
            mates = [other for other in seats if _key(other) == key]
            folder = self._folder / f"engine-{len(self._benches)}"
            transfer = transfer_of(seat, self._settings) if _full(seat) else None
            bench = _Bench(folder, width=_width(seat), transfer=transfer)
            if _full(seat) and transfer != "nccl":
                bench.checkpoints = EngineCheckpoints(
                    seat.loaded.handle,
                    folder,
                    width=bench.width,
                    untie=not _on_gpu(seat),
                    dtype=_dtype(seat),
                )
            bench.engine = Engine(self._spec(seat, mates, bench), self._settings)
            self._benches[key] = bench
        return self._benches[key]

    def _spec(self, seat: Seat, mates: list[Seat], bench: "_Bench") -> EngineSpec:
        handle, spec = seat.loaded.handle, seat.spec
        base = source = local_folder(spec)
        if bench.checkpoints is not None and not bench.transfer:
            base = bench.checkpoints.write()
        else:
            if _writes_base(seat):
                base = bench.folder / "base"
                handle.save_base(base)
                seat.loaded.tokenizer.save_pretrained(base)
            if bench.width is not None:
                if base is None:
                    raise UserError(
                        f"the attention heads of {spec.model} are too narrow for vLLM on a CPU, "
                        "and padding them needs its files: name a local folder"
                    )
                export_checkpoint(base, bench.folder / "wide", width=bench.width, untie=False)
                base = bench.folder / "wide"
        ranks = [_rank(mate) for mate in mates if mate.spec.lora is not None]
        dtype = _dtype(seat)
        if ranks and dtype == torch.float32 and _on_gpu(seat):
            raise UserError(
                f"vLLM's adapters on a GPU have 16 bits: say --agents.{seat.role}.dtype bfloat16"
            )
        return EngineSpec(
            model=spec.model if base is None else str(base),
            tokenizer=spec.model if source is None else str(source),
            dtype=str(dtype).rpartition(".")[2],
            device=_device(seat),
            context=handle.context,
            revision=spec.revision if base is None else None,
            tokenizer_revision=spec.revision if source is None else None,
            trust_remote_code=spec.trust_remote_code,
            lora_rank=max(ranks, default=0),
            adapters=len(ranks),
            seed=self._seed,
            tensor_parallel=seat.tensor_parallel,
            transfer=bench.transfer or "ipc",
        )

    def _versions(self, seat: Seat, bench: "_Bench") -> Versions:
        if bench.checkpoints is not None:
            return FullWeights(bench.engine, bench.checkpoints, transfer=bench.transfer == "ipc")
        if seat.spec.lora is None:
            return FrozenWeights()
        engine, handle, width = bench.engine, seat.loaded.handle, bench.width
        versions = AdapterVersions(
            engine, handle, bench.folder, seat.role, bench.numbers, width=width
        )
        if not seat.trained:
            versions.write()  # before its model leaves this process's memory
        return versions


@dataclass
class _Bench:
    """An engine with the data that its roles share."""

    folder: Path
    width: int | None
    transfer: Transfer | None
    """The backend of weight transfer; None: through files."""
    engine: Any = None
    checkpoints: EngineCheckpoints | None = None
    numbers: Iterator[int] = field(default_factory=lambda: itertools.count(1))


def _key(seat: Seat) -> tuple[Any, ...]:
    """A key that is equal for roles that share an engine; full weights have their own."""
    spec = seat.spec
    own = seat.role if _full(seat) else None
    same = (spec.model, spec.revision, spec.dtype, spec.context, spec.trust_remote_code)
    return (own, _device(seat), seat.tensor_parallel, *same)


def _full(seat: Seat) -> bool:
    return seat.trained and seat.spec.lora is None


def _writes_base(seat: Seat) -> bool:
    """Whether the engine gets a copy of the base: the files contain more than the text decoder,
    which the adapters belong to, or other weights than the quantized ones, which the adapters learn
    on."""
    return seat.loaded.cut or number_format_of(seat.spec, trained=seat.trained).codes is not None


def _device(seat: Seat) -> str:
    device = str(seat.loaded.handle.device) if seat.device == "auto" else seat.device
    return "cuda:0" if device == "cuda" else device


def _on_gpu(seat: Seat) -> bool:
    return _device(seat).startswith("cuda")


def _dtype(seat: Seat) -> torch.dtype:
    """The engine's number format: the model's, but bfloat16 for full weights on a GPU, even if they
    learn in float32 on a CPU."""
    learns = _full(seat) and seat.spec.dtype == "auto"
    return torch.bfloat16 if learns and _on_gpu(seat) else seat.loaded.handle.dtype


def transfer_of(seat: Seat, settings: VllmSettings) -> Transfer | None:
    """Return how full weights reach an engine: ``nccl`` between GPUs if ``--vllm.weights transfer``
    is set, ``ipc`` if learner and engine share a GPU and the engine keeps its weights while it
    sleeps; None: through files."""
    if seat.apart:
        return "nccl" if settings.weights == "transfer" else None
    files = settings.weights == "reload" or settings.sleep_level == 2 or seat.tensor_parallel > 1
    beside = _device(seat) == _device(dataclasses.replace(seat, device="auto"))
    return "ipc" if not files and _on_gpu(seat) and beside else None


def _width(seat: Seat) -> int | None:
    """The width to which heads must be widened; None: they have a kernel."""
    if _on_gpu(seat):
        return None
    return cpu_width(seat.loaded.handle.causal_lm.config.get_text_config().to_dict())


def _rank(seat: Seat) -> int:
    handle = seat.loaded.handle
    config: Any = handle.module.peft_config[handle.adapter]  # type: ignore[index, union-attr]
    if not is_plain(config.to_dict()):
        raise UserError(f"vLLM takes {PLAIN}; that of {seat.role} is none: say --engine local")
    return config.r


def _free_weights(seats: list[Seat], settings: VllmSettings) -> None:
    """Free weights in this process that are neither trained here nor sent from here; their engine
    has its own."""
    needed = {
        id(seat.loaded.handle.module)
        for seat in seats
        if seat.trained and not (_full(seat) and transfer_of(seat, settings) == "nccl")
    }
    for seat in seats:
        if id(seat.loaded.handle.module) not in needed:
            free(seat.loaded.handle.module)


def _free_gpu() -> None:
    """Free the GPU memory in torch's cache, which engines cannot use."""
    if torch.cuda.is_initialized():
        gc.collect()
        torch.cuda.empty_cache()


def _written_bytes(seat: Seat, settings: VllmSettings) -> int:
    """Bytes of files for engines: two versions of full weights, or a copy of the base."""
    handle = seat.loaded.handle
    if _full(seat) and transfer_of(seat, settings) is None:
        return 2 * handle.weight_bytes
    return handle.plain_bytes if _writes_base(seat) else 0
