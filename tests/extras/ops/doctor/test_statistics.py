"""The doctor's arithmetic, by hand."""

import dataclasses
import io
import math
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from rich.console import Console

from coterie.extras.ops import machine
from coterie.extras.ops.doctor.finding import Finding, judge, table
from coterie.extras.ops.doctor.memory import check_memory, free_by_device
from coterie.extras.ops.doctor.parity import (
    check_neutrality,
    check_parity,
    parity,
    surplus_z,
    tolerance,
)
from coterie.extras.ops.doctor.rescore import TokenScores, variance
from coterie.extras.ops.doctor.update import Movement, check_movement, made_up
from coterie.extras.ops.plan import DevicePlan, MemoryPart

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
    for nothing in (scored([NAN], [-1.0]), None):
        assert check_parity("parity", "a", nothing, 1.0, way_out="x").verdict == "not measured"


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


def test_memory_that_is_not_there_is_wrong() -> None:
    gib = 2**30
    parts = (
        MemoryPart("weights", "alice", 8 * gib, loaded=8 * gib),
        MemoryPart("moments", "alice", gib),
        MemoryPart("gradients", "alice", 2 * gib, "learning"),
        MemoryPart("cache", "alice", 2**20, "sampling"),
    )
    device = DevicePlan("cpu", None, parts)
    assert (device.most, device.added) == (11 * gib, 3 * gib)
    finding = check_memory(device, 2 * gib)
    assert finding.verdict == "wrong"
    assert finding.measured == (
        "3.0 GiB more (moments 1.0 GiB, gradients 2.0 GiB, cache 1 MiB) of 2.0 GiB free"
    )
    assert check_memory(device, 4 * gib).verdict == "ok"
    assert check_memory(device, None).verdict == "not measured"


def test_memory_is_read_where_linux_says_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(machine, "_MEMINFO", tmp_path / "meminfo")
    assert machine.card_bytes("cpu") is None
    (tmp_path / "meminfo").write_text("MemTotal:  9 kB\nMemAvailable:    3 kB\n")
    assert machine.card_bytes("cpu") == 9216
    assert free_by_device([torch.device("cpu")]) == {"cpu": 3072}


def test_a_card_is_told_by_its_driver(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    def run(words: list[str], **_: object) -> SimpleNamespace:
        asked.append(words[1])
        return SimpleNamespace(stdout="24564 MiB\n")

    monkeypatch.setattr("subprocess.run", run)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "3,5")
    assert machine.card_bytes("cuda:1") == 24564 << 20
    assert machine.card_bytes("cuda:7") == 24564 << 20
    assert asked == ["--id=5", "--id=7"]
    monkeypatch.setattr("subprocess.run", lambda *_, **__: SimpleNamespace(stdout=""))
    assert machine.card_bytes("cuda:0") is None


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
