"""Comparisons inherit from runs and presets how their models are asked; flags win over both."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from coterie import benchmark
from coterie.agents.models.locate import TINY
from coterie.cli.command_line import parse as parse_training
from coterie.datatypes import UserError
from coterie.evaluation.compare.inherited_settings import parse
from coterie.extras.papers.corea import CoreaComparison
from coterie.extras.papers.eapo import EapoComparison

EAPO = ("--env", "eapo-consultation", "--env.prompt-style", "panel", "--env.reply-tokens", "7")
COREA = ("--env", "corea-deferral")
COLD = ("--eval.temperature", "0.5", "--eval.top-p", "0.9")


@pytest.fixture
def trained(tmp_path: Path) -> Any:
    """A run's directory, as it ends."""

    def run(name: str, role: str, *flags: str) -> str:
        path = tmp_path / name
        shutil.copytree(TINY / role, path / "final" / role)
        (path / "config.json").write_text(json.dumps(parse_training(flags).plain()))
        return str(path)

    return run


def read(kind: Any, *flags: str) -> Any:
    return parse(kind, flags, "benchmark.py")


def identities(out: Path, suite: str, policy: str) -> list[dict[str, Any]]:
    """What a suite asked a policy with, of each set."""
    paths = out.glob(f"completions/{suite}/*/{policy}.jsonl")
    return [json.loads(path.read_text().splitlines()[0])["identity"] for path in paths]


def test_a_run_brings_its_prompts_limits_and_sampling_to_eapo(trained: Any) -> None:
    run = trained("run", "policy", *EAPO, *COLD, "--env.max-new-tokens", "33")
    settings = read(EapoComparison, "--eapo", run)
    assert (settings.env.prompt_style, settings.env.reply_tokens) == ("panel", 7)
    assert (settings.env.max_new_tokens, settings.env.eval_max_new_tokens) == (33, 33)
    assert (settings.leap.prompt_style, settings.leap.max_new_tokens) == ("panel", 33)
    assert (settings.temperature, settings.top_p) == (0.5, 0.9)
    # What is no part of asking stays the comparison's; so does everything without a run.
    assert settings.env.experts == EapoComparison().env.experts
    assert read(EapoComparison, "--eapo", "tiny:policy") == EapoComparison(eapo="tiny:policy")
    # In evaluation it had a limit of its own.
    longer = trained("longer", "policy", *EAPO, "--env.eval-max-new-tokens", "50")
    assert read(EapoComparison, "--others", f"X={longer}").env.max_new_tokens == 50


def test_flags_win_over_a_run(trained: Any) -> None:
    run = trained("run", "policy", *EAPO, *COLD)
    flags = ("--temperature", "1", "--env.prompt-style", "plain", "--leap.max-new-tokens", "20")
    settings = read(EapoComparison, "--eapo", run, *flags)
    assert (settings.temperature, settings.top_p) == (1.0, 0.9)
    assert (settings.env.prompt_style, settings.env.reply_tokens) == ("plain", 7)
    assert (settings.leap.max_new_tokens, settings.leap.prompt_style) == (20, "plain")


def test_runs_that_differ_need_a_flag(trained: Any) -> None:
    first_run = trained("one", "policy", *EAPO, *COLD)
    other_run = trained("other", "policy", "--env", "eapo-consultation")
    with pytest.raises(UserError, match=r"temperature, 1\.0 and 0\.5; say which with --t"):
        read(EapoComparison, "--eapo", first_run, "--rl", other_run)
    flags = ("--temperature", "1", "--top-p=1")
    with pytest.raises(UserError, match=r"say which with --env\.prompt-style"):
        read(EapoComparison, "--eapo", first_run, "--rl", other_run, *flags)
    words = ("--env.prompt-style", "plain", "--env.reply_tokens", "9")
    settings = read(EapoComparison, "--eapo", first_run, "--rl", other_run, *flags, *words)
    assert (settings.env.prompt_style, settings.env.reply_tokens, settings.temperature) == (
        "plain",
        9,
        1,
    )


def test_switching_off_decides_where_runs_differ(trained: Any) -> None:
    begun = trained("begun", "small", *COREA, "--env.prefill-confidence")
    free = trained("free", "small", *COREA)
    flags = ("--corea", begun, "--rlvr", free)
    with pytest.raises(UserError, match="say which with --prefill-confidence"):
        read(CoreaComparison, *flags)
    assert read(CoreaComparison, *flags, "--prefill-confidence").prefill_confidence
    assert not read(CoreaComparison, *flags, "--no-prefill-confidence").prefill_confidence


def test_a_run_brings_them_to_corea(trained: Any) -> None:
    run = trained("run", "small", *COREA, *COLD, "--env.max-new-tokens", "21", "--env.stop", "}")
    settings = read(CoreaComparison, "--corea", run)
    assert (settings.max_new_tokens, settings.stop, settings.temperature) == (21, ("}",), 0.5)
    assert read(CoreaComparison, "--corea", run, "--stop", "x").stop == ("x",)
    # A run of another environment brings its limits, and not its words.
    other = trained("other", "policy", *EAPO, "--env.max-new-tokens", "33")
    settings = read(CoreaComparison, "--corea", f"{other}/final/policy")
    assert settings.max_new_tokens == 40
    settings = read(CoreaComparison, "--corea", other)
    assert (settings.max_new_tokens, settings.stop) == (33, CoreaComparison().stop)


def test_a_run_brings_them_to_suites(trained: Any, tmp_path: Path, capsys: Any) -> None:
    run = trained("run", "policy", *EAPO, *COLD, "--env.max-new-tokens", "33")
    out = tmp_path / "out"
    few = ("--questions", "1", "--samples", "1", "--resamples", "5", "--no-workflow")
    flags = ["--policies", f"policy={run}", "--suite", "eapo", "core", *few, "--out", str(out)]
    assert benchmark.main(flags) == 0
    (eapo,) = identities(out, "eapo", "policy")
    assert eapo["sampling"] == [0.5, 0.9]
    assert eapo["settings"]["prompt_style"] == "panel"
    assert (eapo["settings"]["reply_tokens"], eapo["settings"]["max_new_tokens"]) == (7, 33)
    # Limits go with the model, words stay where they were learned.
    core = [own["settings"] for own in identities(out, "core", "policy")]
    assert [(own["max_new_tokens"], own["prompt_style"]) for own in core] == [(33, "plain")] * 3
    flags = [*flags[:-1], str(tmp_path / "other"), "--max-new-tokens", "12", "--temperature", "1"]
    assert benchmark.main(flags) == 0
    settings = identities(tmp_path / "other", "eapo", "policy")[0]["settings"]
    assert settings["max_new_tokens"] == settings["eval_max_new_tokens"] == 12


def test_a_suites_own_settings_decide_where_runs_differ(
    trained: Any, tmp_path: Path, capsys: Any
) -> None:
    first_run = trained("one", "policy", *EAPO)
    other_run = trained("other", "policy", "--env", "eapo-consultation")
    few = ("--questions", "1", "--samples", "1", "--resamples", "5", "--no-workflow")
    flags = ["--policies", f"one={first_run}", f"other={other_run}", *few]
    flags += ["--out", str(tmp_path / "out")]
    assert benchmark.main([*flags, "--suite", "eapo"]) == 2
    assert "say which with a suite's file, as settings: prompt_style" in capsys.readouterr().err
    words = {"prompt_style": "plain", "reply_tokens": 5}
    suite = {"env": "eapo-consultation", "role": "policy", "problems": ["chains"]}
    (tmp_path / "mine.json").write_text(json.dumps(suite | {"settings": words}))
    assert benchmark.main([*flags, "--suite", str(tmp_path / "mine.json")]) == 0
    settings = identities(tmp_path / "out", "mine", "one")[0]["settings"]
    assert {name: settings[name] for name in words} == words


def test_a_preset_is_the_papers() -> None:
    """Its numbers stand in test_corea_at_scale.py and test_eapo_at_scale.py."""
    corea = read(CoreaComparison, "--preset", "corea-qwen-7b", "--questions", "9")
    assert corea.large == "Qwen/Qwen2.5-32B-Instruct"
    # A number for all sets, DeepMath's own among them.
    assert (corea.questions, corea.held_out) == (9, 0)
    eapo = read(EapoComparison, "--preset", "eapo-r1-7b", "--env.reply-tokens", "99")
    assert (eapo.env.prompt_style, eapo.env.reply_tokens) == ("panel", 99)
    # Whole sets, as the plan of a sweep counts them.
    assert (eapo.questions, eapo.top_p) == (0, 0.7)
    assert read(EapoComparison, "--preset", "eapo-r1-7b", "--questions", "9").questions == 9
    with pytest.raises(UserError, match="preset eapo-r1-7b is for eapo-consultation, not for core"):
        read(CoreaComparison, "--preset", "eapo-r1-7b")
    with pytest.raises(UserError, match="unknown preset"):
        read(EapoComparison, "--preset", "eapo-r1-8b")


def test_a_preset_asks_suites_as_the_paper_does(tmp_path: Path) -> None:
    lines = [{"question": f"{n} + {n} =", "answer": str(2 * n)} for n in (1, 2)]
    path = tmp_path / "two.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    flags = ["--policies", "gold=scripted:oracle", "--suite", "core", "--problems", str(path)]
    flags += ["--preset", "core-qwen-gsm8k", "--samples", "1", "--out", str(tmp_path / "out")]
    assert benchmark.main([*flags, "--resamples", "5"]) == 0
    (identity,) = identities(tmp_path / "out", "core", "gold")
    assert identity["settings"]["max_new_tokens"] == 4096
    assert identity["sampling"] == [0.7, 0.9]


@pytest.mark.parametrize("content", ["{", '{"choice": 5}', '{"choice": {"env": "nope"}}'])
def test_a_run_whose_settings_cannot_be_read(
    trained: Any, tmp_path: Path, content: str, capsys: Any
) -> None:
    run = trained("run", "policy", *EAPO)
    (tmp_path / "run" / "config.json").write_text(content)
    assert benchmark.main(["eapo", "--eapo", run]) == 2
    said = capsys.readouterr().err
    assert "config.json" in said
    assert said.count("\n") == 1
