"""Full weights from a learner to engines apart from it by vLLM's NCCL transfer."""

import copy
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from coterie.agents.models.loading import load_team
from coterie.agents.models.spec import ModelSpec
from coterie.agents.models.stored import StoredWeights
from coterie.agents.vllm.transfer import describe, open_trainer
from coterie.cli.arguments import overlay
from coterie.cli.command_line import parse
from coterie.extras.cluster.sender import _free_port
from coterie.training.config.preflight import preflight
from coterie.training.session import open_session

pytestmark = pytest.mark.filterwarnings("ignore")
FLAGS = (
    "--engine", "vllm", "--steps", "3", "--rollout.problems-per-step", "4", "--eval.no-enabled",
    "--agents.alice.model", "scripted:oracle", "--agents.alice.no-trained", "--learner.lr", "0.001",
    "--vllm.weights", "transfer",
)  # fmt: skip


def test_every_gpu_of_every_engine_is_a_rank_and_receives_what_a_checkpoint_holds(
    monkeypatch: pytest.MonkeyPatch, checkpoint: Callable[..., Path]
) -> None:
    """A learner and two engines of two GPUs each, by vLLM's code: ranks 0, 1 and 2, 3 and 4."""
    monkeypatch.syspath_prepend(str(Path(__file__).parent))
    from store_group import NoStream, Store
    from vllm.config import WeightTransferConfig
    from vllm.distributed.device_communicators import pynccl
    from vllm.distributed.weight_transfer import nccl_engine, packed_tensor

    monkeypatch.setattr(pynccl, "PyNcclCommunicator", Store)
    monkeypatch.setattr(packed_tensor, "_get_streams", lambda device, count: (NoStream(),) * count)
    monkeypatch.setattr(torch.accelerator, "current_device_index", lambda: 0)
    monkeypatch.setattr(torch.accelerator, "synchronize", lambda *device: None)
    # A few weights fill a bucket.
    bucket = {"packed_buffer_size_bytes": 4096}
    info = nccl_engine.NCCLTrainerInitInfo
    monkeypatch.setattr(nccl_engine, "NCCLTrainerInitInfo", partial(info, **bucket))
    folder = checkpoint("qwen3-moe")
    handle = load_team({"bob": ModelSpec(str(folder), device="cpu")}, set())["bob"].handle
    weights, (host, port) = StoredWeights(handle.causal_lm, torch.bfloat16), _free_port("127.0.0.1")
    described = describe((weight.name, weight) for weight in weights.metadata())
    received: dict[int, dict[str, torch.Tensor]] = {}

    def receive(first: int, rank: int) -> None:
        taken: dict[str, torch.Tensor] = {}
        model = SimpleNamespace(
            load_weights=lambda pairs: taken.update({n: copy.deepcopy(t) for n, t in pairs})
        )
        parallel = SimpleNamespace(data_parallel_index=0, world_size=2, rank=rank)
        config = SimpleNamespace(parallel_config=parallel, model_config=None)
        engine = nccl_engine.NCCLWeightTransferEngine(
            WeightTransferConfig(backend="nccl"), config, torch.device("cpu"), model
        )
        meeting = {"master_address": host, "master_port": port, "world_size": 5}
        init_info = {**meeting, **bucket, "rank_offset": first, "packed": True}
        engine.init_transfer_engine(engine.parse_init_info(init_info))
        engine.update_weights(described)
        received[engine.model_update_group.rank] = taken

    with ThreadPoolExecutor(4) as threads:
        begun = [threads.submit(receive, first, rank) for first in (1, 3) for rank in (0, 1)]
        trainer = open_trainer(weights, 0, host, port, 5)
        trainer.send_weights()
        for future in begun:
            future.result()
    assert sorted(received) == [1, 2, 3, 4]
    sent = dict(weights)
    for taken in received.values():
        assert taken.keys() == sent.keys()
        assert all(torch.equal(taken[name], sent[name]) for name in sent)


def play(
    flags: tuple[str, ...], path: Path, kill_engine: Callable[[Any], None]
) -> list[dict[str, float]]:
    """Metrics of three steps, before the last of which the last engine is killed."""
    settings = parse(overlay([*FLAGS, *flags, "--run-dir", str(path)]))
    updates: list[dict[str, float]] = []
    with open_session(settings, preflight(settings)) as session, session.open_logbook() as logbook:
        pool: Any = session.team.backend
        learner, *engines = pool._actors
        for step in session.steps_left():
            if step == 3:
                kill_engine(engines[-1])
            batch = session.sample(step)
            rows = [row for episode in batch.episodes for row in episode.trajectories]
            assert {row.weight_version for row in rows if row.role == "bob"} == {step - 1}
            credit = session.credit(batch)
            updates.append(session.update(batch, credit))
            session.record(step, batch, credit, updates[-1], logbook)
            session.checkpoint(step)
        assert pool._bases[0].transfer.learner is learner
        assert (learner.restarts, engines[-1].restarts) == (0, 1)
    return updates


@pytest.mark.slow
def test_engines_apart_have_the_learners_probabilities_after_each_update_and_a_kill(
    monkeypatch: pytest.MonkeyPatch,
    write_shaped: Callable[..., Path],
    tmp_path: Path,
    kill_engine: Callable[[Any], None],
) -> None:
    monkeypatch.syspath_prepend(str(Path(__file__).parent))
    import store_group

    for room in ("bases", "pool"):
        monkeypatch.setattr(f"coterie.extras.cluster.{room}.EngineWorker", store_group.EngineWorker)
    monkeypatch.setattr("coterie.extras.cluster.bases.Sender", store_group.Sender)
    monkeypatch.setattr("coterie.agents.vllm.settings._place", lambda *_: "cuda:0")
    # What a CPU's engine need not be given in another shape.
    shape = {"head_dim": 32, "tie_word_embeddings": False, "max_position_embeddings": 1024}
    folder = write_shaped(tmp_path / "bob", "qwen3", **shape)
    flags = ("--agents.bob.model", str(folder), "--agents.bob.tuning", "full")
    # Random weights earn nothing: entropy moves them.
    two = ("--agents.bob.engine-replicas", "2", "--cluster.cpus", "0.25")
    more = ("--algo.entropy-coefficient", "0.1")
    for metrics in play((*flags, *two, *more), tmp_path / "run", kill_engine):
        assert metrics["learner/bob/mismatch/mean"] < 1e-6
        assert metrics["learner/bob/staleness"] == 0


@pytest.mark.gpu
@pytest.mark.parametrize("address", ["none", "local"])
@pytest.mark.parametrize(
    ("gpus", "flags"),
    [
        (2, ("--agents.bob.engine-replicas", "1")),
        (3, ("--agents.bob.engine-replicas", "2")),
        (3, ("--agents.bob.learner-devices", "2")),
        (5, ("--agents.bob.engine-replicas", "2", "--agents.bob.tensor-parallel", "2")),
    ],
)
def test_weights_go_from_gpu_to_gpu(
    tmp_path: Path,
    address: str,
    gpus: int,
    flags: tuple[str, ...],
    kill_engine: Callable[[Any], None],
) -> None:
    if torch.cuda.device_count() < gpus:
        pytest.skip(f"not run: needs {gpus} GPUs")
    if address == "local" and find_spec("ray") is None:
        pytest.skip("not run: Ray is not installed")
    # Steps that weights in bfloat16 show: without a transfer the mismatch is many times the bound.
    more = ("--learner.lr", "0.01", "--agents.bob.tuning", "full", "--vllm.gpu-memory", "0.3")
    said = (*flags, *more, "--cluster.address", address)
    for metrics in play(said, tmp_path / "run", kill_engine):
        assert metrics["learner/bob/mismatch/mean"] < 5e-2
        assert metrics["learner/bob/staleness"] == 0
