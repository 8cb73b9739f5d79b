"""What is told of a step: by hand."""

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

from coterie.algorithms import Credit
from coterie.datatypes import Episode, UserError
from coterie.training.batch import StepBatch
from coterie.training.run import checkpoint_paths
from coterie.training.run.role_failures import role_failures, why_no_signal
from coterie.training.run.step_metrics import paid_shares, reward_metrics, rollout_metrics
from coterie.training.run.summary import Tally
from coterie.training.session import Session

from .rows import row

LOST = "failed: server sent a web page"


@pytest.mark.parametrize(
    ("rows", "metrics", "sentences"),
    [
        ([row("alice"), row("expert", status=LOST), row("expert")], {}, {}),
        ([row("alice"), row("expert", status=LOST)], {}, {"expert": f"never answers: {LOST}"}),
        # An expert that nobody asks is no fault.
        ([row("alice")], {}, {}),
        (
            [row(mask=np.zeros(2, bool))],
            {},
            {"alice": "has nothing to learn from: its answers are empty"},
        ),
        ([], {}, {"alice": "has nothing to learn from: it was not asked"}),
        ([row("alice", status=LOST)], {}, {"alice": f"has nothing to learn from: {LOST}"}),
        (
            [row("alice")],
            {"learner/alice/grad_norm": float("nan")},
            {"alice": "did not learn: its gradient is not finite"},
        ),
        ([row("alice")], {"learner/alice/grad_norm": 0.5}, {}),
    ],
)
def test_who_is_named(rows, metrics, sentences) -> None:
    assert role_failures(rows, metrics, trained=["alice"], frozen={"expert": ""}) == sentences


def test_a_role_that_never_answers_is_named_with_the_words_of_its_server() -> None:
    rows = [row("alice"), row("expert", status=LOST)]
    said = role_failures(rows, {}, trained=["alice"], frozen={"expert": "html: busy", "bob": "no"})
    assert said == {"expert": f"never answers: {LOST} (its server said html: busy)"}


def test_an_episode_without_a_row_has_failed() -> None:
    played = [(row("alice"), row("bob", status=LOST)), ()]
    batch = StepBatch([Episode("p", 0, 0, "train", rows, {}) for rows in played], [], 1)
    assert rollout_metrics(batch, 1, Tally({}))["rollout/failed"] == 2


def test_an_agent_with_two_contexts_counts_once() -> None:
    """The judge of the first episode began its context anew, that of the second did not."""
    long = [
        row("judge", member="e1/judge_0", reward=0.9, reward_terms={"fair": 0.9}, info={"ok": True})
        for _ in range(2)
    ]
    short = row(
        "judge", member="e2/judge_0", reward=0.3, reward_terms={"fair": 0.3}, info={"ok": False}
    )
    # (0.9 + 0.3) / 2; by rows it would be (0.9 + 0.9 + 0.3) / 3 = 0.7.
    assert reward_metrics([*long, short]) == pytest.approx(
        {
            "reward/judge": 0.6,
            "reward/judge/fair": 0.6,
            "paid/judge/fair": 1,
            "measured/judge/ok": 0.5,
        }
    )


def test_rewards_that_a_penalty_tells_apart_are_averaged_within_an_agent_first() -> None:
    rows = [row(member="e1/alice_0", reward=value) for value in (1.0, 0.5)]
    rows.append(row(member="e2/alice_0", reward=0.25))
    # ((1 + 0.5) / 2 + 0.25) / 2, as the advantages have it.
    assert reward_metrics(rows) == {"reward/alice": 0.5}


def test_an_agent_that_failed_in_two_contexts_failed_once() -> None:
    lost = tuple(row("bob", status=LOST, member="e/bob_0") for _ in range(2))
    batch = StepBatch([Episode("p", 0, 0, "train", lost, {})], [], 1)
    assert rollout_metrics(batch, 1, Tally({}))["rollout/failed"] == 1


def test_a_role_whose_answers_are_never_worth_more_than_another_is_told_of() -> None:
    said = [" 5 = =", " 5 = =", "else"]
    rows = [dataclasses.replace(row("alice"), texts=("prompt", text)) for text in said]
    sentences = why_no_signal([*rows, row("bob")], ["alice", "bob"])
    assert set(sentences) == {"alice"}  # of bob there is no text
    assert "most frequent answer ends in ' 5 = ='. Can it read the prompts?" in sentences["alice"]


def test_the_most_frequent_failure_is_that_of_most_agents() -> None:
    """One agent failed in three contexts, two in one each."""
    slow = "failed: no answer within 30 s"
    rows = [row("expert", status=LOST, member="e1/expert_0")] * 3
    rows += [row("expert", status=slow, member=f"e{number}/expert_0") for number in (2, 3)]
    named = role_failures(rows, {}, trained=[], frozen={"expert": ""})
    assert named == {"expert": f"never answers: {slow}"}


def test_the_most_frequent_answer_is_that_of_most_agents() -> None:
    long = dataclasses.replace(row("alice", member="e1/alice_0"), texts=("prompt", "long"))
    rows = [long] * 3
    rows += [
        dataclasses.replace(long, member=f"e{number}/alice_0", texts=("prompt", "short"))
        for number in (2, 3)
    ]
    assert "answer ends in 'short'" in why_no_signal(rows, ["alice"])["alice"]


def test_a_run_says_so_when_answers_are_garbage(
    opened: Callable[..., Session], capsys: pytest.CaptureFixture[str]
) -> None:
    # Two tokens cannot hold every value of a chain.
    hopeless = ["--env", "solo", "--agents.solver.model", "tiny:alice"]
    hopeless += ["--env.max-new-tokens", "2", "--problems.train", "chains?answer=all"]
    # Hints, or a peer's traces, may teach what rewards do not.
    taught = {"learner/solver/grad_norm": 0.1}
    for flags, metrics, role in ((hopeless, {}, "solver"), (hopeless, taught, ""), ([], {}, "")):
        session = opened("--steps", "4", *flags)
        with session.open_logbook() as logbook:
            for step in session.steps_left():
                batch = session.sample(step)
                credit = session.credit(batch)
                session.record(step, batch, credit, metrics, logbook)
        out = " ".join(capsys.readouterr().out.split())
        assert out.count("has learned nothing so far") == bool(role)
        assert f"step 3: {role} has learned nothing" in out or not role


def test_a_run_that_learns_nothing_for_three_steps_ends_and_keeps_the_row(
    opened: Callable[..., Session], train: Callable[..., Any]
) -> None:
    session = opened("--preset", "core-gated", "--steps", "9")
    update = session.update

    def poisoned(batch: StepBatch, credit: Credit) -> dict[str, float]:
        first = next(i for i, row in enumerate(batch.rows) if row.role == "bob")
        batch.rows[first] = dataclasses.replace(batch.rows[first], loss_weight=float("inf"))
        return update(batch, credit)

    session.update = poisoned  # type: ignore[method-assign]
    sentence = r"bob has learned nothing in 3 consecutive steps, the last one step 3: "
    with pytest.raises(UserError, match=sentence) as refusal:
        train(session)
    stored = session.run.path / "not-finite.jsonl"
    assert f"that row is in {stored}; fix its cause, or start a new run" in str(refusal.value)
    (kept,) = session.run.read_log(stored.name)
    assert (kept["step"], kept["role"], kept["row"]["agent"]) == (3, "bob", "bob_0")
    assert kept["row"]["texts"]
    # Two steps were counted and logged, and a run that goes on stands after them.
    metrics = session.run.read_log("metrics.jsonl")
    assert [line["learner/bob/skipped_steps"] for line in metrics] == [1, 2]
    newest = checkpoint_paths.latest(session.run.checkpoints)
    assert newest is not None
    assert newest.name == "step-000002"


def test_weights_that_have_diverged_are_one_sentence_where_they_answer(
    opened: Callable[..., Session],
) -> None:
    session = opened()
    handle = session.team.loaded["bob"].handle
    with torch.no_grad():
        next(iter(handle.parameters().values())).fill_(float("nan"))
    handle.version += 1
    with pytest.raises(UserError, match=r"bob_0 cannot answer: .* its weights have diverged; "):
        session.sample(1)


def test_the_share_of_answers_that_a_term_paid() -> None:
    """The last tenth of ten steps is the last; a term without a weight is not shown."""
    step = {"paid/alice/right": 0.5, "paid/alice/far": 0.25, "paid/alice/lift": 0.0}
    lines = [dict.fromkeys(step, 1.0)] * 9 + [step]
    assert paid_shares(lines, ["alice"], ["right", "far"]) == {
        "far": {"alice": 0.25},
        "right": {"alice": 0.5},
    }
    assert paid_shares(lines, ["alice"], ["right"]) == {}
    assert set(paid_shares(lines, ["alice"])) == {"right", "far", "lift"}
