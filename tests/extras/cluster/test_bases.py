"""What each process is given on a cluster that has GPUs, seen without one; and who is asked: the
engine that knows the beginning of the prompt, and no engine too much."""

from collections import Counter

import numpy as np
import pytest

from coterie.agents.team.settings import AgentSettings
from coterie.agents.vllm.settings import VllmSettings
from coterie.extras.cluster.actor import Actor
from coterie.extras.cluster.bases import Base, choose, cores_and_gpus, plan_bases


def planned(vllm: bool, *, gpus: bool = True, **settings: object) -> Base:
    agent = AgentSettings("tiny:alice", **settings)  # type: ignore[arg-type]
    engines = VllmSettings() if vllm else None
    (base,) = plan_bases(
        {"alice": agent}, {"alice"}, None, Actor, str, vllm=engines, gpus=gpus, seed=0, threads=1
    )
    return base


@pytest.mark.parametrize(
    ("vllm", "gpus", "settings", "expected"),
    [
        (True, True, {}, [1]),
        (True, True, {"tensor_parallel": 2}, [2]),
        (True, True, {"engine_replicas": 2, "tensor_parallel": 4}, [1, 4, 4]),
        (True, True, {"engine_replicas": 1, "engine_device": "cpu", "device": "cuda"}, [1, 0]),
        (False, True, {"engine_replicas": 1}, [1, 1]),
        # Two ranks, and the engine that answers beside them.
        (True, True, {"learner_devices": 2, "tensor_parallel": 2}, [1, 1, 2]),
        (False, True, {"learner_devices": 2}, [1, 1, 1]),
        # A model on a CPU with its engine on a GPU, and the reverse, in one process and in two.
        (True, True, {"device": "cpu", "engine_device": "cuda"}, [1]),
        (True, True, {"device": "cpu", "engine_device": "cuda", "engine_replicas": 1}, [0, 1]),
        (True, True, {"engine_device": "cpu"}, [1]),
        (True, False, {"engine_replicas": 1}, [0, 0]),
        # What no node has is refused when places are reserved.
        (True, False, {"tensor_parallel": 2}, [2]),
    ],
)
def test_gpus_of_each_process(
    vllm: bool, gpus: bool, settings: dict[str, object], expected: list[int]
) -> None:
    base = planned(vllm, gpus=gpus, **settings)
    needs = [
        cores_and_gpus(process, cpus=1.0, gpus=gpus)
        for actor in base.actors
        for process in actor.processes
    ]
    assert [need.get("GPU", 0) for need in needs] == expected


def test_an_engine_apart_holds_weights_in_main_memory_and_computes_on_its_gpu() -> None:
    base = planned(True, engine_replicas=1)
    (aside,) = base.separate_engines[0].arguments[0].values()
    assert (aside.device, aside.engine_device, aside.dtype) == ("cpu", "cuda", "bfloat16")
    assert base.learner is not None
    (own,) = base.learner.arguments[0].values()
    assert (own.device, own.dtype) == ("auto", "auto")
    (aside,) = (
        planned(True, gpus=False, engine_replicas=1).separate_engines[0].arguments[0].values()
    )
    assert (aside.device, aside.engine_device, aside.dtype) == ("cpu", "cpu", "auto")


PROMPTS = [np.random.default_rng(i).integers(0, 300, 400) for i in range(300)]


def named(count: int) -> list[str]:
    return [f"engine {i + 1} of bob" for i in range(count)]


@pytest.mark.parametrize(("count", "deviations"), [(3, 8.2), (4, 7.5), (8, 5.7)])
def test_without_load_each_engine_has_its_share_of_prompts(count: int, deviations: float) -> None:
    # 300 / count each, with a deviation of sqrt(300 * (1 / count) * (1 - 1 / count)).
    asked = Counter(choose(prompt, named(count), {}) for prompt in PROMPTS)
    assert all(abs(asked[name] - 300 / count) < 4 * deviations for name in named(count))


def test_prompts_that_begin_alike_are_asked_of_one_engine_and_stay_when_another_goes() -> None:
    for prompt in PROMPTS:
        name = choose(prompt, named(3), {})
        assert choose(np.append(prompt[:256], 7), named(3), {}) == name
        if name != "engine 3 of bob":
            assert choose(prompt, named(2), {}) == name


def test_no_engine_holds_more_than_a_quarter_above_its_share() -> None:
    # One prompt, again and again: by its beginning alone, one engine would answer all of them.
    load: Counter[str] = Counter()
    for _ in range(8):
        load[choose(PROMPTS[0], named(4), load)] += 1
    assert [*load.values()] == [8]
    for _ in range(92):
        load[choose(PROMPTS[0], named(4), load)] += 1
    # ceil(1.25 * 100 / 4) = 32.
    assert len(load) == 4
    assert max(load.values()) == 32


def test_other_prompts_stay_where_there_is_room() -> None:
    load = {"engine 1 of bob": 16, "engine 2 of bob": 8}
    # ceil(1.25 * 25 / 2) = 16: the first is full.
    assert {choose(prompt, named(2), load) for prompt in PROMPTS} == {"engine 2 of bob"}
    assert choose(PROMPTS[0], named(1), {"engine 1 of bob": 99}) == "engine 1 of bob"
