"""Serving a model: what is refused, what vLLM is told, and how a run names the server."""

import json
import os
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from peft import LoraConfig, get_peft_model
from safetensors.torch import load_file
from transformers import AutoModelForCausalLM

from coterie.agents.models import number_format
from coterie.agents.models.locate import TINY
from coterie.agents.models.spec import LoraSpec
from coterie.agents.vllm.export import head_dim_of
from coterie.datatypes import UserError
from coterie.experts import ServerSettings
from coterie.experts.naming import read_player
from coterie.extras.ops import serve
from coterie.extras.ops.serve import (
    ServeSettings,
    arguments,
    check_serving,
    player,
    served_name,
    system_of,
)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def test_what_is_printed_is_what_a_run_reads(tmp_path: Path) -> None:
    said = player(ServeSettings("tiny:expert", port=8011), chat=False)
    assert said == "server:http://127.0.0.1:8011/v1?model=tiny:expert&api=completions"
    read = read_player(said)
    assert isinstance(read, ServerSettings)
    assert (read.endpoint, read.model) == ("http://127.0.0.1:8011/v1/completions", "tiny:expert")
    odd = ServeSettings("a/b", host="::1", name="50% & more=x?")
    read = read_player(player(odd, chat=True))
    assert isinstance(read, ServerSettings)
    assert read.model == "50% & more=x?"
    assert read.endpoint == "http://[::1]:8000/v1/chat/completions"
    everywhere = player(ServeSettings("a/b", host="0.0.0.0", public=True), chat=True)
    assert everywhere == f"server:http://{socket.gethostname()}:8000/v1?model=a/b"
    assert served_name(ServeSettings(str(tmp_path))) == tmp_path.name


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"host": "0.0.0.0"}, "say --public"),
        ({"host": "somewhere.example"}, "say --public"),
        ({"public": True}, "this machine alone"),
        ({"port": 0}, "port is 0; it must be 1 to 65535"),
        ({"host": "192.0.2.1", "public": True}, "cannot listen on 192.0.2.1"),
    ],
)
def test_what_is_refused(changes, reason) -> None:
    with pytest.raises(UserError, match=reason):
        check_serving(ServeSettings("tiny:expert", **changes))


def test_a_run_s_model_brings_its_system_message(tmp_path: Path) -> None:
    agents = {"alice": {"model": "m", "trained": True, "system": "Be brief."}}
    (tmp_path / "config.json").write_text(json.dumps({"agents": agents}))
    (tmp_path / "final" / "alice").mkdir(parents=True)
    assert system_of(str(tmp_path / "final" / "alice")) == "Be brief."
    assert system_of(str(tmp_path / "final" / "bob")) == ""
    assert system_of(str(tmp_path / "alice")) == ""
    assert system_of("tiny:alice") == ""


def test_a_port_that_is_taken_and_one_that_is_free() -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        with pytest.raises(UserError, match="choose another --port"):
            check_serving(ServeSettings("tiny:expert", port=port))
    check_serving(ServeSettings("tiny:expert", port=port, host="localhost"))


def test_what_vllm_is_told() -> None:
    settings = ServeSettings(
        "a/b", context=64, revision="v1", trust_remote_code=True, name="x", max_sequences=3,
        tensor_parallel=2,
    )  # fmt: skip
    said = " ".join(arguments(settings, "a/b", gpu=True))
    for part in (
        "--model a/b --served-model-name x --host 127.0.0.1 --port 8000",
        "--max-num-seqs 3",
        "--generation-config vllm",
        "--dtype auto --gpu-memory-utilization 0.4",
        "--tensor-parallel-size 2",
        "--max-model-len 64 --revision v1 --trust-remote-code",
    ):
        assert part in said
    said = " ".join(arguments(ServeSettings("tiny:expert"), "/copy", gpu=False))
    assert "--model /copy --served-model-name tiny:expert" in said
    assert "--dtype float32 --enforce-eager --no-enable-chunked-prefill" in said
    loud = arguments(ServeSettings("m", log="INFO", dtype="bfloat16"), "m", gpu=False)
    assert "--disable-uvicorn-access-log" not in loud
    assert loud[loud.index("--dtype") + 1] == "bfloat16"


@pytest.mark.parametrize(
    ("model", "flag", "dtype"),
    [
        ("tiny:expert", "avx512_bf16", "float32"),
        ("org/large", "avx512_bf16", "bfloat16"),
        ("org/large", None, "float32"),
    ],
)
def test_on_a_cpu_it_computes_in_what_the_processor_is_fast_at(
    monkeypatch: pytest.MonkeyPatch, model: str, flag: str | None, dtype: str
) -> None:
    monkeypatch.setattr(number_format, "native_bfloat16", lambda: flag)
    said = arguments(ServeSettings(model), model, gpu=False)
    assert said[said.index("--dtype") + 1] == dtype


def test_without_vllm_and_with_a_wrong_flag(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(serve, "find_spec", lambda name: None)
    port = str(free_port())
    assert serve.main(["tiny:expert", "--port", port]) == 2
    assert "needs vLLM, which is not installed" in capsys.readouterr().err
    assert serve.main(["tiny:expert", "--host", "0.0.0.0"]) == 2
    assert "--public" in capsys.readouterr().err

    monkeypatch.setattr(serve, "find_spec", lambda name: object())
    assert serve.main(["tiny:nobody", "--port", port]) == 2
    assert "unknown tiny model" in capsys.readouterr().err


def test_more_gpus_than_there_are(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(serve, "find_spec", lambda name: object())
    monkeypatch.setattr("torch.cuda.device_count", lambda: 1)
    said = ["tiny:expert", "--port", str(free_port()), "--tensor-parallel"]
    assert serve.main([*said, "2"]) == 2
    assert "--tensor-parallel 2 needs that many GPUs, and this machine has 1" in (
        capsys.readouterr().err
    )


def test_narrow_heads_are_served_wider_from_memory_that_is_freed(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    seen: list[Path] = []
    monkeypatch.setattr(serve, "find_spec", lambda name: object())
    monkeypatch.setattr(os, "environ", dict(os.environ))

    def fake(said: list[str]) -> None:
        folder = Path(said[said.index("--model") + 1])
        assert head_dim_of(json.loads((folder / "config.json").read_text())) == 96
        seen.append(folder)
        raise KeyboardInterrupt

    monkeypatch.setattr(serve, "_run_vllm", fake)
    monkeypatch.setattr(serve, "_announce", lambda settings, chat: print("chat", chat))
    assert serve.main(["tiny:expert", "--port", str(free_port())]) == 0
    assert not seen[0].exists()
    assert "chat False" in capsys.readouterr().out


LAYER = "base_model.model.model.layers.0.self_attn.q_proj"


def test_what_a_run_has_trained_is_served_on_its_model(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "final" / "bob"
    model = AutoModelForCausalLM.from_pretrained(TINY / "bob")
    get_peft_model(model, LoraConfig(r=12, target_modules=["q_proj", "v_proj"])).save_pretrained(
        str(folder)
    )
    config = json.loads((folder / "adapter_config.json").read_text())
    (folder / "adapter_config.json").write_text(
        json.dumps(config | {"base_model_name_or_path": "tiny:bob"})
    )
    seen: list[list[str]] = []
    monkeypatch.setattr(serve, "find_spec", lambda name: object())
    monkeypatch.setattr(serve, "_announce", lambda settings, chat: None)
    monkeypatch.setattr(os, "environ", dict(os.environ))

    def fake(said: list[str]) -> None:
        seen.append(said)
        # Its heads are as wide as those of the copy of its model.
        copy = json.loads((Path(said[said.index("--model") + 1]) / "config.json").read_text())
        times = head_dim_of(copy) // head_dim_of(model.config.to_dict())
        lora = Path(json.loads(said[said.index("--lora-modules") + 1])["path"])
        wide, narrow = (
            load_file(at / "adapter_model.safetensors")[f"{LAYER}.lora_B.weight"]
            for at in (lora, folder)
        )
        assert len(wide) == times * len(narrow) > len(narrow)

    monkeypatch.setattr(serve, "_run_vllm", fake)
    assert serve.main([str(folder), "--port", str(free_port())]) == 0
    (said,) = seen
    assert Path(said[said.index("--model") + 1]).name == "bob"
    assert said[said.index("--served-model-name") + 1] == "bob:base"
    assert said[said.index("--max-lora-rank") + 1] == "16"
    assert "--enable-lora" in said
    assert json.loads(said[said.index("--lora-modules") + 1])["name"] == "bob"


@pytest.mark.parametrize(
    "odd", [{"use_dora": True}, {"alpha_pattern": {"q_proj": 64}}, {"init_lora_weights": "pissa"}]
)
def test_an_adapter_that_vllm_does_not_take(tmp_path: Path, odd: dict[str, Any]) -> None:
    config = {"r": 4, "bias": "none", **odd}
    (tmp_path / "adapter_config.json").write_text(json.dumps(config))
    with pytest.raises(UserError, match="merge it with its model first"):
        serve.adapter_arguments("bob", tmp_path)


def test_a_run_s_adapter_is_served_on_the_commit_it_was_trained_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "final" / "bob"
    LoraConfig(base_model_name_or_path="org/base").save_pretrained(str(folder))
    (folder / "adapter_model.safetensors").touch()
    agents = {"bob": {"model": "org/base", "trained": True, "revision": "c0ffee"}}
    (tmp_path / "config.json").write_text(json.dumps({"agents": agents}))
    monkeypatch.setattr(serve, "check_model", lambda spec, trust: None)
    spec = serve.checked_spec(ServeSettings(str(folder)))
    assert (spec.model, spec.revision) == ("org/base", "c0ffee")
    assert spec.lora == LoraSpec(adapter=str(folder))


def test_a_process_ends_with_the_one_that_started_it() -> None:
    child = (
        "from coterie.agents.vllm.processes import end_with_parent; import time; "
        "end_with_parent(0.1); print('up', flush=True); time.sleep(20); print('late')"
    )
    parent = (
        "import subprocess, sys; p = subprocess.Popen([sys.executable, '-c', sys.argv[1]]); "
        "p.wait()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", parent, child], stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "up\n"
        process.kill()
        # The pipe is closed once its last writer, the child, has gone.
        assert process.stdout.read() == ""
