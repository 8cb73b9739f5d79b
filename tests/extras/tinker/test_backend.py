"""The backend waits for a server without stopping what else this process does."""

import asyncio
import os
import signal
import threading
from types import SimpleNamespace as record
from typing import Any

import pytest

from coterie.agents.team.backend import LearningSetup
from coterie.agents.team.settings import AgentSettings
from coterie.algorithms import LearnerSettings, get
from coterie.datatypes import UserError
from coterie.extras.tinker.backend import TinkerBackend, state_name
from coterie.extras.tinker.service import Service
from coterie.extras.tinker.settings import TinkerSettings
from tests.extras.tinker.conftest import Done


@pytest.fixture
def backend(fake_tinker: Any) -> TinkerBackend:
    """A backend whose server has no sessions."""
    fake_tinker.ServiceClient = lambda **_: record()
    settings = TinkerSettings("http://x:1", limit_s=5)
    made = TinkerBackend(settings, "run")
    made._service = Service(settings)
    return made


class Slow:
    """A training client that gives out its weights when ``released``. Its coroutine blocks the
    event loop, as that of the official client does."""

    def __init__(self) -> None:
        self.asked, self.released = threading.Event(), threading.Event()

    def save_weights_and_get_sampling_client(self) -> str:
        self.asked.set()
        assert self.released.wait(4), "nothing else ran meanwhile"
        return "newest"

    async def save_weights_and_get_sampling_client_async(self) -> str:
        return self.save_weights_and_get_sampling_client()


def test_weights_are_given_out_while_the_event_loop_runs(backend, server_model) -> None:
    slow, used = Slow(), list[str]()
    backend._weights["alice"] = record(client=slow, model=server_model)
    backend._learners["alice"] = record()
    backend._policies["alice"] = record(stamp=None, use=lambda client, *_: used.append(client))

    async def release() -> None:
        while not slow.asked.is_set():
            await asyncio.sleep(0.001)
        slow.released.set()

    async def both() -> None:
        await asyncio.gather(backend.refresh(), release())

    asyncio.run(both())
    assert used == ["newest"]


def test_an_interruption_does_not_wait_for_a_server(backend) -> None:
    backend._learners |= {"alice": record(), "bob": record()}
    answered, left = list[str](), threading.Event()

    def work(name: str, _: Any) -> None:
        if name == "bob":
            os.kill(os.getpid(), signal.SIGINT)
        left.wait(5)
        answered.append(name)

    with pytest.raises(KeyboardInterrupt):
        backend.learn(work)
    assert not answered
    left.set()


def test_all_roles_are_waited_for_before_an_error_is_raised(backend) -> None:
    backend._learners |= {"alice": record(), "bob": record()}
    failed, learned = threading.Event(), list[str]()

    def work(name: str, _: Any) -> None:
        if name == "alice":
            failed.set()
            raise UserError("the server is gone")
        assert failed.wait(5)
        learned.append(name)

    with pytest.raises(UserError, match="the server is gone"):
        backend.learn(work)
    assert learned == ["bob"]


def test_names_of_states_are_made_of_what_servers_take() -> None:
    assert state_name("run", "alice-2") == "run-alice-2"
    assert state_name("my run ä%2F", "alice-2") == "my-run-2F-alice-2"
    assert state_name(".ä", "bob-final") == "run-bob-final"
    assert state_name("x" * 300, "bob-final") == "x" * 60 + "-bob-final"


def test_the_tokens_of_all_roles_go_on_with_a_checkpoint(fake_tinker, tmp_path) -> None:
    client = record(save_state=lambda name: Done(record(path=f"tinker://x/weights/{name}")))
    server = record(
        create_lora_training_client=lambda **_: client,
        create_sampling_client=lambda **_: record(),
        create_training_client_from_state=lambda path: None,
        create_training_client_from_state_with_optimizer=lambda path: client,
    )
    fake_tinker.ServiceClient = lambda **_: server
    models = {name: AgentSettings(f"tiny:{name}") for name in ("alice", "bob")}
    learning = LearningSetup(get("gspo"), LearnerSettings(), temperature=1.0, total_steps=9)
    first, second = (TinkerBackend(TinkerSettings("http://x:1"), "run") for _ in range(2))
    for backend in (first, second):
        backend.load(models, {"alice"}, learning, 0)
    first._models["alice"].tokens.trained, first._models["bob"].tokens.sampled = 7, 5
    plain = first._learners["alice"].save(tmp_path)
    second._learners["alice"].load(tmp_path, plain)
    assert second.spent() == first.spent()
    assert [row["sampled tokens"] for row in second.spent()] == ["0", "5"]
