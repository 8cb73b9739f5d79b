"""Models in the hub's format, by flag: architectures, templates, adapters, a shared base."""

from collections.abc import Callable
from pathlib import Path

import pytest
from peft import PeftModel
from transformers import AutoModelForCausalLM

from coterie.training.session import Session

Opened = Callable[..., Session]
Checkpoint = Callable[[str], Path]
Train = Callable[[Session], list[dict[str, float]]]


@pytest.mark.parametrize(
    ("first", "second"),
    [("qwen3", "phi3"), ("llama", "mistral")],
    ids=["qwen3-phi3", "llama-mistral"],
)
@pytest.mark.parametrize("tuning", ["full", "lora"])
def test_a_team_of_different_architectures_trains(
    opened: Opened, train: Train, checkpoint: Checkpoint, first: str, second: str, tuning: str
) -> None:
    session = opened(
        *("--agents.alice.model", str(checkpoint(first)), "--agents.alice.tuning", tuning),
        *("--agents.bob.model", str(checkpoint(second)), "--agents.bob.tuning", tuning),
        # Their random answers are all wrong: pay for looking like the answer, so that rewards vary.
        *("--preset", "core-gated", "--env.alpha", "1"),
        *("--env.partial-on-numbers", "--env.max-new-tokens", "12"),
        *("--env.explore-mode", "mean-pairwise", "--env.no-explore-correct-only"),
        *("--env.delta", "0", "--algo", "grpo"),
    )
    for role, name in (("alice", first), ("bob", second)):
        assert session.team.loaded[role].handle.causal_lm.config.model_type == name
        assert session.team.loaded[role].codec.open("7 + 8 =")[-1:] != []
    steps = train(session)
    for role in ("alice", "bob"):
        assert steps[1][f"learner/{role}/grad_norm"] > 0
        assert steps[1][f"learner/{role}/mismatch/max"] < 1e-4


def test_what_a_run_leaves_is_read_by_transformers_and_peft(
    opened: Opened, train: Train, checkpoint: Checkpoint
) -> None:
    base = str(checkpoint("qwen3"))
    session = opened("--agents.bob.model", base, "--agents.bob.tuning", "lora")
    train(session)
    session.conclude(None, None)
    final = session.run.path / "final"
    AutoModelForCausalLM.from_pretrained(final / "alice")
    adapted = PeftModel.from_pretrained(AutoModelForCausalLM.from_pretrained(base), final / "bob")
    assert adapted.peft_config["default"].r == 16
    assert adapted.peft_config["default"].lora_alpha == 32
