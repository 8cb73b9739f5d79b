"""More processes than a machine can hold: refused in one line, before torch is imported."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from peft import LoraConfig

from coterie import train
from coterie.agents.team.settings import AgentSettings
from coterie.datatypes import UserError
from coterie.extras.cluster import resources
from coterie.extras.cluster.resources import check_machine
from coterie.extras.cluster.settings import ClusterSettings

CORES = os.cpu_count() or 1
WAY_OUT = "lower --cluster.cpus, --agents.ROLE.learner-devices or"
MANY = {"engine_replicas": 1000}


def agents(**more: object) -> dict[str, AgentSettings]:
    return {"alice": AgentSettings("tiny:alice"), "bob": AgentSettings("tiny:bob", **more)}  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("flags", "named"),
    [
        (
            # Bob's learner and engines; alice's learner answers for her.
            ["--agents.bob.engine-replicas", "1000"],
            "1002 processes (learner of alice, learner of bob, 1000 x engine of bob)",
        ),
        (
            # Beside several ranks there is one engine at least.
            ["--agents.bob.learner-devices", "99"],
            "101 processes (learner of alice, 99 x learner of bob, engine of bob)",
        ),
    ],
)
def test_the_refusal_counts_the_processes(
    flags: list[str], named: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert train.main([*flags, "--steps", "1"]) == 2
    said = capsys.readouterr().err
    assert f"train.py: this machine cannot hold this run: {named} need " in said
    assert WAY_OUT in said
    assert said.count("\n") == 1
    assert len(said) < 400


def test_torch_is_not_imported_for_it() -> None:
    flags = ["--agents.bob.engine-replicas", "1000"]
    code = f"import sys; from coterie import train; assert train.main({flags}) == 2"
    code += "; print('torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False"]


def test_memory_counts_where_cores_are_shared(monkeypatch: pytest.MonkeyPatch) -> None:
    # 1002 x 200 MiB is 196 GiB.
    sizes = {"SC_PAGE_SIZE": 4096, "SC_PHYS_PAGES": 100 * 2**18}
    monkeypatch.setattr(resources.os, "sysconf", sizes.__getitem__)
    tiny = ClusterSettings(cpus=0.0001)
    with pytest.raises(UserError, match=r"need at least 196 GiB of memory, and it has 100; lower"):
        check_machine(tiny, agents(**MANY))
    sizes["SC_PHYS_PAGES"] *= 2
    check_machine(tiny, agents(**MANY))


def test_a_run_that_fits_or_uses_a_cluster_passes() -> None:
    # Two learners and the engines.
    fitting = agents(engine_replicas=4 * CORES - 2)
    check_machine(ClusterSettings(), agents())
    check_machine(ClusterSettings(cpus=0.25), fitting)
    check_machine(ClusterSettings(address="auto"), agents(**MANY))
    with pytest.raises(UserError, match="cannot hold"):
        check_machine(ClusterSettings(address="local", cpus=0.5), fitting)


def test_roles_with_adapters_are_counted_as_if_they_shared() -> None:
    lora = AgentSettings("tiny:bob", tuning="lora", engine_replicas=1)
    counts = resources._least({"alice": lora, "bob": lora})
    assert counts == {"learner of adapters": 1, "engine of adapters": 1}


def test_only_models_are_counted_and_frozen_adapters_with_others(tmp_path: Path) -> None:
    LoraConfig(base_model_name_or_path="tiny:bob").save_pretrained(str(tmp_path))
    (tmp_path / "adapter_model.safetensors").touch()
    players = {
        "alice": AgentSettings("tiny:bob", tuning="lora"),
        "bob": AgentSettings(str(tmp_path), trained=False),
        "carol": AgentSettings("scripted:useless", trained=False),
        "dora": AgentSettings("server:http://x/v1?model=m", trained=False),
        "expert": AgentSettings("pool:scripted:useless|tiny:expert", trained=False),
    }
    assert resources._least(players) == {"learner of adapters": 1, "engine of expert|1": 1}
