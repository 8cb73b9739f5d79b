"""A stand-in for the package ``tinker``, and a server in this process that answers as Hatchery
does."""

import gc
import sys
import warnings
from collections.abc import Callable, Iterator
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

from coterie.agents.models.codec import HFCodec
from coterie.agents.models.load_tokenizer import load_tokenizer
from coterie.agents.models.locate import TINY
from coterie.agents.models.spec import ModelSpec
from coterie.datatypes import Trajectory
from coterie.extras.tinker.model import ServerModel
from coterie.extras.tinker.service import NoAnswer
from coterie.extras.tinker.settings import KEY
from tests.algorithms.conftest import TinyModel, build_module
from tests.extras.tinker import hatchery
from tests.extras.tinker.hatchery import Hatchery

record = SimpleNamespace


@pytest.fixture
def fake_tinker(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The types of the package that the code uses."""
    module: Any = ModuleType("tinker")
    module.ModelInput = record(from_ints=lambda tokens: tokens)
    for name in ("TensorData", "Datum", "AdamParams", "SamplingParams"):
        setattr(module, name, record)
    module.APIStatusError = type("APIStatusError", (Exception,), {})
    monkeypatch.setitem(sys.modules, "tinker", module)
    return module


class Done:
    """A future of the package that is done."""

    def __init__(self, value: Any) -> None:
        self._value = value

    def result(self, timeout: float | None = None) -> Any:
        if isinstance(self._value, Exception):
            raise self._value
        return self._value


class FakeClient:
    """A training client whose server is in this process.

    Its cross-entropy divides by the sum of the weights where that is above 1, as Hatchery 0.3 does.
    """

    def __init__(self, model: TinyModel) -> None:
        self.model = model
        self._optimizer = torch.optim.AdamW(list(model.parameters().values()), fused=True)
        self.calls: list[str] = []

    def _logprobs(self, datum: Any) -> torch.Tensor:
        ids = torch.tensor(datum.model_input)[None]
        targets = torch.tensor(datum.loss_fn_inputs["target_tokens"].data)
        logp_TV = self.model.module(ids).logits[0].log_softmax(-1)
        return logp_TV[torch.arange(len(targets)), targets]

    def forward(self, data: Any, loss: str) -> Done:
        self.calls.append("forward")
        with torch.no_grad():
            return self._outputs([self._logprobs(datum) for datum in data])

    def forward_backward(self, data: Any, loss: str) -> Done:
        assert loss == "cross_entropy"
        self.calls.append("forward_backward")
        logprobs = [self._logprobs(datum) for datum in data]
        weights = [torch.tensor(datum.loss_fn_inputs["weights"].data) for datum in data]
        total = -sum((w * logp).sum() for w, logp in zip(weights, logprobs))
        (total / max(1.0, float(sum(w.sum() for w in weights)))).backward()
        return self._outputs(logprobs)

    def optim_step(self, params: Any) -> Done:
        self.calls.append("optim_step")
        own = list(self.model.parameters().values())
        if params.grad_clip_norm:
            torch.nn.utils.clip_grad_norm_(own, params.grad_clip_norm)
        self._optimizer.param_groups[0].update(
            lr=params.learning_rate,
            betas=(params.beta1, params.beta2),
            eps=params.eps,
            weight_decay=params.weight_decay,
        )
        self._optimizer.step()
        self._optimizer.zero_grad()
        return Done(record(metrics=None))

    @staticmethod
    def _outputs(logprobs: list[torch.Tensor]) -> Done:
        outputs = [{"logprobs": record(data=logp.detach().tolist())} for logp in logprobs]
        return Done(record(loss_fn_outputs=outputs))


class FakeService:
    """Waits for futures as the real one does, without a limit."""

    def wait(self, what: str, future: Any) -> Any:
        return future.result()

    async def reply(self, what: str, answer: Any) -> Any:
        return await answer

    def broken(self, what: str) -> NoAnswer:
        return NoAnswer(f"the server returned {what}")


@pytest.fixture(scope="session")
def hatchery_server() -> Iterator[Hatchery]:
    """One server for all tests; its workers take seconds to load torch's compilers."""
    folders = [str((TINY / name).resolve()) for name in ("alice", "bob")]
    started = Hatchery(folders).start()
    yield started
    started.stop()


@pytest.fixture
def server(hatchery_server: Hatchery, monkeypatch: pytest.MonkeyPatch) -> Iterator[Hatchery]:
    monkeypatch.setenv(KEY, hatchery.KEY)
    monkeypatch.setenv("TINKER_TELEMETRY", "0")
    yield hatchery_server
    hatchery_server.faults.clear()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the client leaves its connections open
        gc.collect()


@pytest.fixture
def tiny() -> Callable[..., TinyModel]:
    return lambda seed=0: TinyModel(build_module(seed))


@pytest.fixture(scope="session")
def alice_codec() -> HFCodec:
    return HFCodec(load_tokenizer(ModelSpec("tiny:alice")), vocab_size=360)


@pytest.fixture
def server_model(alice_codec: HFCodec) -> ServerModel:
    marks = ("<|alice:end|>",)
    return ServerModel("alice", "tiny", alice_codec, 64, 16, None, marks, "tiny:alice")


@pytest.fixture
def make_rows() -> Callable[..., list[Trajectory]]:
    def make(count: int = 8, seed: int = 0) -> list[Trajectory]:
        """Rows of unequal lengths with holes in their masks, in two groups; two agents have two
        rows each."""
        rng = np.random.default_rng(seed)
        rows = []
        for i in range(count):
            prompt, sampled = int(rng.integers(2, 6)), int(rng.integers(3, 14))
            mask = np.array([False] * prompt + [True] * sampled)
            if sampled > 6:
                mask[prompt + 3] = False
            rows.append(
                Trajectory(
                    agent=f"alice_{i}",
                    role="alice",
                    tokens=rng.integers(0, 40, prompt + sampled),
                    mask=mask,
                    logprobs=np.where(mask, rng.normal(-3.6, 0.4, len(mask)), 0).astype(np.float32),
                    reward=0.0,
                    reward_terms={},
                    groups={"problem": str(i % 2)},
                    member=f"{max(i, 1) if i < 2 else i}",
                    loss_weight=0.8 if i == 3 else 1.0,
                    turns=((prompt, prompt + sampled),),
                )
            )
        return rows

    return make
