"""Numbers that a setting cannot have, by the flags that gave them."""

import pytest

from coterie import benchmark, train

NAN = "is not a number (nan)"
MANY = "is too large: it must be below 2^63"
HUGE = str(2**63)


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
        (("--steps", HUGE), f"--steps {MANY}"),
        (("--env.cap", HUGE), f"--env.cap {MANY}"),
        (("--rollout.top-k", HUGE), f"--rollout.top-k {MANY}"),
        (("--agents.bob.lora-alpha", HUGE), f"--agents.bob.lora-alpha {MANY}"),
        (
            ("--rollout.problems-per-step", "65537"),
            "--rollout.problems-per-step must be 1 to 65536",
        ),
        (("--rollout.replicas", "4097"), "--rollout.replicas must not be negative, and 4096 at"),
        (("--warmup.problems-per-step", "65537"), "--warmup.problems-per-step must be 1 to 65536"),
        (("--scoring.workers", "100000"), ", four for each processor here"),
        (("--agents.bob.tuning", "lora", "--agents.bob.lora-rank", "4097"), "must be 1 to 4096"),
        (
            ("--agents.bob.context", "4097"),
            "--agents.bob.context 4097 is more than the 4096 tokens",
        ),
        (("--learner.lr", "inf"), "learner.lr must be above 0, and finite"),
        (("--algo.epsilon", "inf"), "algo.epsilon must not be negative, and finite"),
        (("--env.alpha", "-inf"), "core-teaching: alpha is -inf: it must be finite."),
        (("--env.w-explore", "1", "inf"), "core-teaching: w_explore is (1.0, inf): it must be fin"),
        (("--env", "sd-e2", "--env.gamma-rate", "inf"), "sd-e2: gamma_rate is inf: it must be fin"),
        (("--env", "corea-deferral", "--env.w-correct", "inf"), "w_correct is inf: it must be fin"),
        (("--env", "eapo-consultation", "--env.accept-total", "inf"), "accept_total is inf: it mu"),
    ],
)
def test_training(flags: tuple[str, ...], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert train.main(flags) == 2
    assert said in capsys.readouterr().err


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (("--temperature", "nan"), f"--temperature {NAN}"),
        (("--samples", HUGE), f"--samples {MANY}"),
        (("--temperature", "inf"), "--temperature must not be negative, and finite"),
        (("--top-p", "7"), "--top-p must be above 0 and at most 1"),
    ],
)
def test_comparing(flags: tuple[str, ...], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert benchmark.main(["--policies", "a=tiny:alice", *flags]) == 2
    assert said in capsys.readouterr().err
