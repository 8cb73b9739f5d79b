"""Every paper's preset, from the command line to the exported model: on models of random weights
with the architecture, the tokenizer and the chat template of the paper's, and rows like its sets'.

Flags cut counts and lengths, and name the models; all else is the preset's.
"""

import json
import math
import shutil
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import datasets
import pytest
import torch
from safetensors.torch import load_file
from transformers import AutoModelForCausalLM

from coterie import benchmark, train
from coterie.models.loading import load_team
from coterie.models.spec import LoraSpec, ModelSpec
from coterie.papers import PRESETS
from coterie.problems.prepare import prepare
from coterie.training.command_line import parse
from miniatures.shapes import build

ROWS = {
    "openai/gsm8k": lambda i: {
        "question": f"What is {i} + 1?",
        "answer": f"One more. #### {i % 4}",
    },
    "qwedsacf/competition_math": lambda i: {
        "problem": f"Find $x$ where $x - {i} = 1$.",
        "solution": f"So $x = \\boxed{{{i % 4}}}$.",
    },
    "TianHongZXY/aime-1983-2025": lambda i: {"problem": f"Find {i} mod 8.", "answer": str(i % 4)},
    "Idavidrein/gpqa": lambda i: {
        "Question": f"Which particle is number {i}?",
        "Correct Answer": f"quark {i}",
        **{f"Incorrect Answer {n}": f"lepton {i + n}" for n in (1, 2, 3)},
    },
    "openlifescienceai/medmcqa": lambda i: {
        "question": f"Which vitamin is number {i}?",
        **{f"op{letter}": f"{letter}{i}" for letter in "abcd"},
        "cop": i % 4,
    },
    "zwhe99/DeepMath-103K": lambda i: {
        "question": f"Compute the limit of {i}.",
        "final_answer": str(i % 4),
    },
    "BytedTsinghua-SIA/DAPO-Math-17k": lambda i: {
        "prompt": [{"role": "user", "content": f"Solve it.\n\nHow many of {i}?\n\nRemember."}],
        "reward_model": {"ground_truth": str(i % 4), "style": "rule"},
    },
    "math-ai/aime24": lambda i: {"problem": f"Count to {i}.", "solution": f"\\boxed{{{i % 4}}}"},
    "math-ai/aime25": lambda i: {"problem": f"Count down {i}.", "answer": str(i % 4)},
}
"""Data set on the hub -> its row number i."""
ROWS_OF_A_SET = 620
_EVALUATION = ("test", "validation")


@pytest.fixture(autouse=True)
def hub(monkeypatch: pytest.MonkeyPatch) -> None:
    """Data sets of the hub: rows with the columns of theirs."""

    def load_dataset(repo: str, *, name: Any, split: str, revision: Any) -> Any:
        start = 1000 if split in ("test", "validation") else 0
        return datasets.Dataset.from_list([ROWS[repo](start + i) for i in range(ROWS_OF_A_SET)])

    monkeypatch.setattr(datasets, "load_dataset", load_dataset)


@pytest.fixture(scope="session")
def shape(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], str]:
    """Hub id -> folder of a model of random weights like it; written once."""
    root = tmp_path_factory.mktemp("shapes")
    return cache(lambda name: str(build(name, root / name.replace("/", "--"))))


class Expert(BaseHTTPRequestHandler):
    """What EAPO's preset expects behind port 8000: it thinks, and answers 3."""

    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["content-length"])))
        assert asked["model"] == "expert"
        message = {"content": "<think>It may be 3.</think>\nAnswer: 3"}
        body = json.dumps({"choices": [{"message": message, "finish_reason": "stop"}]}).encode()
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing."""


@pytest.fixture
def expert() -> Iterator[str]:
    """The expert of EAPO's presets, at another port."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), Expert)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, args=(0.05,))
    thread.start()
    yield PRESETS["eapo-r1-7b"].models["expert"].replace(":8000", f":{server.server_port}")
    server.shutdown()
    thread.join()
    server.server_close()


_SHORT = ("--env.max-new-tokens", "24", "--env.eval-max-new-tokens", "24")
_FEW = ("--problems.held-out", "2")
# What cuts counts and lengths, by the environment.
CUT = {
    "core-teaching": (*_SHORT, *_FEW),
    "sd-e2": (*_SHORT, *_FEW),
    "corea-deferral": (
        *("--env.max-new-tokens", "24", "--env.eval-traces", "2", *_FEW),
        *("--rollout.problems-per-step", "4"),
    ),
    "eapo-consultation": (
        *("--env.max-new-tokens", "48", "--env.eval-samples", "2", "--env.group-size", "8"),
        *("--rollout.problems-per-step", "1", "--algo.generation-batch", "2"),
        # The competition's file is left out, as docs/presets.md says.
        *("--problems.eval", "aime24", "aime25", *_FEW),
    ),
}
ASKED = ("--questions", "2", "--samples", "2", "--max-new-tokens", "24", "--resamples", "20")


def named(name: str, shape: Callable[[str], str], expert: str) -> dict[str, str]:
    """Role -> its model, the paper's or what stands for it."""
    roles = parse(["--preset", name]).agents
    models = PRESETS[name].models.items()
    return {
        role: expert if what.startswith("server:") else shape(what)
        for role, what in models
        if role in roles
    }


def steps(run: Path) -> list[dict[str, float]]:
    return [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]


slow = pytest.mark.slow


@pytest.mark.parametrize(
    "name",
    [
        "sd-e2-ministral-8b-math",
        pytest.param("core-reasoning-math", marks=slow),
        pytest.param("corea-llama-8b", marks=slow),
        pytest.param("core-qwen-gsm8k", marks=slow),
        pytest.param("corea-qwen-7b", marks=slow),
        pytest.param("corea-qwen-1.5b", marks=slow),
        pytest.param("corea-qwen-32b", marks=slow),
        pytest.param("eapo-r1-7b", marks=slow),
        pytest.param("eapo-r1-14b", marks=slow),
        pytest.param("eapo-qwen3-8b", marks=slow),
        pytest.param("sd-e2-gpqa", marks=slow),
        pytest.param("sd-e2-reasoning-aime", marks=slow),
        pytest.param("sd-e2-qwen-7b-medmcqa", marks=slow),
    ],
)
def test_a_preset_from_the_command_line_to_the_exported_model(
    name: str, shape: Callable[[str], str], expert: str, tmp_path: Path
) -> None:
    models, run = named(name, shape, expert), tmp_path / "run"
    settings = parse(["--preset", name])
    env, learners = settings.choice.env, [r for r, a in settings.agents.items() if a.trained]
    flags = [part for role, what in models.items() for part in (f"--agents.{role}.model", what)]
    flags += [*CUT[env], "--run-dir", str(run)]
    assert train.main(["--preset", name, "--steps", "1", *flags]) == 0
    assert train.main(["--resume", str(run), "--steps", "2"]) == 0
    found = steps(run)
    assert [line["step"] for line in found] == [1, 2]
    for role in learners:
        assert all(math.isfinite(line.get(f"learner/{role}/loss", 0.0)) for line in found)
        if settings.rollout.top_p == 1:
            assert max(line.get(f"learner/{role}/mismatch/max", 0.0) for line in found) < 1e-4
    assert train.main(["--evaluate", str(run), "--samples", "2"]) == 0
    assert json.loads((run / "evaluation" / "again.json").read_text())

    out = ("--out", str(tmp_path / "compared"))
    first = learners[0]
    if env == "corea-deferral":
        who = ("--base", models["small"], "--large", models["large"])
        who += ("--corea", str(run)) if first == "small" else ()
        asked = ["corea", "--preset", name, *who, *ASKED, *out]
    elif env == "eapo-consultation":
        who = ("--base", models["policy"], "--expert", expert, "--eapo", str(run))
        few = ("--replies", "4", "--problems", "aime24", "--env.max-new-tokens", "24")
        few += ("--leap.max-new-tokens", "24", "--leap.block-tokens", "8")
        rest = [part for part in ASKED if part not in ("--max-new-tokens", "24")]
        asked = ["eapo", "--preset", name, *who, *rest, *few, *out]
    else:
        who = ("--policies", *(f"{role}={run}" for role in learners), f"base={models[first]}")
        who += ("--suite", "core") if len(learners) > 1 else ("--suite", env, "--role", first)
        asked = ["--preset", name, *who, *ASKED, *out]
    assert benchmark.main(asked) == 0
    assert json.loads((tmp_path / "compared" / "results.json").read_text())

    for role in learners:
        final, base, lora = (
            run / "final" / role,
            models[role],
            settings.agents[role].tuning == "lora",
        )
        # Where no group had a difference, nobody learned.
        learned = any(line.get(f"learner/{role}/grad_norm", 0.0) > 0 for line in found)
        assert learned or env != "corea-deferral"
        if lora:
            own = load_file(final / "adapter_model.safetensors")
            assert learned == any(one.any() for key, one in own.items() if "lora_B" in key)
            spec = ModelSpec(base, lora=LoraSpec(adapter=str(final)), device="cpu")
        else:
            weights = AutoModelForCausalLM.from_pretrained(final).state_dict()
            old = AutoModelForCausalLM.from_pretrained(base).state_dict()
            assert not learned or any(not torch.equal(weights[key], old[key]) for key in old)
            spec = ModelSpec(str(final), device="cpu")
        assert load_team({role: spec}, set())[role].codec.open("2 + 2")


@pytest.mark.parametrize(
    "name",
    {PRESETS[name].settings["problems.train"].value: name for name in PRESETS}.values(),
)
def test_a_presets_problems_are_read_as_they_stand(name: str, tmp_path: Path) -> None:
    """All settings of the problems are the preset's, but for the file that users make."""
    settings = parse(["--preset", name]).problems
    if settings.eval:
        path = tmp_path / "reference.jsonl"
        rows = ({"id": i, "problem": f"Add {i}.", "answer": i} for i in range(10))
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
        settings = replace(settings, eval=(*settings.eval[:2], str(path)))
    found = prepare(settings)
    size = found.train.source.size
    assert size is not None
    assert 0 < size <= (settings.limit or ROWS_OF_A_SET)
    assert len(found.evaluation) >= min(settings.held_out or 1, 10)


def test_a_model_whose_code_comes_with_it_is_refused_until_that_is_trusted(
    shape: Callable[[str], str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Phi-3-small (CoRe, table 4)."""
    folder = tmp_path / "phi-3-small"
    shutil.copytree(shape("microsoft/Phi-4-mini-reasoning"), folder)
    config = json.loads((folder / "config.json").read_text()) | {"model_type": "phi3small"}
    config["auto_map"] = {
        "AutoConfig": "configuration_phi3_small.Phi3SmallConfig",
        "AutoModelForCausalLM": "modeling_phi3_small.Phi3SmallForCausalLM",
    }
    (folder / "config.json").write_text(json.dumps(config))
    flags = ("--agents.alice.model", str(folder), "--run-dir", str(tmp_path / "run"))
    assert train.main(["--preset", "sd-e2-phi-7b-aime", *flags]) == 2
    assert "say --agents.alice.trust-remote-code" in capsys.readouterr().err
