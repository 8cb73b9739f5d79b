"""What each process is given on a cluster that has GPUs, seen without one."""

import pytest

from coterie.agents.engine.settings import VllmSettings
from coterie.extras.cluster.actor import Actor
from coterie.extras.cluster.bases import Base, cores_and_gpus, plan_bases
from coterie.teams.settings import AgentSettings


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
    (aside,) = base.apart[0].arguments[0].values()
    assert (aside.device, aside.engine_device, aside.dtype) == ("cpu", "cuda", "bfloat16")
    assert base.learner is not None
    (own,) = base.learner.arguments[0].values()
    assert (own.device, own.dtype) == ("auto", "auto")
    (aside,) = planned(True, gpus=False, engine_replicas=1).apart[0].arguments[0].values()
    assert (aside.device, aside.engine_device, aside.dtype) == ("cpu", "cpu", "auto")
