"""Models that are not tiny are asked as they can answer, where nobody says otherwise."""

import json
from pathlib import Path
from typing import Any

import pytest

from coterie import benchmark
from coterie.datatypes import UserError
from coterie.evaluation.compare import suite as module
from coterie.evaluation.compare.inherited_settings import parse
from coterie.extras.papers.corea import CoreaComparison
from coterie.extras.papers.distill import DistillSettings
from coterie.extras.papers.eapo import EapoComparison

SAID = "Defaults for models of "


@pytest.fixture
def sums(tmp_path: Path) -> str:
    """Problems that a user names."""
    path = tmp_path / "sums.jsonl"
    rows = [{"question": f"What is {n} + 1?", "answer": n + 1} for n in range(4)]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return str(path)


def test_imitation_takes_rates_and_lengths_of_real_models(
    random_model: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    flags = ["--out", str(tmp_path / "out"), "--policy", random_model, "--expert", "scripted:echo"]
    settings = parse(DistillSettings, [*flags, "--tuning", "full"], "distill")
    assert (settings.problems, settings.prompt_style, settings.max_new_tokens) == (
        "gsm8k",
        "answer",
        512,
    )
    assert (settings.problems_per_step, settings.lr) == (8, 1e-4)
    (line,) = capsys.readouterr().out.splitlines()
    assert line.startswith(SAID)
    assert "--problems gsm8k --problems-per-step 8 --lr 0.0001 --prompt-style answer" in line
    named = ["--lr", "3e-3", "--problems", "chains", "--max-new-tokens", "99"]
    settings = parse(DistillSettings, [*flags, *named], "distill")
    assert (settings.problems, settings.lr, settings.max_new_tokens) == ("chains", 3e-3, 99)
    assert "--lr" not in capsys.readouterr().out
    # Seven billion full weights imitate at 2e-5: ten times the rate of their reward training.
    large = ["--policy", "nobody/7B", "--tuning", "full"]
    assert parse(DistillSettings, [*flags[:2], *large], "distill").lr == pytest.approx(2e-5)


@pytest.mark.parametrize("kind", [DistillSettings, EapoComparison, CoreaComparison])
def test_tiny_models_keep_the_defaults(
    kind: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    flags = ["--out", str(tmp_path / "out")]
    settings = parse(kind, flags, "it")
    assert settings == kind(out=tmp_path / "out")
    assert capsys.readouterr().out == ""


def test_consultations_ask_for_the_answer(
    random_model: str, capsys: pytest.CaptureFixture[str]
) -> None:
    settings = parse(EapoComparison, ["--base", random_model, "--env.reply-tokens", "9"], "eapo")
    assert (settings.env.prompt_style, settings.env.max_new_tokens) == ("answer", 512)
    assert (settings.env.reply_tokens, settings.env.expert_max_new_tokens) == (9, 256)
    assert (settings.leap.prompt_style, settings.leap.max_new_tokens) == ("answer", 512)
    assert settings.problems == ("gsm8k",)
    line = capsys.readouterr().out
    assert line.startswith(SAID)
    assert "--env.reply-tokens" not in line


def test_cascades_let_answers_end_by_themselves(
    random_model: str, capsys: pytest.CaptureFixture[str]
) -> None:
    settings = parse(CoreaComparison, ["--large", random_model, "--problems", "recall"], "corea")
    assert (settings.max_new_tokens, settings.stop, settings.problems) == (512, (), ("recall",))
    assert settings.prefill_confidence
    assert "--max-new-tokens 512 --stop" in capsys.readouterr().out
    flags = ["--large", random_model, "--no-prefill-confidence"]
    assert not parse(CoreaComparison, flags, "corea").prefill_confidence


@pytest.mark.parametrize(
    ("suite", "said"),
    [
        ("core", "suite core: Defaults for models of "),
        ("core-teaching", "suite core-teaching: Defaults for models of "),
    ],
)
def test_a_suite_asks_for_the_answer(
    suite: str,
    said: str,
    random_model: str,
    sums: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    asked: list[Any] = []

    async def sample(job: Any, *more: Any) -> None:
        asked.append(job.lineup)

    monkeypatch.setattr("coterie.evaluation.compare.sample_responses.sample", sample)
    opened: list[tuple[str, ...]] = []

    def open_questions(names: tuple[str, ...], settings: Any) -> Any:
        opened.append(names)
        return really((sums,), settings)

    def score(*_: Any) -> None:
        raise UserError("nothing was answered")

    really = module.open_questions
    monkeypatch.setattr(module, "open_questions", open_questions)
    monkeypatch.setattr(module, "score", score)
    who = ["--policies", f"it={random_model}"] if suite == "core" else ["--teams", random_model]
    flags = [*who, "--suite", suite, "--questions", "2", "--samples", "1"]
    assert benchmark.main([*flags, "--out", str(tmp_path / "out")]) == 2
    (lineup,) = asked
    assert (lineup.settings.prompt_style, lineup.settings.max_new_tokens) == ("answer", 512)
    assert opened == [("gsm8k",)]
    printed = capsys.readouterr().out
    assert said in printed.splitlines()[0]
    assert " prompt_style answer --max-new-tokens 512" in printed.splitlines()[0]


def test_a_flag_wins_over_the_defaults_of_a_suite(
    random_model: str, sums: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    flags = ["--policies", f"it={random_model}", "--problems", sums, "--max-new-tokens", "3"]
    few = ["--questions", "2", "--samples", "1", "--out", str(tmp_path / "out")]
    assert benchmark.main([*flags, *few]) == 0
    line = capsys.readouterr().out.splitlines()[0]
    assert line.endswith("weights: prompt_style answer")
