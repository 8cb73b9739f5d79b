"""Problems with long prompts, left out before a run."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from coterie import train
from coterie.training.prompt_limit import prompt_tokens
from coterie.training.session import Session

LONG = "Add " + " and ".join(str(n) for n in range(1, 40)) + "."


@pytest.fixture
def problems(tmp_path: Path) -> Path:
    path = tmp_path / "problems.jsonl"
    rows = [{"question": f"{n} + {n} =", "answer": str(2 * n)} for n in range(1, 9)]
    rows.append({"question": LONG, "answer": "780"})
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def test_long_prompts_are_left_out_told_and_counted(
    opened: Callable[..., Session], problems: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    flags = ("--problems.train", str(problems), "--problems.held-out", "1")
    flags += ("--rollout.problems-per-step", "2", "--seed", "3")
    every = opened(*flags)
    source = every.sampler._stream.source
    lengths = {p.question: prompt_tokens(every.runtime.make_env(), p) for p in source}
    # What a model is shown is the prompt by its own template, so that is what is counted.
    codec = every.team.codecs["alice"]
    assert lengths[LONG] > 100 > lengths["1 + 1 ="] >= len(codec.open("1 + 1 ="))
    assert every.runtime.conclusion.dropped == 0

    limited = opened(*flags, "--rollout.max-prompt-tokens", str(lengths[LONG] - 1))
    said = " ".join(capsys.readouterr().out.split())
    limited.conclude(None, None)
    summary = json.loads((limited.run.path / "summary.json").read_text())
    assert summary["dropped_prompts"] == limited.runtime.conclusion.dropped == 1
    assert "1 of 8 training problems are left out" in said
    assert LONG not in {problem.question for problem in limited.sampler._stream.take(30)}
    exact = opened(*flags, "--rollout.max-prompt-tokens", str(lengths[LONG]))
    assert exact.runtime.conclusion.dropped == 0


def test_a_limit_that_leaves_nothing_is_refused(
    problems: Path, tmp_path: Path, refused: Any
) -> None:
    flags = ("--problems.train", problems, "--run-dir", tmp_path / "run", "--problems.held-out", 2)
    said = refused(train.main, *flags, "--rollout.max-prompt-tokens", 2)
    assert "raise --rollout.max-prompt-tokens" in said
