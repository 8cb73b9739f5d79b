"""The doctor's arithmetic, by hand."""

import dataclasses
import io
import math
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from rich.console import Console

from coterie.extras.ops.doctor import memory
from coterie.extras.ops.doctor.finding import Finding, judge, table
from coterie.extras.ops.doctor.parity import (
    check_neutrality,
    check_parity,
    parity,
    surplus_z,
    tolerance,
)
from coterie.extras.ops.doctor.rescore import TokenScores, variance
from coterie.extras.ops.doctor.update import Movement, check_movement, made_up
from coterie.extras.ops.footprint import Footprint

ROOT = Path(__file__).parents[4]
LN2 = math.log(2)
NAN = math.nan


def scored(sampler: list[float], learner: list[float]) -> TokenScores:
    zeros = np.zeros(len(learner))
    return TokenScores(np.array(sampler), np.array(learner), zeros, zeros)


def test_parity_is_taken_where_the_sampler_could_tell() -> None:
    # Delta = -0.1, 0.2; k3 = ((e^-0.1 - 1 + 0.1) + (e^0.2 - 1 - 0.2)) / 2
    #                       = (0.004837418 + 0.021402758) / 2
    difference = parity(np.array([-1.0, -2.0, NAN]), np.array([-1.1, -1.8, -5.0]))
    assert difference is not None
    assert difference.mean == pytest.approx(0.15)
    assert difference.largest == pytest.approx(0.2)
    assert difference.k3 == pytest.approx(0.013120088)
    assert difference.tokens == 2
    assert parity(np.array([NAN]), np.array([-1.0])) is None


def test_parity_is_wrong_above_the_tolerance_of_the_number_format() -> None:
    assert tolerance(torch.float32) == 1e-3
    assert tolerance(torch.bfloat16) == 5e-2
    pair = scored([-1.0, -1.0], [-1.02, -1.02])
    for limit, verdict in [(1e-3, "wrong"), (5e-2, "ok")]:
        assert check_parity("parity", "a", pair, limit, way_out="x").verdict == verdict
    lost = scored([-1.0], [NAN])
    assert check_parity("parity", "a", lost, 1.0, way_out="x").verdict == "wrong"
    blind = scored([NAN], [-1.0])
    assert check_parity("parity", "a", blind, 1.0, way_out="x").verdict == "not measured"


def test_the_surplus_of_four_likeliest_tokens() -> None:
    # p = (1/2, 1/4, 1/4): H = 1.5 ln 2, Var[log p] = 2.5 ln^2 2 - (1.5 ln 2)^2 = 0.25 ln^2 2.
    # Four times the first token: sum(log p + H) = 4 (0.5 ln 2) = 2 ln 2; sd = sqrt(4 * 0.25) ln 2.
    logp = np.full(4, -LN2)
    z = surplus_z(logp, np.full(4, 1.5 * LN2), np.full(4, 0.25 * LN2**2))
    assert z == pytest.approx(2.0)


def test_the_variance_of_log_p() -> None:
    logits = torch.tensor([[0.5, 0.25, 0.25], [1.0, 0.0, 0.0]]).log()
    variances = variance(logits, lambda hidden: hidden, temperature=1.0)
    # One certain token: nothing varies.
    assert variances.tolist() == pytest.approx([0.25 * LN2**2, 0.0])
    # At T = 1/2 p = (2/3, 1/6, 1/6): two values ln 4 apart, p (1 - p) ln^2 4.
    cold = variance(logits[:1], lambda hidden: hidden, temperature=0.5)
    assert float(cold) == pytest.approx(2 / 9 * (2 * LN2) ** 2)


@pytest.mark.parametrize(("surplus", "verdict"), [(3.9, "ok"), (4.1, "wrong"), (-4.1, "wrong")])
def test_four_standard_deviations_are_wrong(surplus: float, verdict: str) -> None:
    # 100 tokens of variance 1: sd 10; the surplus is spread over them.
    each = np.full(100, surplus / 10)
    scored = TokenScores(each, each, np.zeros(100), np.ones(100))
    assert check_neutrality("a", scored, filtered=False).verdict == verdict
    assert check_neutrality("a", scored, filtered=True).verdict == "not measured"


def test_few_tokens_tell_nothing() -> None:
    scored = TokenScores(np.full(19, 9.0), np.full(19, 9.0), np.zeros(19), np.ones(19))
    assert check_neutrality("a", scored, filtered=False).verdict == "not measured"


def test_made_up_advantages_replace_those_that_do_not_differ() -> None:
    assert made_up(np.zeros(3)).tolist() == [1.0, -1.0, 1.0]
    assert made_up(np.array([0.0, 0.5])).tolist() == [0.0, 0.5]


def test_what_a_step_takes() -> None:
    config = SimpleNamespace(
        num_hidden_layers=2,
        hidden_size=8,
        vocab_size=10,
        num_attention_heads=4,
        num_key_value_heads=2,
    )
    config.get_text_config = lambda: config
    assert memory.optimiser_bytes(100) == {"gradients": 100, "moments": 200}
    assert memory.optimiser_bytes(100, "8bit") == {"gradients": 100, "moments": 50}
    assert memory.optimiser_bytes(100, "paged-8bit") == {"gradients": 100, "moments": 0}
    # 5 rows * 7 tokens * 2 layers * 8 numbers (keys and values of 2 heads of 8 / 4) * 2 bytes
    assert memory.cache_bytes(config, 5, 7, 2) == 1120
    assert memory.engine_needs(["cpu", "cuda:0", "cpu"], 3) == 6 * 2**30


def test_a_probe_corrects_the_plan() -> None:
    gib = 2**30
    # Planned: 1 GiB of gradients, 2 of moments, 4 of activations. It took 9, so these were 6.
    probe = Footprint(0, 0, 0, 2 * gib, gib, 4 * gib, False, 0, 0, False)
    assert memory.corrected(10 * gib, probe, 9 * gib) == 15 * gib
    assert memory.corrected(10 * gib, probe, None) == 10 * gib
    assert memory.corrected(10 * gib, probe, 3 * gib) == 5 * gib  # never below a half
    small = Footprint(0, 0, 0, 0, 0, 2**20, False, 0, 0, False)
    assert memory.corrected(10 * gib, small, 3 * gib) == 10 * gib


def test_what_a_block_of_code_takes_is_measured() -> None:
    with memory.most_taken(torch.device("cpu")) as taken:
        torch.ones(64 << 20)
    # 64 Mi numbers of 4 bytes.
    assert taken == [pytest.approx(256 << 20, rel=0.1)]


@pytest.mark.slow
def test_memory_that_was_kept_counts_as_taken() -> None:
    code = """import torch; from coterie.cli.commands import run_command
from coterie.extras.ops.doctor import memory
def command():
    for _ in range(8): torch.ones(64 << 20)
    with memory.most_taken(torch.device("cpu")) as taken: torch.ones(64 << 20)
    print(*taken); return 0
run_command(command, program="p", interrupted="")"""
    command = [sys.executable, "-c", code]
    process = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    assert int(process.stdout) == pytest.approx(256 << 20, rel=0.1)


def test_memory_that_is_not_there_is_wrong() -> None:
    needed = {"gradients": 3 * 2**30, "moments": 0}
    finding = memory.check_memory("cpu", needed, 2 * 2**30)
    assert finding.verdict == "wrong"
    assert finding.measured == "3.0 GiB more (gradients 3.0 GiB) of 2.0 GiB free"
    assert memory.check_memory("cpu", needed, 4 * 2**30).verdict == "ok"
    assert memory.check_memory("cpu", needed, None).verdict == "not measured"


def test_free_memory_is_read_where_linux_says_it(tmp_path: Path) -> None:
    info = tmp_path / "meminfo"
    info.write_text("MemTotal:  9 kB\nMemAvailable:    3 kB\n")
    assert memory.available(info) == 3072
    assert memory.available(tmp_path / "missing") is None


def test_a_card_is_told_by_its_driver(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    def run(words: list[str], **_: object) -> SimpleNamespace:
        asked.append(words[1])
        return SimpleNamespace(stdout="24564 MiB\n")

    monkeypatch.setattr("subprocess.run", run)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "3,5")
    assert memory.card_bytes("cuda:1") == 24564 << 20
    assert memory.card_bytes("cuda:7") == 24564 << 20
    assert asked == ["--id=5", "--id=7"]
    monkeypatch.setattr("subprocess.run", lambda *_, **__: SimpleNamespace(stdout=""))
    assert memory.card_bytes("cuda:0") is None
    assert memory.card_bytes("cpu") == memory.available(Path("/proc/meminfo"), "MemTotal")


def test_the_table_shows_what_a_server_wrote_as_it_is() -> None:
    console = Console(width=120, record=True, file=io.StringIO())
    fine = judge("a", "x", "[red]1[/nope]", wrong=False, way_out="hidden")
    console.print(table([fine]))
    text = console.export_text()
    assert "[red]1[/nope]" in text
    assert "way out" not in text
    console.print(table([fine, Finding("b", "y", "2", "wrong", "say --this")]))
    assert "say --this" in console.export_text()


def test_weights_that_move() -> None:
    # Of four with a gradient three are another number; they are .02 each, in [2^-6, 2^-5), where
    # bfloat16 (8 bits) has steps of 2^-7 * 2^-6.
    movement = Movement(reached=4, moved=3, size=0.02, lr=1e-6, dtype=torch.bfloat16)
    assert (movement.share, movement.next_number) == (0.75, 2.0**-13)
    assert check_movement("a", movement).verdict == "ok"
    few = dataclasses.replace(movement, moved=1)
    assert check_movement("a", few).verdict == "wrong"
    assert check_movement("a", few).measured == (
        "25.0% of 4 with a gradient, at lr 1.0e-06; the others are about 2.0e-02, and the next "
        "bfloat16 is 1.2e-04 off"
    )
    nobody = dataclasses.replace(movement, reached=0, moved=0)
    assert check_movement("a", nobody).verdict == "not measured"
