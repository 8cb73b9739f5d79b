"""Imitation before reward: what is refused, what is learned, and where rewards begin."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from coterie import train
from coterie.cli.command_line import parse
from coterie.cli.commands import Stop
from coterie.datatypes import Problem
from coterie.evaluation.report.page import page
from coterie.evaluation.report.rundata import read_run
from coterie.problems.canonical import problem_key
from coterie.rewards.grading.answers import Checker
from coterie.training.config.preflight import preflight
from coterie.training.session import Session, open_session
from coterie.training.warmup import answer_of, other_form

WARM = ("--warmup.steps", "4", "--warmup.problems-per-step", "4", "--warmup.lr", "1e-3")
SOLO = (
    *("--env", "solo", "--agents.solver.model", "tiny:alice", "--env.max-new-tokens", "16"),
    *("--problems.held-out", "8", "--rollout.problems-per-step", "4", "--rollout.replicas", "4"),
    *("--steps", "2", "--threads", "1", "--eval.resamples", "10", "--algo.kl-coefficient", "0.1"),
)


def passing() -> None:
    """Nobody asks the run to stop."""


@pytest.fixture
def file(tmp_path: Path) -> str:
    rows = [
        {"question": f"{n} + 1 =", "answer": str(n + 1), "solution": f"{n} + 1 = {n + 1}"}
        for n in range(24)
    ]
    path = tmp_path / "worked.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return str(path)


# what is imitated


@pytest.mark.parametrize(
    ("solution", "asked", "answer"),
    [
        ("7 + 2 = 9", "Solve it.", "7 + 2 = 9\nAnswer: 9"),
        ("7 + 2 = 9", r"Put it within \boxed{}.", "7 + 2 = 9\n\\boxed{9}"),
        (
            "7 + 2 = 9",
            "Close with <final_answer>...</final_answer>",
            "7 + 2 = 9\n<final_answer>9</final_answer>",
        ),
        # It states its answer, in a form that the checker reads.
        ("7 + 2 = 9\nAnswer: 9", r"Put it within \boxed{}.", "7 + 2 = 9\nAnswer: 9"),
        # It states another one.
        ("7 + 2 = 8\nAnswer: 8", "Solve it.", None),
        ("", "Solve it.", None),
    ],
)
def test_a_solution_ends_as_the_checker_reads_it(
    solution: str, asked: str, answer: str | None
) -> None:
    problem = Problem("p", "7 + 2?", "9", "number", meta={"solution": solution})
    assert answer_of(problem, Checker().check, asked) == answer


@pytest.mark.parametrize(
    ("solution", "asked", "form"),
    [
        ("Half of 54.\nAnswer: 27", r"Put it within \boxed{}.", r"\boxed{}"),
        (
            r"Half of 54: \boxed{27}",
            "End with a line Answer: and a number.",
            "a line `Answer: ...`",
        ),
        (
            "Half of 54.\nAnswer: 27",
            "Close with <final_answer>...</final_answer>",
            "<final_answer>",
        ),
        (r"Half of 54: \boxed{27}", r"Put it within \boxed{}.", ""),
        ("Half of 54.\nAnswer: 27", "Answer: what is half of 54?", ""),
        # The right line is added to it.
        ("54 / 2 = 27", r"Put it within \boxed{}.", ""),
        # No form is asked for.
        ("Half of 54.\nAnswer: 27", "What is half of 54?", ""),
    ],
)
def test_a_solution_in_another_form_than_the_prompt_asks_for_is_noticed(
    solution: str, asked: str, form: str
) -> None:
    problem = Problem("p", "Half of 54?", "27", "number", meta={"solution": solution})
    assert other_form(problem, asked, Checker().check) == form


def test_a_run_says_that_imitation_will_teach_another_form(
    tmp_path: Path, opened: Callable[..., Session], capsys: pytest.CaptureFixture[str]
) -> None:
    rows = [
        {"question": f"{n} + 1?", "answer": str(n + 1), "solution": f"Add.\nAnswer: {n + 1}"}
        for n in range(40)
    ]
    path = tmp_path / "other-form.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    flags = (*SOLO, *WARM, "--problems.train", str(path))
    opened(*flags, "--env.prompt", "{question}\nPut the answer within \\boxed{}.")
    said = " ".join(capsys.readouterr().out.split())
    assert (
        "32 of 32 worked solutions of solver end in another form than its prompt asks for" in said
    )
    opened(*flags, "--env.prompt", "{question}\nEnd with a line Answer: N.")
    assert "another form" not in capsys.readouterr().out


@pytest.mark.parametrize("gold", ["a } b", "hello\\"])
def test_an_answer_that_no_box_can_hold_has_a_line_of_its_own(gold: str) -> None:
    problem = Problem("p", "?", gold, "text", meta={"solution": "Think."})
    asked = answer_of(problem, Checker().check, r"Put it within \boxed{}.")
    assert asked == f"Think.\nAnswer: {gold}"


def test_a_program_is_imitated_in_a_fence() -> None:
    problem = Problem("p", "?", "    return 1", "code", meta={"code_prompt": "def f():\n"})
    assert answer_of(problem, Checker().check) == "```python\ndef f():\n    return 1\n```"


def test_held_out_problems_are_never_imitated(
    file: str, opened: Callable[..., Session], tmp_path: Path
) -> None:
    settings = parse([*SOLO, "--problems.train", file, "--warmup.steps", "9"])
    problems = preflight(settings)
    stream = problems.worked["solver"]
    seen = {problem_key(stream.at(place)) for place in range(100)}
    # 24 rows, 8 of them held out.
    assert len(seen) == 16
    assert not seen & {problem_key(problem) for problem in problems.evaluation}


def test_a_limit_of_the_problems_holds_for_imitation(file: str) -> None:
    settings = parse([*SOLO, "--problems.train", file, "--problems.limit", "5", *WARM])
    problems = preflight(settings)
    worked, trained = problems.worked["solver"], problems.train
    imitated = {problem_key(worked.at(place)) for place in range(100)}
    assert imitated == {problem_key(trained.at(place)) for place in range(100)}
    assert len(imitated) == 5


def test_solutions_longer_than_the_context_are_left_out(
    tmp_path: Path, opened: Callable[..., Session], capsys: pytest.CaptureFixture[str]
) -> None:
    rows = [
        {
            "question": f"{n} + 1 =",
            "answer": str(n + 1),
            "solution": f"{n} + 1 = " * (1 + 99 * (n > 19)),
        }
        for n in range(24)
    ]
    path = tmp_path / "long.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    flags = (*SOLO, *WARM, "--problems.train", str(path), "--agents.solver.context", "100")
    session = opened(*flags, "--problems.eval", "chains")
    assert "4 of 24 worked solutions of solver are left out" in capsys.readouterr().out
    rows_of_steps = [session.runtime.warmup.rows("solver", number) for number in range(1, 9)]
    assert max(len(row.tokens) for step in rows_of_steps for row in step) <= 100


def test_each_role_imitates_its_own_set_as_it_is_asked(
    file: str, opened: Callable[..., Session]
) -> None:
    session = opened(
        *WARM, "--warmup.problems", file, "--agents.bob.warmup", "chains", "--env.k-cold", "2"
    )
    alice, bob = (session.runtime.warmup.rows(role, 1) for role in ("alice", "bob"))
    assert (len(alice), len(bob)) == (4, 4)
    row = alice[0]
    text = session.team.codecs["alice"].decode(row.tokens)
    question = text.partition("Question: ")[2].partition("\n")[0]
    total = int(question.split()[0]) + 1
    # The prompt of core-teaching, then the solution.
    assert text == (
        f"Question: {question}\nLet's solve this step by step: {question} {total}\nAnswer: {total}"
    )
    assert row.tokens[-1] == session.team.codecs["alice"].eos_ids[0]
    first = session.team.codecs["alice"].decode(row.tokens[row.mask])
    assert first == f" {question} {total}\nAnswer: {total}"
    assert "+ 1 =\n" not in session.team.codecs["bob"].decode(bob[0].tokens)


def test_who_is_left_out_stays_as_it_was(file: str, opened: Callable[..., Session]) -> None:
    session = opened(*WARM, "--warmup.problems", file, "--agents.bob.warmup", "none")
    before = {role: _weights(session, role) for role in ("alice", "bob")}
    assert session.warm_up(passing) is None  # nothing is evaluated
    assert not torch.equal(before["alice"], _weights(session, "alice"))
    assert torch.equal(before["bob"], _weights(session, "bob"))


def _weights(session: Session, role: str) -> torch.Tensor:
    parameters = session.team.loaded[role].handle.parameters().values()
    return torch.cat([parameter.detach().flatten() for parameter in parameters])


# the stage


@pytest.mark.slow
@pytest.mark.parametrize("tuning", ["full", "lora"])
def test_a_run_that_is_killed_in_its_warm_up_ends_as_if_nothing_had_happened(
    tuning: str, file: str, tmp_path: Path
) -> None:
    flags = (*SOLO, *WARM, "--problems.train", file, "--agents.solver.tuning", tuning)
    whole, broken = tmp_path / "whole", tmp_path / "broken"
    assert train.main([*flags, "--run-dir", str(whole)]) == 0

    settings = parse([*flags, "--run-dir", str(broken), "--checkpoint-every", "2"])
    with open_session(settings, preflight(settings)) as session:
        session.evaluate("before")
        calls = iter(range(100))

        def killed() -> None:
            if next(calls) == 2:
                raise Stop

        with pytest.raises(Stop):
            session.warm_up(killed)
    # Steps 1 to 3 were done, and 2 of them saved.
    assert [path.name for path in (broken / "checkpoints").iterdir()] == ["warmup-000002"]
    assert len((broken / "warmup.jsonl").read_text().splitlines()) == 3
    assert train.main(["--resume", str(broken)]) == 0

    for log in ("warmup.jsonl", "episodes.jsonl"):
        assert (whole / log).read_bytes() == (broken / log).read_bytes()
    weights = "model" if tuning == "full" else "adapter_model"
    for name in (weights, "optimizer"):
        first, second = (
            load_file(run / f"checkpoints/step-000002/solver/{name}.safetensors")
            for run in (whole, broken)
        )
        assert first.keys() == second.keys()
        assert all(first[key].equal(second[key]) for key in first)
    ends = [json.loads((run / "summary.json").read_text()) for run in (whole, broken)]
    for key in ("before", "warmed_up", "after"):
        assert ends[0][key] == ends[1][key]


@pytest.mark.parametrize("tuning", ["full", "lora"])
def test_rewards_begin_at_the_warmed_up_weights(
    tuning: str, file: str, opened: Callable[..., Session]
) -> None:
    flags = (*SOLO, *WARM, "--problems.train", file, "--agents.solver.tuning", tuning)
    session = opened(*flags)
    before = _weights(session, "solver")
    session.warm_up(passing)
    warmed = _weights(session, "solver")
    assert not torch.equal(before, warmed)
    with session.open_logbook() as logbook:
        for step in session.steps_left():
            batch = session.sample(step)
            metrics = session.update(batch, session.credit(batch))
            if step == 1:
                # The divergence from the reference is 0 before anything was rewarded.
                assert metrics["learner/solver/kl"] == pytest.approx(0, abs=1e-9)
            session.record(step, batch, session.credit(batch), metrics, logbook)
    # Fresh moments: none of imitation's are left.
    tensors, plain = session.team.trained["solver"].state_dict()  # type: ignore[attr-defined]
    assert "imitation" not in plain
    assert set(plain["steps"].values()) == {2.0}
    reference = torch.cat([v.flatten() for n, v in tensors.items() if n.startswith("reference/")])
    assert torch.equal(reference, warmed)


def test_the_table_and_the_summary_show_all_three(
    file: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = tmp_path / "run"
    flags = (*SOLO, *WARM, "--problems.train", file, "--env.eval-answers", "2")
    assert train.main([*flags, "--run-dir", str(run)]) == 0
    out = capsys.readouterr().out
    assert "warmup 4/4  loss" in out
    assert "before       warmed up           after             change" in out
    assert all(len(line) <= 80 for line in out.splitlines() if line.startswith("Pass@"))
    summary = json.loads((run / "summary.json").read_text())
    assert {"before", "warmed_up", "after"} <= summary.keys()
    assert {"pass@1", "pass@2", "stated"} == summary["warmed_up"].keys()
    assert (run / "evaluation/warmed-up.json").is_file()
    assert list((run / "tensorboard/warmup").iterdir())
    steps = [json.loads(line) for line in (run / "warmup.jsonl").read_text().splitlines()]
    assert [step["step"] for step in steps] == [1, 2, 3, 4]
    assert steps[-1]["loss/solver"] < steps[0]["loss/solver"]

    shown = page(read_run(run))
    assert '<th scope="col">warmed up</th>' in shown
    assert "The change since the warm-up is paired by problem" in shown
