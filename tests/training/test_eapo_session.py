"""Training runs in which a frozen expert is asked: small enough for a test."""

from collections.abc import Callable

import pytest
import torch

from coterie.cli.command_line import parse
from coterie.training.config.preflight import preflight
from coterie.training.session import Session, open_session

EAPO = ("--env", "eapo-consultation", "--rollout.problems-per-step", "4")
Opened = Callable[..., Session]
Train = Callable[[Session], list[dict[str, float]]]


@pytest.mark.parametrize(
    "expert",
    [
        "tiny:expert",
        "pool:scripted:silent|tiny:expert|scripted:useless",
        "scripted:oracle?template={solution}",
    ],
)
def test_the_policy_learns_and_its_expert_does_not(
    opened: Opened, train: Train, expert: str
) -> None:
    session = opened(*EAPO, "--algo", "grpo", "--agents.expert.model", expert)
    before = {
        role: torch.cat([p.detach().flatten() for p in loaded.handle.module.parameters()])
        for role, loaded in session.team.loaded.items()
    }
    lines = train(session)
    assert list(session.team.trained) == ["policy"]
    for role, loaded in session.team.loaded.items():
        after = torch.cat([p.detach().flatten() for p in loaded.handle.module.parameters()])
        assert torch.equal(after, before[role]) == (role == "expert")
    last = lines[-1]
    # Four problems, each with four conversations and four lone traces; experts' rows are compared
    # with nobody.
    assert (last["credit/groups"], last["credit/group_size"]) == (4, 8)
    assert 0 < last["measured/policy/consulted"] < 1
    assert last["measured/policy/acceptance"] == pytest.approx(199 / 200)
    assert last["rollout/learner_tokens_total"] <= last["rollout/tokens_total"]
    answered = [value for name, value in last.items() if name.endswith("/answered")]
    assert bool(answered) == (expert != "tiny:expert")
    if expert.startswith("pool"):
        assert last["player/expert/0/failed/silent"] > 0
        assert last["measured/policy/unavailable"] > 0


def test_self_exploratory_training_asks_nobody(opened: Opened, train: Train) -> None:
    last = train(opened(*EAPO, "--algo", "grpo", "--env.consult", "never"))[-1]
    assert last["measured/policy/calls"] == 0
    assert not any(name.startswith("measured/expert") for name in last)


def test_a_run_ends_when_its_learners_have_sampled_enough(opened: Opened, train: Train) -> None:
    budget = ("--steps", "50", "--tokens", "3000", "--checkpoint-every", "1000")
    session = opened(*EAPO, "--algo", "grpo", *budget)
    lines = train(session)
    totals = [line["rollout/learner_tokens_total"] for line in lines]
    assert totals[-1] >= 3000 > totals[-2]
    assert totals[-1] < lines[-1]["rollout/tokens_total"]  # experts' tokens do not count

    # Its last step is kept, and taken up again it has nothing left to do.
    session.run.close()  # as the end of its process does
    resumed = parse(["--resume", str(session.run.path)])
    again = open_session(resumed, preflight(resumed))
    assert list(again.steps_left()) == []
    again.__exit__()


def test_the_budget_goes_on_after_a_break(opened: Opened, train: Train) -> None:
    budget = ("--steps", "50", "--tokens", "3000")
    whole = train(opened(*EAPO, "--algo", "grpo", *budget))
    session = opened(*EAPO, "--algo", "grpo", *budget)
    with session.open_logbook() as logbook:
        batch = session.sample(1)
        credit = session.credit(batch)
        session.record(1, batch, credit, session.update(batch, credit), logbook)
        session.checkpoint(1)
    session.run.close()  # as the end of its process does
    resumed = parse(["--resume", str(session.run.path)])
    again = open_session(resumed, preflight(resumed))
    broken = train(again)
    again.__exit__()
    total = "rollout/learner_tokens_total"
    assert [line[total] for line in broken] == [line[total] for line in whole]
