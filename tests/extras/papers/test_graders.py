"""Programs and free text in the papers' comparisons: graded, or refused with the way out."""

import json
from pathlib import Path
from typing import Any

import pytest

from coterie import benchmark, envs
from coterie.datatypes import Problem
from coterie.extras.papers.leap import LeapEnv, LeapSettings
from coterie.extras.programs.grader import ProgramGrader
from coterie.rewards.grading.scorer import AnswerScorer

COMPARISONS = {
    "corea": ("corea", "--systems", "slm", "llm", "--samples", "1"),
    "eapo": ("eapo", "--no-peers", "--no-noise", "--samples", "1"),
}


@pytest.mark.parametrize("comparison", COMPARISONS)
@pytest.mark.parametrize("kind", ["judged", "code"])
def test_problems_without_a_grader_are_refused(
    graded_files: dict[str, str], comparison: str, kind: str, capsys: Any
) -> None:
    assert benchmark.main([*COMPARISONS[comparison], "--problems", graded_files[kind]]) == 2
    said = capsys.readouterr().err
    assert f"of kind {kind}" in said
    assert {"judged": "--scoring.judge", "code": "--scoring.programs"}[kind] in said


@pytest.mark.parametrize("comparison", COMPARISONS)
def test_a_judge_grades_free_text(
    tmp_path: Path, graded_files: dict[str, str], comparison: str
) -> None:
    # It calls everything correct; no gold answer is this one.
    wrong = ("--base", "scripted:useless?useless_text=Answer: 99")
    judge = ("--scoring.judge", "scripted:useless?useless_text=A", "--resamples", "10")
    flags = ("--problems", graded_files["judged"], *wrong, *judge, "--out", str(tmp_path))
    assert benchmark.main([*COMPARISONS[comparison], *flags]) == 0
    systems = json.loads((tmp_path / "results.json").read_text())["systems"]
    row, figure = {"corea": ("slm", "accuracy"), "eapo": ("base", "avg@n")}[comparison]
    assert systems[row][figure]["value"] == 1.0


# Ways to write x + 3 behind a thought, and where the program is not the answer.
BODY = "return x + 3"
WHOLE = f"def add3(x):\n    {BODY}"
PROGRAMS = {
    f"<think>hm</think>\n```python\n{WHOLE}\n```": True,
    f"I add.\n\n```python\n{WHOLE}\n```\nAnswer: add3, as above": True,
    f"Answer: {WHOLE}": True,
    f"    {BODY}": True,
    f"Answer: {BODY}": True,
    f"```python\n{WHOLE}\n```\n<think>or 2?</think>\n```\n{WHOLE.replace('3', '2')}\n```": False,
    f"<think>```python\n{WHOLE}\n```</think>\nAnswer: add3": False,
    "Answer: x + 3": False,
}


@pytest.fixture(scope="module")
def grading() -> Any:
    scorer = AnswerScorer(graders={"code": ProgramGrader()})
    yield scorer
    scorer.close()


def add3() -> Problem:
    meta = {
        "entry_point": "add3",
        "code_prompt": "def add3(x):\n    '''x + 3'''\n",
        "test": "def check(candidate):\n    assert [candidate(1), candidate(-3)] == [4, 0]\n",
    }
    return Problem("add3", "Write add3.", f"    {BODY}\n", "code", meta=meta)


@pytest.mark.parametrize(("text", "right"), PROGRAMS.items())
@pytest.mark.parametrize("system", ["alone", "conversation", "paths"])
def test_a_program_is_graded_whole(system: str, text: str, right: bool, grading: Any) -> None:
    """Appendix G asks for a last line with the answer; a program has many."""
    if system == "paths":
        env: Any = LeapEnv(LeapSettings(pauses=1), scorer=grading)
    else:
        env = envs.make("eapo-consultation", preset="eapo-r1-7b", scorer=grading, view="text")
    mode = "train" if system == "conversation" else "eval"
    seen, _ = env.reset(seed=0, options={"problem": add3(), "mode": mode})
    call = [{"expert_id": 1, "input_parameters": {"query": "def add3(x):\n    return 0"}}]
    call_text = f"<think>?</think><agent_calls>{json.dumps(call)}</agent_calls>"
    turns = [call_text, text] if system == "conversation" else [text]
    infos, rewards = dict[str, Any](), dict[str, Any]()
    while env.agents:
        active = [agent for agent, sight in seen.items() if sight["active"]]
        said = turns.pop(0) if turns and "policy_0" in active else ""
        own = {a: said if a.startswith("policy") else "Answer: pass" for a in active}
        seen, rewards, _, _, infos = env.step(own)
    assert infos["policy_0"]["correct"] == right
    assert infos["policy_0"]["f1"] == float(right)
    if mode == "train" and right:
        # Word F1 in the paper; two right programs need not share a word.
        assert rewards["policy_0"] == 1.0


WRITES = "scripted:oracle?template=```python\n{solution}\n```"


def test_the_suite_scores_right_programs(tmp_path: Path, graded_files: dict[str, str]) -> None:
    argv = ["--suite", "eapo", "--preset", "eapo-r1-7b", "--no-workflow"]
    argv += ["--policies", f"gold={WRITES}"]
    argv += ["--problems", graded_files["code"], "--scoring.programs", "--samples", "1"]
    assert benchmark.main([*argv, "--resamples", "10", "--out", str(tmp_path / "out")]) == 0
    rows = json.loads((tmp_path / "out/results.json").read_text())["suites"]["eapo"]["rows"]
    assert rows["gold"]["avg"]["value"] == 1.0


def test_the_comparison_scores_right_programs(tmp_path: Path, graded_files: dict[str, str]) -> None:
    argv = ["eapo", "--base", WRITES, "--expert", WRITES, "--no-noise", "--scoring.programs"]
    argv += ["--problems", graded_files["code"], "--samples", "4", "--resamples", "10"]
    # A script begins anew in every block.
    argv += ["--leap.block-tokens", "500", "--leap.max-new-tokens", "600"]
    assert benchmark.main([*argv, "--out", str(tmp_path / "out")]) == 0
    systems = json.loads((tmp_path / "out/results.json").read_text())["systems"]
    assert {name: system["f1"] for name, system in systems.items()} == dict.fromkeys(
        ("base", "self", "workflow", "peers"), 1.0
    )
    assert systems["peers"]["avg@n"]["value"] == 1.0
