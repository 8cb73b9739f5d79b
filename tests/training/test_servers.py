"""Training runs with a server in a frozen role: it does everything wrong in turn, or dies."""

import json
import time
from collections.abc import Callable
from itertools import cycle
from typing import Any

from coterie.training.session import Session

GOOD = json.dumps(
    {"choices": [{"message": {"content": "<think> hm </think> 8 9"}, "finish_reason": "stop"}]}
)
KINDS: dict[str, tuple[int, str] | float | None] = {
    "http_500": (500, ""),
    "bad_json": (200, GOOD[:40]),
    "html": (200, "<html>busy</html>"),
    "too_large": (200, "x" * 10_000_000),
    "broken": None,
    "timeout": 0.6,
}


def test_training_goes_on_whatever_the_expert_does(
    opened: Callable[..., Session], train: Callable[[Session], list[Any]], web: Any
) -> None:
    # A good reply, then each mischief, and from the beginning again.
    deeds = cycle([(200, GOOD), *KINDS.values()])

    def answer() -> tuple[int, str] | None:
        deed = next(deeds)
        if not isinstance(deed, float):
            return deed
        time.sleep(deed)
        return None

    impatient = "retries=0&read_timeout_s=0.3&timeout_s=2&breaker_failures=1000&concurrency=4"
    address = f"server:http://127.0.0.1:{web(answer).port}/v1?model=x&{impatient}"
    session = opened(
        *("--env", "eapo-consultation", "--algo", "grpo", "--rollout.problems-per-step", "4"),
        *("--agents.expert.model", address),
    )
    lines = train(session)
    assert [line["step"] for line in lines] == [1, 2]
    last = lines[-1]
    for kind in KINDS:
        assert last[f"player/expert/failed/{kind}"] > 0, kind
    assert last["player/expert/answered"] > 0
    # What failed is an entry of its own; what came is there; everyone was trained on.
    assert last["measured/policy/unavailable"] > 0
    assert last["measured/policy/accepted"] > 0
    assert last["measured/policy/failed"] == 0
    assert last["credit/group_size"] == 8


def test_what_fails_is_counted_and_the_run_goes_on(
    opened: Callable[..., Session], web: Any
) -> None:
    answer = {"choices": [{"text": " 8 9", "finish_reason": "stop"}]}  # of every context

    def serve(port: int = 0) -> Any:
        return web(lambda: (200, json.dumps(answer)), port)

    server = serve()
    name = f"server:http://127.0.0.1:{server.port}/v1?model=x&api=completions"
    session = opened(
        *("--agents.bob.no-trained", "--agents.bob.model"),
        f"{name}&retries=0&breaker_failures=2&breaker_cooldown_s=0.2&timeout_s=5",
        *("--steps", "4", "--rollout.problems-per-step", "4"),
    )
    with session.open_logbook() as logbook:
        for step in session.steps_left():
            if step == 2:
                server.close()
            if step == 3:
                serve(server.port)
                time.sleep(0.25)
            batch = session.sample(step)
            credit = session.credit(batch)
            session.record(step, batch, credit, session.update(batch, credit), logbook)
    lines = session.run.read_log("metrics.jsonl")
    bob = [row for episode in batch.episodes for row in episode.trajectories if row.role == "bob"]
    # All of bob's rows while nobody listens; one call finds the server again, then all do.
    first, second, third, last = (line["rollout/failed"] for line in lines)
    assert (first, second, last) == (0, len(bob), 0)
    assert 0 <= third < len(bob)
    assert lines[-1]["player/bob/failed/circuit_open"] > 0
    broken = lines[-1].get("player/bob/failed/broken", 0)
    assert lines[-1]["player/bob/failed/connect"] + broken >= 2
