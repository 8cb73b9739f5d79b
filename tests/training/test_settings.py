"""Numbers that a setting cannot have, by the flags that gave them."""

import pytest

from coterie import benchmark, train

NAN = "is not a number (nan)"


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (("--rollout.learner-temperature", "nan"), f"--rollout.learner-temperature {NAN}"),
        (("--env.w-explore", "nan"), f"--env.w-explore {NAN}"),
        (("--agents.alice.lora-alpha", "1", "--learner.lr", "nan"), f"--learner.lr {NAN}"),
        (("--learner.betas", "0.9", "nan"), f"--learner.betas {NAN}"),
        (("--rollout.learner-temperature", "0"), "--rollout.learner-temperature must be above 0"),
        (("--rollout.temperature", "inf"), "--rollout.temperature must be above 0"),
        (("--rollout.call-deadline-s", "-1"), "--rollout.call-deadline-s and"),
        (("--rollout.episode-deadline-s", "0"), "--rollout.episode-deadline-s must be above 0"),
        (("--eval.temperature", "inf"), "--eval.temperature must not be negative, and finite"),
        (("--eval.top-p", "0"), "--eval.top-p must be above 0 and at most 1"),
        (("--scoring.workers", "0"), "--scoring.workers must be at least 1"),
        (("--scoring.deadline-s", "0"), "--scoring.deadline-s must be above 0"),
        (("--problems.epoch-size", "0"), "--problems.epoch-size must be at least 1"),
    ],
)
def test_training(flags: tuple[str, ...], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert train.main(flags) == 2
    assert said in capsys.readouterr().err


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (("corea", "--temperature", "nan"), f"--temperature {NAN}"),
        (("corea", "--temperature", "inf"), "--temperature must not be negative, and finite"),
        (("eapo", "--top-p", "7"), "--top-p must be above 0 and at most 1"),
        (("--agents", "a=tiny:alice", "--temperature", "inf"), "--temperature must not be"),
    ],
)
def test_comparing(flags: tuple[str, ...], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert benchmark.main(flags) == 2
    assert said in capsys.readouterr().err
