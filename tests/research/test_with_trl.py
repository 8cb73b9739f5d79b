"""A run again by TRL: its rewards by hand, what it refuses, and an adapter that train.py reads."""

import json
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

import with_trl
from coterie import train
from coterie.cli.command_line import parse
from coterie.datatypes import Problem, UserError
from coterie.training.config.train_settings import TrainSettings

TINY = (
    *("--env", "solo", "--algo", "gspo", "--agents.solver.model", "tiny:gina"),
    *("--agents.solver.tuning", "lora", "--problems.train", "chains", "--problems.held-out", "8"),
    *("--rollout.problems-per-step", "2", "--steps", "2"),
    *("--algo.overlong-limit", "48", "--algo.overlong-buffer", "40", "--threads", "1"),
)


PENALTY = (
    *("--algo.overlong-limit", "48", "--algo.overlong-buffer", "40"),
    *("--algo.overlong-factor", "0.5"),
)


def settings(*flags: str) -> TrainSettings:
    words = [*TINY[:12], *flags]
    values = dict(zip(words[::2], words[1::2]))  # later flags replace those of TINY
    return parse([word for pair in values.items() for word in pair])


def test_rewards_by_hand() -> None:
    problem = Problem(id="sum", question="1 + 1", gold="2")
    rewards = with_trl.Rewards(settings(*PENALTY), [problem])
    texts = [r"\boxed{2}", r"\boxed{3}", "none"]
    lengths = [28, 8, 48]
    # Half-way into the buffer of 40 tokens before 48 the penalty is half of .5.
    assert rewards(texts, [[0] * length for length in lengths], [0, 0, 0]) == [0.75, 0.0, -0.5]
    assert rewards.tokens == 84
    assert rewards.right == [1.0, 0.0, 0.0]
    assert rewards.stated == [True, True, False]


@pytest.mark.parametrize(
    ("flags", "reason"),
    [
        (("--algo.ddof", "0"), "only gspo"),
        (("--agents.solver.tuning", "full"), "new LoRA adapter"),
        (("--agents.solver.temperature", "0.5"), "temperature"),
        (("--agents.solver.system", "Be brief."), "system message"),
        (("--warmup.steps", "2"), "warm-up by imitation"),
        (("--learner.schedule", "cosine"), "not constant"),
        (("--learner.warmup", "2"), "not constant"),
        (("--learner.epochs", "2"), "several updates"),
        (("--problems.order", "adaptive"), "orders its problems"),
        (("--rollout.learner-temperature", "0.5"), "learner has a temperature"),
        (("--rollout.max-prompt-tokens", "40"), "long prompts"),
        (("--agents.solver.chat", "plain"), "chat template"),
        (("--agents.solver.dtype", "int8"), "computes in int8"),
        (("--learner.moments", "8bit"), "moments"),
        (("--tokens", "100"), "ends by tokens"),
    ],
)
def test_what_is_refused(flags: tuple[str, ...], reason: str) -> None:
    with pytest.raises(UserError, match=reason):
        with_trl.refuse_others(settings(*flags))


def test_a_penalty_on_length_is_repeated() -> None:
    with_trl.refuse_others(settings(*PENALTY))


def test_a_folder_without_a_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        with_trl.main([str(tmp_path), "--out", str(tmp_path / "new")])
    assert ended.value.code == 2
    assert "is no run of train.py" in capsys.readouterr().err


@pytest.mark.slow
def test_a_run_again_by_trl(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run, out = tmp_path / "run", tmp_path / "trl"
    assert train.main([*TINY, "--run-dir", str(run)]) == 0
    words = (str(run), "--out", str(out), "--threads", "1", "--save-every", "1")
    firsts = []
    for count in ("1", "2"):
        assert with_trl.main([*words, "--steps", count]) == 0
        firsts.append((out / "steps.jsonl").read_text().splitlines()[0])
    assert firsts[0] == firsts[1]  # its seconds, too: the second run goes on behind the first step
    steps = [json.loads(line) for line in (out / "steps.jsonl").read_text().splitlines()]
    assert [line["step"] for line in steps] == [1, 2]
    answers = 2 * 8  # of a step
    assert answers < steps[0]["tokens"] < steps[1]["tokens"] <= 2 * answers * 48
    moved = load_file(out / "adapter/adapter_model.safetensors")
    # The second matrix of an adapter is 0 before training.
    assert any(torch.any(weight != 0) for name, weight in moved.items() if "lora_B" in name)
    again = ["--evaluate", str(run), "--agents.solver.model", str(out / "adapter")]
    assert train.main(again) == 0
    assert "held out" in capsys.readouterr().out
