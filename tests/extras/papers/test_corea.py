"""The comparison of COREA's systems, end to end on the shipped models."""

import json
from pathlib import Path
from typing import Any

import pytest

from coterie import benchmark, train


def run(*flags: str) -> int:
    return benchmark.main(["corea", *flags])


@pytest.mark.usefixtures("drawn")
def test_a_comparison_has_every_row_and_samples_once(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "out"
    small = ("--questions", "24", "--fit-questions", "40", "--resamples", "50", "--out", str(out))
    trained = [f"--{name}=tiny:small" for name in ("rlvr", "brier", "corea")]
    quick = ("--router-epochs", "1")
    assert run(*trained, *small, *quick) == 0
    text = capsys.readouterr().out
    for label in ("RLVR-Probe", "Router+RLVR", "COREA", "oracle", "random, as often"):
        assert label in text
    results = json.loads((out / "results.json").read_text())
    assert results["systems"]["oracle"]["accuracy"]["value"] >= max(
        results["systems"][name]["accuracy"]["value"] for name in ("corea", "llm", "never")
    )
    assert results["systems"]["always"]["accuracy"] == results["systems"]["llm"]["accuracy"]
    assert results["systems"]["random"]["random_gain"]["value"] == pytest.approx(0, abs=1e-6)
    assert set(results["curves"]) >= {"corea", "rlvr-probe", "router", "slm-isotonic"}
    curve = results["curves"]["corea"]
    assert len(curve["threshold"]) == len(curve["accuracy"]) == len(curve["cost"])
    assert 0 <= curve["chosen_threshold"] <= curve["threshold"][-1]
    for picture in ("reliability.png", "accuracy_cost.png", "threshold.png"):
        assert (out / picture).stat().st_size > 10_000

    # A second look samples nothing.
    def sampled(*_: object, **__: object) -> None:
        raise AssertionError("sampled again")

    monkeypatch.setattr("coterie.evaluation.compare.sample_responses.sample", sampled)
    assert run(*trained, *small, "--systems", "corea", "--threshold", "cost") == 0
    again = json.loads((out / "results.json").read_text())
    assert list(again["systems"]) == ["corea"]
    assert again["systems"]["corea"]["auroc"] == results["systems"]["corea"]["auroc"]


def test_stop_strings_end_responses(tmp_path: Path) -> None:
    few = ("--questions", "4", "--samples", "1", "--resamples", "10", "--out", str(tmp_path))
    assert run("--systems", "slm", *few, "--stop", "}") == 0
    assert run("--systems", "slm", *few) == 0
    ends = {}
    for path in (tmp_path / "responses").glob("*/base-*.jsonl"):
        first, *records = map(json.loads, path.read_text().splitlines())
        stops = first["identity"]["settings"]["stop"]
        ends[len(stops)] = [record["text"].strip() for record in records]
    assert all(text.endswith("}") and "confidence" not in text for text in ends[1])
    assert all("confidence" in text for text in ends[11])


def test_a_run_brings_its_prefilled_confidence(tmp_path: Path) -> None:
    flags = "--env corea-deferral --algo grpo --env.prefill-confidence --env.stop --steps 1"
    small = f"--rollout.problems-per-step 2 --eval.no-enabled --run-dir {tmp_path / 'run'}"
    assert train.main([*flags.split(), *small.split()]) == 0
    few = ("--questions", "4", "--samples", "1", "--resamples", "10", "--out", str(tmp_path))
    assert run("--corea", str(tmp_path / "run"), "--systems", "slm", "corea", *few) == 0
    paths = [*(tmp_path / "responses").glob("*/*.jsonl")]
    assert len(paths) == 3
    for path in paths:
        first, *records = map(json.loads, path.read_text().splitlines())
        assert first["identity"]["settings"]["prefill_confidence"]
        assert all("\\confidence{" in record["text"] for record in records)


def test_an_unfinished_run_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "run" / "checkpoints").mkdir(parents=True)
    (tmp_path / "run" / "config.json").write_text("{}")
    assert run("--corea", str(tmp_path / "run")) == 2
    assert "train.py --resume" in capsys.readouterr().err


def test_costs_thresholds_and_what_is_fitted_follow_their_flags(tmp_path: Path) -> None:
    flags = ("--corea", "tiny:small", "--brier", "tiny:small", "--rlvr", "tiny:small")
    few = ("--questions", "16", "--fit-questions", "16", "--resamples", "10")

    def measured(*more: str) -> Any:
        assert run(*flags, *few, *more, "--out", str(tmp_path)) == 0
        return json.loads((tmp_path / "results.json").read_text())

    rows = ("--systems", "llm", "corea", "brier-verb")
    plain = measured(*rows, "--size-ratio", "2")
    assert set(plain["systems"]) == {"llm", "corea", "brier-verb"}
    cost = plain["systems"]["llm"]["cost"]["value"]
    dear = measured(*rows, "--size-ratio", "4")["systems"]["llm"]["cost"]["value"]
    assert dear == pytest.approx(2 * cost)
    prompts = measured(*rows, "--size-ratio", "2", "--output-weight", "0")["systems"]["llm"]
    # Four for an output token: less without.
    assert prompts["cost"]["value"] < cost
    halves = measured(*rows, "--threshold", "fixed", "--fixed-threshold", "0.25")
    assert halves["curves"]["corea"]["chosen_threshold"] == 0.25
    test = measured(*rows, "--threshold", "cost", "--cost-share", "0.5", "--threshold-on-test")
    assert test["curves"]["corea"]["chosen_threshold"] in test["curves"]["corea"]["threshold"]
    loss = measured(*rows, "--threshold", "accuracy", "--accuracy-loss", "1")
    # Everything may be lost: nothing is deferred but silence.
    assert loss["systems"]["corea"]["deferred"]["value"] <= 0.2
    rates = ("--router-lr", "3e-3", "--probe-lr", "1e-3")
    fitted = ("--systems", "rlvr-probe", "router", "--router-epochs", "8")
    usual, slow = measured(*fitted, *rates), measured(*fitted[:-1], "1", "--probe-lr", "1e-9")
    for name in ("rlvr-probe", "router"):
        assert slow["curves"][name]["threshold"] != usual["curves"][name]["threshold"]
