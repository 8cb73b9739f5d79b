"""What is refused before Ray is started."""

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from coterie.cli.command_line import parse
from coterie.datatypes import UserError
from coterie.extras.cluster.actor import Cluster
from coterie.extras.cluster.settings import ClusterSettings
from coterie.training.config.preflight import check_together, preflight

HERE = "coterie.extras.cluster.checks.find_spec"


@pytest.mark.parametrize(
    ("address", "shares"),
    [("none", True), ("local", True), ("auto", False), ("10.0.0.7:6379", False)],
)
def test_addresses_and_who_writes_checkpoints(address: str, shares: bool) -> None:
    assert ClusterSettings(address).used == (address != "none")
    assert ClusterSettings(address).shares_disk == shares
    assert ClusterSettings(address, checkpoints="shared").shares_disk
    assert not ClusterSettings(address, checkpoints="driver").shares_disk


@pytest.mark.parametrize("address", ["", "ray://head:10001", "head", "head:port"])
def test_an_invalid_address_is_refused(address: str) -> None:
    with pytest.raises(UserError, match=r"--cluster\.address .* is not an address"):
        ClusterSettings(address)


LOCAL = "--cluster.address local"
BOB = "--agents.bob"
TWO = f"{BOB}.learner-devices 2"
DOCTOR = "--doctor examines models in this process"


@pytest.mark.parametrize(
    ("flags", "sentence"),
    [
        (f"{LOCAL} --doctor", DOCTOR),
        (
            f"{LOCAL} {BOB}.device cuda:1",
            f"{BOB}.device cuda:1: with --cluster.address each process is given its GPU",
        ),
        (
            f"{LOCAL} {BOB}.engine-device cuda:1",
            f"{BOB}.engine-device cuda:1: with --cluster.address each process is given",
        ),
        (
            f"{LOCAL} {BOB}.no-trained {BOB}.model scripted:oracle {BOB}.engine-replicas 1",
            "a script or a server has no engine",
        ),
        (
            f"{LOCAL} --engine vllm --vllm.sleep-level 1 {BOB}.device cuda {BOB}.engine-replicas 1",
            f"leave it out, or {BOB}.engine-replicas",
        ),
        (
            f"--engine vllm --vllm.weights transfer {BOB}.engine-replicas 2 {BOB}.device cpu",
            "--vllm.weights transfer needs every engine on a GPU",
        ),
        (f"{BOB}.engine-replicas 2 --doctor", f"{DOCTOR}: leave out --agents.ROLE.engine-replicas"),
        (f"{BOB}.tensor-parallel 2", "tensor-parallel needs --engine vllm"),
        (f"{TWO} {BOB}.no-trained", f"{BOB}.learner-devices is for a role that learns"),
        (
            f"{TWO} --learner.moments 8bit",
            "--learner.moments 8bit cannot be sharded: leave it at float32",
        ),
        (f"{TWO} {BOB}.dtype nf4", f"{BOB}.dtype nf4 cannot be sharded: leave it out"),
        (
            f"{LOCAL} --engine vllm {BOB}.dtype nf4 {BOB}.engine-replicas 1",
            f"{BOB}.dtype nf4 has its vLLM engine beside its learner",
        ),
        (f"{TWO} --doctor", f"{DOCTOR}: leave out --agents.ROLE.learner-devices"),
        ("--cluster.cpus 0.5", "this run has none: leave them out, or say --cluster.address"),
    ],
)
def test_combinations_are_refused_with_a_sentence(
    monkeypatch: pytest.MonkeyPatch, flags: str, sentence: str
) -> None:
    for place in (HERE, "coterie.agents.vllm.settings.find_spec"):
        monkeypatch.setattr(place, lambda name: object())
    with pytest.raises(UserError) as refused:
        preflight(parse(flags.split()))
    assert sentence in str(refused.value)


@pytest.mark.parametrize("flags", ["--vllm.weights transfer", "--vllm.sleep-level 1"])
def test_gpus_that_this_node_does_not_have_are_left_to_the_cluster(
    monkeypatch: pytest.MonkeyPatch, fake_cluster: Any, play: Any, tmp_path: Path, flags: str
) -> None:
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    monkeypatch.setattr("coterie.agents.vllm.settings.find_spec", lambda name: object())
    given = [*LOCAL.split(), "--engine", "vllm", *flags.split()]
    check_together(parse(given))
    # A cluster that has none says so before it starts a process.
    with pytest.raises(UserError, match="needs every engine on a GPU"):
        play(tmp_path / "run", *given)
    assert fake_cluster.made == []


def test_the_number_of_devices_may_change_when_a_run_is_taken_up(tmp_path: Path) -> None:
    settings = parse(flags := ["--agents.bob.learner-devices", "2"])
    (tmp_path / "config.json").write_text(json.dumps(settings.plain()))
    resume = ["--resume", str(tmp_path)]
    assert parse(resume).agents == settings.agents
    # Settings of the processes that it had wait for others.
    check_together(parse([*resume, "--cluster.cpus", "0.5", flags[0], "1"]))
    assert parse([*resume, flags[0], "4"]).agents["bob"].learner_devices == 4


def test_engines_apart_stay_with_a_cluster_that_is_left_unless_said(tmp_path: Path) -> None:
    resume = ["--resume", str(tmp_path)]

    def replicas(first: str, *then: str) -> int:
        said = ["--agents.bob.engine-replicas", "2", "--cluster.address", first]
        (tmp_path / "config.json").write_text(json.dumps(parse(said).plain()))
        return parse([*resume, *then]).agents["bob"].engine_replicas

    none = ("--cluster.address", "none")
    assert replicas("none") == replicas("local") == replicas("none", *none) == 2
    assert replicas("local", *none) == 0
    assert replicas("local", *none, "--agents.bob.engine-replicas", "3") == 3


def test_a_missing_ray_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(HERE, lambda name: None)
    with pytest.raises(UserError, match=r'pip install -e "\.\[ray\]"'):
        preflight(parse(["--cluster.address", "auto"]))


def test_ray_that_was_imported_before_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", object())
    monkeypatch.delenv("RAY_AUTH_TOKEN", raising=False)
    with pytest.raises(UserError, match="in a process that has not imported ray"):
        Cluster(ClusterSettings("local"))
