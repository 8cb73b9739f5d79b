from typing import Any

import pytest

from coterie import envs
from coterie.datatypes import Problem, UserError

RIGHT, WRONG = "\\boxed{2}", "\\boxed{3}"


def play(problem: Problem, *moves: str | None, tries: int = 2) -> Any:
    """Solver and verifier answer in turn; gives the last step's result."""
    from examples.solver_verifier import SolverVerifier, SolverVerifierSettings

    env = SolverVerifier(SolverVerifierSettings(tries=tries))
    observations, _ = env.reset(seed=0, options={"problem": problem})
    for move in moves:
        (agent,) = [agent for agent in env.agents if observations[agent]["active"]]
        observations, *rest = env.step({} if move is None else {agent: move})
    assert env.agents == []
    return observations, *rest


@pytest.mark.parametrize(
    ("moves", "solver", "verifier", "tries"),
    [
        ((RIGHT, "1"), 1.0, 1.0, 1),
        ((WRONG, "right"), 0.0, 0.0, 1),
        # Rejected with reason, and mended: both verdicts are right.
        ((WRONG, "0", RIGHT, "1"), 1.0, 1.0, 2),
        # Rejected without reason, and spoilt: of two verdicts none is right.
        ((RIGHT, "wrong", WRONG, "1"), 0.0, 0.0, 2),
        ((WRONG, "0", WRONG, "1"), 0.0, 0.5, 2),
        # No verdict is neither, and no rejection.
        ((RIGHT, "perhaps"), 1.0, 0.0, 1),
        ((RIGHT, None), 1.0, 0.0, 1),
        # The solver failed: nothing to judge.
        ((None,), 0.0, 0.0, 1),
    ],
)
def test_rewards(
    problem: Problem, moves: tuple[Any, ...], solver: float, verifier: float, tries: int
) -> None:
    _, rewards, *_, infos = play(problem, *moves)
    assert rewards == {"solver_0": solver, "verifier_0": verifier}
    assert infos["solver_0"]["tries"] == tries


def test_the_verifier_reads_the_attempt_and_the_solver_hears_of_its_rejection(
    problem: Problem,
) -> None:
    env: Any = envs.make("examples.solver_verifier:SPEC", view="text")
    env.reset(seed=0, options={"problem": problem})
    observations, *_ = env.step({"solver_0": "It is 3."})
    assert "Question: 7 + 8 - 3 =\nHint:\nIt is 3.\n" in observations["verifier_0"]["text"]
    observations, *_ = env.step({"verifier_0": "0"})
    assert observations["solver_0"]["text"].startswith("Wrong. Try again.\nQuestion: 7 + 8")


@pytest.mark.parametrize(
    ("text", "verdict"),
    [
        ("7 + 8 = 5, so 1", True),
        ("It is right? No: WRONG.", False),
        ("10", None),
        ("", None),
    ],
)
def test_the_last_verdict_counts(text: str, verdict: bool | None) -> None:
    from examples.solver_verifier import verdict_of

    assert verdict_of(text) is verdict


def test_invalid_roles_and_settings_are_refused() -> None:
    with pytest.raises(UserError, match="solver-verifier: 3 roles; name 2, such as solver verifi"):
        envs.make("examples.solver_verifier:SPEC", roles=("a", "b", "c"))
    with pytest.raises(UserError, match="tries is 0; it must be at least 1"):
        play(Problem(id="q", question="1 =", gold="1"), tries=0)
