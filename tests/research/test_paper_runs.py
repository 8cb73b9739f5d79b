"""The papers' presets, from the command line to the exported model: on models of random weights
with the architecture, the tokenizer and the chat template of the paper's, and rows like its sets'.
Left out are presets that differ from one here in the size of a model or the name of a set alone.

Flags cut counts and lengths, and name the models (:mod:`miniatures.rehearsal`); all else is the
preset's.
"""

import json
import math
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file
from transformers import AutoModelForCausalLM

from coterie import train
from coterie.cli.command_line import parse
from coterie.envs.presets import published
from coterie.problems.prepare import prepare
from miniatures import rehearsal
from miniatures.shapes import build
from miniatures.stand_ins import ROWS_OF_A_SET, data_sets, expert


@pytest.fixture(autouse=True)
def hub() -> Iterator[None]:
    """Data sets of the hub: rows with the columns of theirs."""
    with data_sets():
        yield


@pytest.fixture(scope="session")
def shapes(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder of models of random weights; each is written once."""
    return tmp_path_factory.mktemp("shapes")


ENTROPY = ("--algo.entropy-coefficient", "0.001")
"""Random weights earn the same in all traces of a group; with it, they learn all the same."""


def steps(run: Path) -> list[dict[str, float]]:
    return [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]


@pytest.mark.slow
@pytest.mark.parametrize(
    "name",
    [
        "core-reasoning-math",
        "corea-llama-8b",
        "core-qwen-gsm8k",
        "corea-qwen-32b",
        "eapo-r1-7b",
        "eapo-qwen3-8b",
        "sd-e2-gpqa",
    ],
)
def test_a_preset_from_the_command_line_to_the_exported_model(
    name: str, shapes: Path, tmp_path: Path
) -> None:
    settings, run = parse(["--preset", name]), tmp_path / "run"
    with expert() as port:
        models = rehearsal.models_of(name, shapes, 1e-4, port)
        for phase in rehearsal.phases(name, models, tmp_path, ENTROPY):
            assert phase.run() == 0, phase.name

    lines = steps(run)
    assert [line["step"] for line in lines] == [1, 2]
    assert json.loads((run / "evaluation" / "again.json").read_text())
    assert json.loads((tmp_path / "compared" / "results.json").read_text())
    for role in rehearsal.learners_of(name):
        assert all(math.isfinite(line.get(f"learner/{role}/loss", 0.0)) for line in lines)
        if settings.rollout.top_p == 1:
            assert max(line.get(f"learner/{role}/mismatch/max", 0.0) for line in lines) < 1e-4
        assert any(line.get(f"learner/{role}/grad_norm", 0.0) > 0 for line in lines)
        final = run / "final" / role
        if settings.agents[role].tuning == "lora":
            own = load_file(final / "adapter_model.safetensors")
            assert any(tensor.any() for key, tensor in own.items() if "lora_B" in key)
        else:
            weights = AutoModelForCausalLM.from_pretrained(final).state_dict()
            old = AutoModelForCausalLM.from_pretrained(models[role]).state_dict()
            assert any(not torch.equal(weights[key], old[key]) for key in old)


@pytest.mark.parametrize(
    "name",
    {published()[name].settings["problems.train"].value: name for name in published()}.values(),
)
def test_a_presets_problems_are_read_as_they_stand(name: str, tmp_path: Path) -> None:
    """All settings of the problems are the preset's, but for the file that users make."""
    settings = parse(["--preset", name]).problems
    if settings.eval:
        path = tmp_path / "reference.jsonl"
        rows = ({"id": i, "problem": f"Add {i}.", "answer": i} for i in range(10))
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
        settings = replace(settings, eval=(*settings.eval[:2], str(path)))
    problems = prepare(settings)
    size = problems.train.source.size
    assert size is not None
    assert 0 < size <= (settings.limit or ROWS_OF_A_SET)
    assert len(problems.evaluation) >= min(settings.held_out or 1, 10)


def test_a_model_whose_code_comes_with_it_is_refused_until_that_is_trusted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Phi-3-small (CoRe, table 4)."""
    folder = build("microsoft/Phi-4-mini-reasoning", tmp_path / "phi-3-small")
    config = json.loads((folder / "config.json").read_text()) | {"model_type": "phi3small"}
    config["auto_map"] = {
        "AutoConfig": "configuration_phi3_small.Phi3SmallConfig",
        "AutoModelForCausalLM": "modeling_phi3_small.Phi3SmallForCausalLM",
    }
    (folder / "config.json").write_text(json.dumps(config))
    flags = ("--agents.alice.model", str(folder), "--run-dir", str(tmp_path / "run"))
    assert train.main(["--preset", "sd-e2-phi-7b-aime", *flags]) == 2
    assert "say --agents.alice.trust-remote-code" in capsys.readouterr().err
