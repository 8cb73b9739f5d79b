"""A vLLM engine in its own process, called from an event loop."""

import asyncio
import itertools
from collections.abc import Coroutine, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from torch import Tensor

from coterie.agents.vllm.processes import no_interrupts, own_gpus
from coterie.agents.vllm.settings import VllmSettings
from coterie.agents.vllm.spec import EngineSpec, engine_arguments, reading_params
from coterie.agents.vllm.transfer import join, receive, send_handles
from coterie.datatypes import UserError, reason_of

T = TypeVar("T")

# Seconds between checks that an engine still lives.
_LOOK_S = 1.0
_FORGET_TRIES = 200


class EngineDied(UserError):
    """Raised when an engine's process has died."""


@dataclass(frozen=True)
class Adapter:
    """A version of a role's adapter, with its own name, number and path."""

    name: str
    number: int
    path: Path


class Engine:
    """Wraps vLLM's ``AsyncLLM``; call :meth:`start` first."""

    def __init__(self, spec: EngineSpec, settings: VllmSettings) -> None:
        self.spec = spec
        self._settings = settings
        self._llm: Any = None
        self._numbers = itertools.count()
        self._adapters: dict[int, Adapter] = {}
        self._model = spec.model
        self._asleep = False
        self._transfer_ready = False

    def start(self) -> None:
        """Start the process and wait until it is ready. Blocks; call it, possibly in a thread,
        inside :func:`coterie.agents.vllm.processes.engine_environment`.

        Raises:
            UserError: vLLM is not installed or fails to start.
        """
        spec, settings = self.spec, self._settings
        try:
            from vllm.engine.arg_utils import AsyncEngineArgs  # pyright: ignore[reportMissingImports]
            from vllm.platforms import current_platform  # pyright: ignore[reportMissingImports]
            from vllm.v1.engine.async_llm import AsyncLLM  # pyright: ignore[reportMissingImports]
        except ImportError as error:
            raise UserError(
                f"--engine vllm needs vLLM, which is not installed ({error}); see docs/vllm.md, or "
                "say --engine local"
            ) from None
        built, wanted = str(current_platform.device_type), "cuda" if spec.on_gpu else "cpu"
        if built != wanted:
            raise UserError(
                f"the vLLM that is installed runs on {built}, and {spec.tokenizer} is to run on "
                f"{spec.device}: --agents.ROLE.engine-device {built}, or install vLLM's other build"
            )
        arguments = engine_arguments(spec, settings)
        try:
            with no_interrupts(), own_gpus(spec.device, spec.tensor_parallel):
                self._llm = AsyncLLM.from_engine_args(AsyncEngineArgs(**arguments))
        except (RuntimeError, ValueError, OSError) as error:
            raise UserError(
                f"vLLM could not start {spec.model}: {reason_of(error)}; --vllm.log INFO shows why"
            ) from error

    async def generate(self, tokens: list[int], params: Any, adapter: Adapter | None) -> Any:
        """Return vLLM's ``CompletionOutput`` for a prompt.

        Args:
            tokens: ids of the prompt.
            params: vLLM's ``SamplingParams``.
            adapter: the adapter to sample with; None: the engine's own weights.

        Raises:
            UserError: the engine has died.
            ValueError: the engine refuses the request.
        """
        return (await self._answer(tokens, params, adapter)).outputs[0]

    async def logprobs(
        self, tokens: list[int], likeliest: int, adapter: Adapter | None
    ) -> Sequence[Any]:
        """Return for each token vLLM's mapping of id -> ``Logprob``, of the token and of the
        ``likeliest`` ones at its place; None for the first. Errors as of :meth:`generate`."""
        answer = await self._answer(tokens, reading_params(likeliest), adapter)
        return answer.prompt_logprobs

    async def _answer(self, tokens: list[int], params: Any, adapter: Adapter | None) -> Any:
        from vllm.inputs import TokensPrompt  # pyright: ignore[reportMissingImports]
        from vllm.v1.engine.exceptions import EngineDeadError, EngineGenerateError  # pyright: ignore[reportMissingImports]

        answer = None
        try:
            async for newest in self._llm.generate(
                TokensPrompt(prompt_token_ids=tokens),
                params,
                f"{next(self._numbers)}",
                lora_request=None if adapter is None else _request(adapter),
            ):
                answer = newest
        except (EngineDeadError, EngineGenerateError) as error:
            raise self._died(type(error).__name__) from error
        assert answer is not None
        return answer

    async def add_adapter(self, adapter: Adapter) -> None:
        """Load an adapter from its folder; requests may use it afterwards."""
        await self._do(self._llm.add_lora(_request(adapter)))
        self._adapters[adapter.number] = adapter

    async def drop_adapter(self, adapter: Adapter) -> None:
        """Remove an adapter that no request uses any more."""
        self._adapters.pop(adapter.number, None)
        await self._do(self._llm.remove_lora(adapter.number))

    async def reload(self, folder: Path) -> None:
        """Load all weights from a folder; no request may be in progress."""
        self._model = str(folder)
        await self._read_weights()
        await self.forget_prefixes()

    async def transfer(self, weights: Iterable[tuple[str, Tensor]]) -> None:
        """Copy all weights from this process's tensors on the same GPU; no request may be in
        progress."""
        await self._do(send_handles(self._llm, weights, first=not self._transfer_ready))
        self._transfer_ready = True
        await self.forget_prefixes()

    async def join(self, meeting: Mapping[str, Any]) -> None:
        """Join the NCCL group of a learner on another GPU: see :func:`transfer.join`."""
        await self._do(join(self._llm, meeting))

    async def receive(self, described: Mapping[str, Any]) -> None:
        """Receive all weights from that learner, which sends them concurrently; no request may be
        in progress."""
        await self._do(receive(self._llm, described))
        await self.forget_prefixes()

    async def forget_prefixes(self) -> None:
        """Empty the prefix cache, which was computed with older weights.

        Raises:
            UserError: requests keep using the cache.
        """
        # Cancelled requests can keep their prefixes for a moment.
        for _ in range(_FORGET_TRIES):
            if await self._do(self._llm.reset_prefix_cache()):
                return
            await asyncio.sleep(0.05)
        raise UserError(
            f"the engine of {self.spec.tokenizer} did not finish abandoned requests; continue the "
            "run with --resume"
        )

    async def sleep(self) -> None:
        """Free GPU memory, as much as the sleep level says."""
        if self._settings.sleep_level and self.spec.on_gpu and not self._asleep:
            await self._do(self._llm.sleep(level=self._settings.sleep_level))
            self._asleep = True

    async def wake(self) -> None:
        """Allocate the memory again and reload freed weights."""
        if not self._asleep:
            return
        await self._do(self._llm.wake_up(tags=["weights"]))
        if self._settings.sleep_level == 2:
            await self._read_weights()
        # vLLM 0.27 silently loses adapters while it sleeps (vllm-project/vllm#53888).
        for adapter in self._adapters.values():
            await self._do(self._llm.remove_lora(adapter.number))
            await self._do(self._llm.add_lora(_request(adapter)))
        await self._do(self._llm.wake_up(tags=["kv_cache"]))
        self._asleep = False

    def close(self) -> None:
        """End the process."""
        if self._llm is not None:
            self._llm.shutdown()
            self._llm = None

    async def _read_weights(self) -> None:
        # With a path, vLLM ignores the revision of the model that it was started with.
        path = {} if self._model == self.spec.model else {"weights_path": self._model}
        await self._do(self._llm.collective_rpc("reload_weights", kwargs=path))

    async def _do(self, work: Coroutine[Any, Any, T]) -> T:
        """Return the result of a control call, such as a change of weights.

        Raises:
            UserError: the engine dies or refuses.
        """
        # vLLM itself waits forever if the engine dies during the call.
        task = asyncio.ensure_future(work)
        try:
            while not (await asyncio.wait([task], timeout=_LOOK_S))[0]:
                if self._llm.errored:
                    raise self._died("while its weights were changed")
            return task.result()
        except UserError:
            raise
        except Exception as error:
            if self._llm.errored:
                raise self._died(type(error).__name__) from error
            raise UserError(
                f"the engine of {self.spec.tokenizer} refuses: {type(error).__name__} "
                f"{reason_of(error)}; --vllm.log INFO shows why"
            ) from error
        finally:
            task.cancel()

    def _died(self, reason: str) -> EngineDied:
        return EngineDied(
            f"the engine of {self.spec.tokenizer} died ({reason}); continue the run with --resume, "
            "and see what it wrote with --vllm.log INFO"
        )


def _request(adapter: Adapter) -> Any:
    from vllm.lora.request import LoRARequest  # pyright: ignore[reportMissingImports]

    return LoRARequest(adapter.name, adapter.number, str(adapter.path))
