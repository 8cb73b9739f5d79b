"""The comparison of EAPO's systems, and distillation, end to end on the shipped models."""

import asyncio
import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from coterie import benchmark
from coterie.cli.arguments import overlay
from coterie.cli.command_line import parse
from coterie.datatypes import Completion, Problem, Prompt, Sampling
from coterie.envs.bytes_codec import BytesCodec
from coterie.envs.prompts import lone_prompt
from coterie.evaluation.compare.responses import responses
from coterie.extras.papers.distill import DistillSettings, _stream, as_trace, sample_solutions
from coterie.extras.papers.eapo import EapoComparison
from coterie.extras.papers.eapo_metrics import mean_of_sets, measure_responses
from coterie.extras.papers.replies import choose_replies


@pytest.mark.usefixtures("drawn")
def test_a_comparison_has_every_row_and_samples_once(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    out, distilled = tmp_path / "out", tmp_path / "distilled"
    quick = ("--steps", "3", "--problems-per-step", "4", "--solutions", "2")
    assert benchmark.main(["distill", "--out", str(distilled), *quick]) == 0
    assert (distilled / "final" / "policy" / "model.safetensors").is_file()
    adapted = tmp_path / "adapted"
    assert benchmark.main(["distill", "--out", str(adapted), *quick, "--tuning", "lora"]) == 0
    assert (adapted / "final" / "policy" / "adapter_model.safetensors").is_file()
    capsys.readouterr()

    flags = ["eapo", "--problems", "chains?mix=0,1,0&min_length=3&max_length=3&answer=all"]
    flags += ["--questions", "8", "--samples", "2", "--resamples", "50", "--out", str(out)]
    flags += ["--distilled", str(distilled), "--distilled-lora", str(adapted)]
    flags += ["--eapo", "tiny:policy", "--taught", "tiny:policy"]
    # At this temperature the expert is wrong now and then.
    flags += ["--pools", "pool:tiny:policy|tiny:expert", "--reply-temperature", "2.25"]
    assert benchmark.main(flags) == 0
    text = capsys.readouterr().out
    for label in (
        "Base",
        "LeaP",
        "Self-collaboration",
        "Expert workflow",
        "useless",
        "Distillation",
        "LoRA",
        "On-policy",
    ):
        assert label in text
    results = json.loads((out / "results.json").read_text())["systems"]
    assert results["workflow"]["avg@n"]["value"] > results["error"]["avg@n"]["value"]
    # The wrong ones are resampled from what the expert really said (EAPO, appendix E).
    assert results["error"]["wrong_told"] > 0.5 > results["workflow"]["wrong_told"]
    assert f"{results['error']['wrong_told']:.0%} of the replies it reads are wrong" in text
    (stored,) = (out / "responses").glob("*/replies-*.jsonl")
    assert len(stored.read_text().splitlines()) == 1 + 8 * 32
    assert results["base"]["expert_tokens"] == 0 < results["workflow"]["expert_tokens"]
    # The base model once more, so the same answers: other stream, same weights, same seed.
    assert results["eapo"]["avg@n"] == results["base"]["avg@n"] == results["taught"]["avg@n"]
    assert (out / "systems.png").stat().st_size > 5000

    def sampled(*_: object, **__: object) -> None:
        raise AssertionError("sampled again")

    monkeypatch.setattr("coterie.evaluation.compare.sample_responses.sample", sampled)
    assert benchmark.main(flags) == 0


def test_rows_can_be_added_and_left_out(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[Any] = []

    async def sample(job: Any, team: Any, wanted: Any, *more: Any) -> None:
        asked.append(job.lineup)
        assert (job.lineup.replies is None) == (job.lineup.name not in ("workflow", "error"))
        measured = {"f1": 0.5, "response_tokens": 1.0, "expert_tokens": 0.0}
        said = {"answer": None, "confidence": None, "text": "", "used": {}, "seconds": 0.0}
        # One answer of the control fails.
        answered = wanted[1:] if job.lineup.name == "other-0" else wanted
        job.stored.append(
            {"problem": problem.id, "sample": number, "correct": number % 2, **said, **measured}
            for problem, number in answered
        )

    monkeypatch.setattr("coterie.evaluation.compare.sample_responses.sample", sample)
    flags = ["eapo", "--questions", "4", "--samples", "2", "--resamples", "20"]
    few = [*flags, "--no-noise", "--no-peers", "--out", str(tmp_path / "few")]
    assert benchmark.main([*few, "--others", "Shuffled=tiny:policy"]) == 0
    names = [lineup.name for lineup in asked]
    assert {*names} == {"replies", "base", "self", "workflow", "other-0"}
    shown = capsys.readouterr().out
    assert "Shuffled: 1 of 8 answers failed; its figures are of the others" in shown
    assert shown.count("answers failed") == 1
    asked.clear()
    flags += ["--out", str(tmp_path / "all"), "--leap.paths", "2", "--rl", "tiny:policy"]
    assert benchmark.main(flags) == 0
    rows = {lineup.name: lineup for lineup in asked}
    assert {"error", "useless", "peers", "rl", "rl-helped"} <= set(rows)
    assert rows["rl-helped"].mode == "assisted"
    assert rows["peers"].settings.paths == 2
    # Other paths, other answers: nothing stored of them is used again; the others are.
    asked.clear()
    assert benchmark.main([*flags[:-4], "--leap.paths", "3", "--rl", "tiny:policy"]) == 0
    assert [lineup.name for lineup in asked] == ["peers"]


def test_a_distillation_sees_nothing_that_is_scored(tmp_path: Path) -> None:
    """Thirty of fifty problems are scored as a set of their own; five more are held out."""
    lines = [json.dumps({"question": f"{n} + {n} =", "answer": str(2 * n)}) for n in range(50)]
    all_of_them, some = tmp_path / "all.jsonl", tmp_path / "some.jsonl"
    all_of_them.write_text("\n".join(lines))
    some.write_text("\n".join(lines[:30]))
    settings = DistillSettings(
        tmp_path, problems=str(all_of_them), questions=5, scored=(str(some),)
    )
    seen = {problem.question for problem in _stream(settings).take(200)}
    assert seen < {f"{n} + {n} =" for n in range(30, 50)}
    assert len(seen) >= 15


def test_the_comparison_asks_as_training_does() -> None:
    settings, run = EapoComparison(), parse(["--env", "eapo-consultation"])
    assert settings.env == run.env
    assert settings.problems == (run.problems.train,)


def figures_of(**answers: list[list[float | None]]) -> Any:
    """The figures of questions with as many answers each; None: the answer failed."""
    shown = answers["f1"]
    problems = [Problem(str(q), "?", "1") for q in range(len(shown))]
    nothing = {"confidence": None, "answer": None, "seconds": 1.0, "used": {}}
    nothing |= {"correct": 0.0, "response_tokens": 1.0, "expert_tokens": 0.0}
    records = {
        (str(q), n): nothing | {name: rows[q][n] for name, rows in answers.items()}
        for q, row in enumerate(shown)
        for n, value in enumerate(row)
        if value is not None
    }
    return measure_responses(responses(records, problems, len(shown[0]), []), 100, 0)


def test_figures_by_hand() -> None:
    figures = figures_of(
        correct=[[1.0, 1.0], [0.0, 1.0], [0.0, None]],
        f1=[[1.0, 1.0], [0.0, 1.0], [0.5, None]],
        response_tokens=[[10.0, 20.0], [10.0, 10.0], [4.0, None]],
    )
    # Means 1, .5, 0; the population variance of the means is 1/6, within it is (0 + .25 + 0) / 3.
    assert figures["avg@n"].value == pytest.approx(0.5)
    assert figures["variance"].between == pytest.approx(1 / 6)
    assert figures["variance"].within == pytest.approx(0.25 / 3)
    # F1: means 1, .5, .5 around 2/3; 1/18 between, (0 + .25 + 0) / 3 within.
    assert figures["f1_variance"].between == pytest.approx((1 / 9 + 1 / 36 + 1 / 36) / 3)
    assert figures["f1_variance"].within == pytest.approx(0.25 / 3)
    # (15 + 10 + 4) / 3
    assert figures["tokens"] == pytest.approx(29 / 3)
    # Any of the answers that are there: the first two questions.
    assert figures["pass@n"].value == pytest.approx(2 / 3)
    assert figures["missing"] == 1


def test_the_mean_of_sets_does_not_weigh_them_by_their_questions() -> None:
    """Table 1: AIMO's ten problems count as AIME's thirty. F1 1 and 0 of two, .5 of one."""
    means = mean_of_sets([figures_of(f1=[[1.0], [1.0], [1.0], [0.0]]), figures_of(f1=[[0.5]])])
    # (.75 + .5) / 2, (3/16 + 0) / 2; pooled they were .7 and .16.
    assert means == {"avg@n": 0.0, "f1": 0.625, "f1_variance": pytest.approx(3 / 32)}


@pytest.mark.parametrize(
    ("wrong", "count", "drawn_from"),
    [
        ({1, 4, 5, 7}, 8, {1, 4, 5, 7}),
        # Appendix E of the paper: "if fewer than 3 are incorrect, we sample from all 32".
        ({1, 4}, 8, set(range(8))),
        # Fewer replies than experts.
        (set(), 2, {0, 1}),
        (set(), 0, set()),
    ],
)
def test_three_wrong_replies_are_chosen_where_there_are_three(
    wrong: set[int], count: int, drawn_from: set[int]
) -> None:
    stored = [{"text": str(n), "correct": int(n not in wrong)} for n in range(count)]

    def chosen(pick: Any, seed: int) -> list[int]:
        return [int(record["text"]) for record in choose_replies(stored, pick, 3, seed)]

    drawn = [chosen("wrong", seed) for seed in range(200)]
    assert {place for places in drawn for place in places} == drawn_from
    assert all(len(set(places)) == min(3, count) for places in drawn)
    if len(wrong) < 3:
        assert drawn == [chosen("any", seed) for seed in range(200)]


def test_policies_stand_alone_helped_by_themselves_and_by_each_pool(tmp_path: Path) -> None:
    """Table 6: three policies, with their own kind and with a pool of three."""
    right, wrong = "scripted:oracle", "scripted:oracle?p_right=0"
    flags = ["eapo", "--base", wrong, "--policies", f"other={right}", "--pools", right]
    flags += ["--no-noise", "--no-peers", "--no-workflow", "--questions", "3", "--samples", "1"]
    assert benchmark.main([*flags, "--resamples", "5", "--out", str(tmp_path / "out")]) == 0
    systems = json.loads((tmp_path / "out/results.json").read_text())["systems"]
    assert {name: system["expert"] for name, system in systems.items()} == {
        "base": None,
        "self": wrong,
        "pool-0": right,
        "policy-0": None,
        "policy-0-self": right,
        "policy-0-pool-0": right,
    }
    assert {name: system["avg@n"]["value"] for name, system in systems.items()} == {
        **dict.fromkeys(("base", "self", "pool-0"), 0.0),
        **dict.fromkeys(("policy-0", "policy-0-self", "policy-0-pool-0"), 1.0),
    }
    # Nobody reads stored replies, and none are sampled.
    assert not list((tmp_path / "out/responses").glob("*/replies-*"))
    assert benchmark.main(["eapo", "--policies", "nameless", "--out", str(tmp_path / "no")]) == 2


@pytest.mark.parametrize(
    ("solution", "trace"),
    [
        ("1 + 1 = 2\nAnswer: 2", " <think> 1 + 1 = 2 </think>\nAnswer: 2"),
        ("<think> so </think> \nAnswer: 2", " <think> so </think>\nAnswer: 2"),
        # Nobody is taught an empty answer.
        ("1 + 1 = 2 + </think>", " <think> 1 + 1 = 2 +"),
    ],
)
def test_solutions_become_traces(solution: str, trace: str) -> None:
    assert " ".join(as_trace(solution).split()) == " ".join(trace.split())


def test_policy_and_expert_are_asked_as_evaluation_asks(tmp_path: Path) -> None:
    """For a number where the answer is a number: the prompt of --env.prompt-style answer."""
    codec, asked = BytesCodec(), list[str]()

    async def expert(prompt: Prompt, sampling: Sampling) -> Completion:
        asked.append(prompt.text)
        tokens = np.array([*codec.extend("1 + 1 = 2\nAnswer: 2"), codec.eos_ids[0]])
        return Completion(tokens, np.zeros(len(tokens), np.float32), "stop")

    codecs = {"policy": codec, "expert": codec}
    team: Any = SimpleNamespace(policies={"expert": expert}, codecs=codecs)
    settings = DistillSettings(tmp_path, prompt_style="answer", solutions=1)
    question = Problem("p", "One and one?", "2", "number")
    [(row, right, written)] = asyncio.run(sample_solutions(team, [question], 1, settings))
    prompt = lone_prompt("One and one?", "answer", "number")
    assert asked == [prompt]
    assert prompt.endswith("followed by the number.")
    assert codec.decode(row.tokens[~row.mask]) == codec.decode(np.array(codec.open(prompt)))
    assert (right, written) == (True, 20)


def test_distillation_follows_its_flags(tmp_path: Path) -> None:
    def weights(name: str, *flags: str) -> bytes:
        out = tmp_path / name
        quick = ("--steps", "1", "--problems-per-step", "2", "--solutions", "1")
        assert benchmark.main(["distill", "--out", str(out), *quick, *flags]) == 0
        return (out / "final" / "policy" / "model.safetensors").read_bytes()

    plain = weights("plain")
    assert weights("again") == plain
    assert weights("slower", "--lr", "1e-6") != plain
    script = ("--expert", "scripted:useless", "--max-new-tokens", "9", "--temperature", "0.5")
    assert (
        len({plain, weights("script", *script), weights("panel", "--prompt-style", "panel")}) == 3
    )


def test_distillation_counts_what_its_expert_wrote(tmp_path: Path) -> None:
    """Two solutions a step in bytes: `Answer: 7` and its end marker are ten tokens."""

    def spent(name: str, *flags: str) -> dict[str, int]:
        out = tmp_path / name
        quick = ("--problems-per-step", "2", "--solutions", "1", "--steps", "3")
        script = ("--expert", "scripted:oracle?template=Answer: {answer}")
        said = overlay(["distill", "--out", str(out), *quick, *script, *flags])
        assert benchmark.main(said) == 0
        return json.loads((out / "distillation.json").read_text())

    whole = spent("whole")
    each = whole["expert_tokens"] // 3
    assert whole == {
        "steps": 3,
        "learned_tokens": whole["learned_tokens"],
        "expert_tokens": 3 * each,
    }
    assert spent("half", "--expert-tokens", str(each + 1))["steps"] == 2
    wrong = ("--expert", "scripted:oracle?p_right=0", "--only-right")
    assert spent("wrong", *wrong)["learned_tokens"] == 0
    assert spent("right", "--only-right") == whole
