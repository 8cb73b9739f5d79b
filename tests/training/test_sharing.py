"""Peers' traces that a role learns, by hand and in a run."""

import dataclasses
import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from coterie.algorithms import Credit
from coterie.algorithms.algorithm import Sharing
from coterie.datatypes import Trajectory, UserError
from coterie.train import main
from coterie.training.batch import Batch
from coterie.training.sharing import admit, shared_rows

END = 9


def row(role: str, texts: tuple[str, ...], tokens: list[int], logprobs: list[float]) -> Trajectory:
    sampled = len(logprobs)
    mask = np.arange(len(tokens)) >= len(tokens) - sampled
    return Trajectory(
        agent=f"{role}_0",
        role=role,
        tokens=np.array(tokens),
        mask=mask,
        logprobs=np.array([0.0] * (len(tokens) - sampled) + logprobs, np.float32),
        reward=1.0,
        reward_terms={},
        groups={},
        turns=((len(tokens) - sampled, len(tokens)),),
        texts=texts,
        finish=("eos",),
    )


class Letters:
    """A tokenizer of alice's: a letter is its place in the alphabet."""

    eos_ids = (END, 8)

    def extend(self, text: str) -> list[int]:
        return [ord(letter) - ord("a") for letter in text]


def batch(*rows: Trajectory) -> Batch:
    return Batch([], list(rows), 1)


OWN = row("alice", ("Q", "ab"), [50, 51, 0, 1, END], [-1.0, -1.0, -1.0])
# In bob's own tokens: two, of mean log-probability -.5.
PEER = row("bob", ("Q", "cde"), [70, 71, 72, 3, 4], [-0.4, -0.6])


def test_a_peers_trace_stands_behind_ones_own_prompt_in_ones_own_tokens() -> None:
    other = dataclasses.replace(PEER, texts=("another question", "cde"))
    turns = dataclasses.replace(PEER, turns=((3, 4), (4, 5)))
    untold = dataclasses.replace(PEER, logprobs=np.where(PEER.mask, np.nan, 0))
    rows = (OWN, PEER, PEER, PEER, other, turns, untold)
    worth = Credit(np.array([0.5, 1.5, -0.5, 0.0, 2.0, 2.0, 2.0]), {})
    (shared,), advantages = shared_rows(batch(*rows), worth, "alice", Letters())  # type: ignore[arg-type]
    assert advantages == [1.5]
    assert (shared.role, shared.tokens.tolist()) == ("alice", [50, 51, 2, 3, 4, END])
    assert shared.mask.tolist() == [False, False, True, True, True, True]
    np.testing.assert_allclose(shared.logprobs, [0, 0, -0.5, -0.5, -0.5, -0.5])
    assert shared.turns == ((2, 6),)


def test_what_is_the_traces_is_its_authors_and_the_prompt_ones_own() -> None:
    """Whatever became of one's own rows behind that prompt, the last of them among these: the trace
    ends as its author ended it, and counts as much. It is learned after the prompt after which
    one's own are."""
    mine = dataclasses.replace(
        OWN, finish=("length",), loss_weight=0.8, learned_after=np.array([52, 53, 54])
    )
    peer = dataclasses.replace(PEER, loss_weight=0.5, learned_after=np.array([73]))
    rows = (mine, peer, dataclasses.replace(peer, finish=("length",), loss_weight=1.0), mine)
    worth = Credit(np.array([0.0, 1.0, 1.0, 0.0]), {})
    (ended, cut), _ = shared_rows(batch(*rows), worth, "alice", Letters())  # type: ignore[arg-type]
    assert (ended.tokens.tolist(), ended.loss_weight) == ([50, 51, 2, 3, 4, END], 0.5)
    assert (cut.tokens.tolist(), cut.loss_weight) == ([50, 51, 2, 3, 4], 1.0)
    assert ended.as_learned().tokens.tolist() == [52, 53, 54, 2, 3, 4, END]
    assert ended.as_learned().turns == ((3, 7),)


def learner(*means: float, context: int = 99) -> Any:
    """One that finds rows so likely."""
    return SimpleNamespace(
        context=context,
        mean_logprobs=lambda rows: np.array(means[: len(rows)]),
    )


def test_weights_by_hand() -> None:
    """exp(-.6 + .5) = .905 counts .905^3 = .741 with alpha 2; exp(-.9 + .5) = .670 is below .8, and
    exp(-.4 + .5) above 1."""
    offered = ([PEER] * 3, [1.0, 2.0, 3.0])
    how = Sharing(weight=0.5, alpha=2.0)
    (rows, advantages), metrics = admit(how, learner(-0.6, -0.9, -0.4), offered)
    assert advantages == [1.0]
    assert rows[0].loss_weight == pytest.approx(0.5 * np.exp(-0.3))
    assert np.isnan(rows[0].logprobs[rows[0].mask]).all()
    assert (metrics["sharing/offered"], metrics["sharing/rows"]) == (3, 1)
    assert metrics["sharing/ratio"] == pytest.approx((0.9048 + 0.6703 + 1.1052) / 3, abs=1e-4)
    # No room in the context.
    assert admit(how, learner(-0.6, context=4), offered)[0] == ([], [])


def test_in_a_run(tmp_path: Path) -> None:
    flags = ["--env.reread", "none", "--algo.distillation.beta", "0"]
    flags += ["--steps", "2", "--rollout.problems-per-step", "4"]
    flags += ["--eval.no-enabled", "--algo.sharing.weight", "1", "--algo.sharing.delta", "1"]
    assert main([*flags, "--run-dir", str(tmp_path / "run")]) == 0
    lines = (tmp_path / "run" / "metrics.jsonl").read_text().splitlines()
    steps = [json.loads(line) for line in lines]
    assert any(step["learner/alice/sharing/rows"] > 0 for step in steps)
    for step in steps:
        # Three cold traces each of four problems, and what is shared.
        assert step["learner/bob/rows"] == 12 + step["learner/bob/sharing/rows"]


@pytest.mark.parametrize(
    ("how", "sentence"),
    [
        ({"weight": -1.0}, "weight must not be negative"),
        ({"alpha": -1.0}, "alpha must not be negative"),
        ({"delta": 0.0}, "delta must lie above 0"),
    ],
)
def test_what_cannot_be(how: dict[str, float], sentence: str) -> None:
    with pytest.raises(UserError, match=sentence):
        Sharing(**how)
