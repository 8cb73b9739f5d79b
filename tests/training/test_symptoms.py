"""Sentences about answers, from counts made by hand, and from a run of random weights."""

import dataclasses
import itertools
import json
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from coterie import train
from coterie.cli.command_line import parse
from coterie.datatypes import Episode, Reading, Trajectory
from coterie.training.config.model_defaults import has_large
from coterie.training.config.train_settings import TrainSettings
from coterie.training.run.cut_off import is_cut_off
from coterie.training.run.symptoms import (
    PAGE,
    AnswerCounts,
    Observer,
    at_start,
    count,
    symptoms,
)

from . import rows

DOCS = Path(__file__).resolve().parents[2] / PAGE


def row(problem: str, role: str, finish: str = "stop", **info: Any) -> Trajectory:
    groups = {"problem+role": f"{problem}/{role}"}
    said = {"turns": ((1, 301),), "usage": ((0, 0),), "texts": ("p", "a")}
    return rows.row(role, groups=groups, finish=(finish,), info=info, **said)


def episode(problem: str, *rows: Trajectory) -> Episode:
    return Episode(problem, 0, 1, "train", rows)


def test_answers_are_counted() -> None:
    right, wrong = {"correct": True, "answer": "2"}, {"correct": False, "answer": "3"}
    none = {"correct": False, "answer": None}
    episodes = [
        # alice: one of two right; bob is not looked at.
        episode(
            "p", row("p", "alice", **right), row("p", "alice", **none), row("p", "bob", **none)
        ),
        # all wrong, one broken off.
        episode("q", row("q", "alice", "length", **none), row("q", "alice", **wrong)),
        # all right.
        episode("r", row("r", "alice", **right), row("r", "alice", **right)),
        # behind hints, alone in their groups: one rescued.
        episode("t", row("t", "alice", **right, eligible=True, rescued=True)),
        episode("u", row("u", "alice", **wrong, eligible=True, rescued=False)),
        # alone in its group; and one that failed.
        episode(
            "s", row("s", "alice", **right), dataclasses.replace(row("s", "alice"), status="x")
        ),
    ]
    counts = count(episodes, ["alice"], "problem+role", limit=300)
    groups = {"groups": 3, "all_right": 1, "all_wrong": 1}
    assert counts == AnswerCounts(9, unstated=2, broken_off=1, **groups, hinted=2, rescued=1)
    # An environment that reads no answers has none that are not stated.
    assert count([episode("p", row("p", "me"))], ["me"], "problem+role", limit=300) == AnswerCounts(
        1
    )


def test_an_agent_with_several_contexts_is_one_answer_and_no_group() -> None:
    def contexts(agent: str, *finish: str, **info: Any) -> list[Trajectory]:
        own = (row("p", "alice", reason, **info) for reason in finish)
        return [dataclasses.replace(each, member=f"p/{agent}") for each in own]

    none = {"correct": False, "answer": None}
    alone = episode("p", *contexts("alice_0", "length", "stop", **none))
    assert count([alone], ["alice"], "problem+role", limit=300) == AnswerCounts(
        1, unstated=1, broken_off=1
    )
    # Beside another agent the two are one group, in which one is right.
    other = contexts("alice_1", "stop", "stop", correct=True, answer="2")
    both = episode("p", *alone.trajectories, *other)
    counts = AnswerCounts(2, unstated=1, broken_off=1, groups=1)
    assert count([both], ["alice"], "problem+role", limit=300) == counts


@pytest.fixture
def settings() -> TrainSettings:
    return parse(["--preset", "core-gated"])


@pytest.mark.parametrize(
    ("counts", "sentence"),
    [
        (
            AnswerCounts(96, unstated=94),
            "the checker finds no final answer in 94 of 96 responses: --env.prompt-style answer "
            "asks for one (docs/my-model-does-not-learn.md#format)",
        ),
        (
            AnswerCounts(96, hinted=40, rescued=1),
            "only 1 of 40 tries with a hint are right, so hints teach nothing: put hints into half "
            "of the warm-up (docs/my-model-does-not-learn.md#hints)",
        ),
        (
            AnswerCounts(192, broken_off=149),
            "149 of 192 answers broke off at 48 tokens: --env.max-new-tokens 256 gives them room "
            "(docs/my-model-does-not-learn.md#length)",
        ),
        (
            AnswerCounts(64, groups=16, all_right=2, all_wrong=13),
            "15 of 16 groups have no signal (2 all right, 13 all wrong): name easier problems than "
            "--problems.train chains, or warm the model up, --warmup.steps 100 "
            "(docs/my-model-does-not-learn.md#signal)",
        ),
        (
            AnswerCounts(64, groups=16, all_right=15),
            "15 of 16 groups have no signal (15 all right, 0 all wrong): name harder problems than "
            "--problems.train chains (docs/my-model-does-not-learn.md#signal)",
        ),
    ],
)
def test_each_symptom_names_the_flag_that_mends_it(
    settings: TrainSettings, counts: AnswerCounts, sentence: str
) -> None:
    assert list(symptoms(counts, settings).values()) == [sentence]


@pytest.mark.parametrize(
    "counts",
    [
        AnswerCounts(96, unstated=47, broken_off=23, groups=32, all_right=14, all_wrong=14),
        AnswerCounts(15, unstated=15, broken_off=15, groups=7, all_wrong=7, hinted=15),
        AnswerCounts(96, hinted=40, rescued=2),
        AnswerCounts(),
    ],
)
def test_below_the_thresholds_nothing_is_said(
    settings: TrainSettings, counts: AnswerCounts
) -> None:
    # A half of 96 is 48 and a quarter 24; nine tenths of 32 are 28.8; a twentieth of 40 is 2; fewer
    # than 16 say nothing.
    assert symptoms(counts, settings) == {}


def test_groups_of_which_traces_are_read_again_have_a_signal() -> None:
    usual = parse([])
    assert symptoms(AnswerCounts(96, groups=32, all_right=10, all_wrong=22), usual) == {}
    # Nobody is right, so there is nothing to read them after.
    assert "alike" in symptoms(AnswerCounts(96, groups=32, all_wrong=32), usual)


def test_groups_of_roles_that_a_teacher_teaches_need_no_different_answers() -> None:
    def alike(number: int) -> Episode:
        both = [row(f"p{number}", role, correct=False) for role in ("alice", "bob")]
        return episode(f"p{number}", *both, *both)

    played, learn = [alike(number) for number in range(8)], ["alice", "bob"]
    assert count(played, learn, "problem+role", limit=300).groups == 16
    assert count(played, learn, "problem+role", ["alice"], limit=300) == AnswerCounts(
        32, groups=8, all_wrong=8
    )
    # Compared with bob, alice counts.
    together = [
        dataclasses.replace(each, trajectories=tuple(in_one_group(each.trajectories)))
        for each in played
    ]
    assert count(together, learn, "problem", ["alice"], limit=300) == AnswerCounts(
        32, groups=8, all_wrong=8
    )
    assert count(together, learn, "problem", learn, limit=300).groups == 0


def in_one_group(trajectories: Sequence[Trajectory]) -> Iterator[Trajectory]:
    for each in trajectories:
        problem = each.groups["problem+role"].partition("/")[0]
        yield dataclasses.replace(each, groups={"problem": problem})


READ = Reading(np.zeros(2, np.float32))


def test_a_step_without_signal_is_none_if_the_teacher_reads() -> None:
    flags = ["--env", "solo", "--agents.solver.model", "tiny:alice", "--problems.train", "chains"]
    by_teacher = ("--algo.distillation.beta", "1", "--algo.distillation.teacher", "tiny:alice")
    settings = parse([*flags, *by_teacher])
    sentences: list[str] = []
    observer = Observer(settings, ["solver"], "problem+role", sentences.append)
    wrong = [
        episode(f"p{n}", *(row(f"p{n}", "solver", correct=False) for _ in range(2)))
        for n in range(8)
    ]
    observer.look_at_evaluation(wrong, "evaluation before training: ")
    # Of 16 rows a tenth is 1.6.
    observer.look_at(wrong, "step 1: ", {"solver": [READ] * 15 + [None]})
    assert sentences == []
    observer.look_at(wrong, "step 2: ", {"solver": [READ] * 14 + [None] * 2})
    assert sentences == [
        "step 2: the teacher of solver cannot read 2 of 16 rows, mostly because they are too long "
        "for it: lower --agents.solver.context, or take another teacher "
        "(docs/algorithms.md#distillation-from-a-teacher)"
    ]
    # It reads nothing, and nothing once beta has faded: then rewards must differ.
    observer.look_at(wrong, "step 3: ", {"solver": [None] * 16})
    assert sentences[1].startswith(
        "step 3: 8 of 8 groups have no signal (0 all right, 8 all wrong)"
    )


def test_a_style_that_asks_in_vain_is_answered_by_imitation() -> None:
    asks = parse(["--env.prompt-style", "answer"])
    assert "--warmup.steps 100" in symptoms(AnswerCounts(96, unstated=94), asks)["unstated"]


def test_each_thing_is_said_once(settings: TrainSettings) -> None:
    sentences: list[str] = []
    observer = Observer(settings, ["alice"], "problem+role", sentences.append)
    none = [episode("p", *(row("p", "alice", correct=False, answer=None) for _ in range(16)))]
    observer.look_at(none)
    observer.look_at(none, "step 1: ")
    assert len(sentences) == 1
    observer.look_at([episode("p", *(row("p", "alice", "length") for _ in range(16)))], "step 2: ")
    assert [
        sentence.startswith("step 2: 16 of 16 answers broke off") for sentence in sentences
    ] == [False, True]


def test_each_evaluation_says_how_many_answers_were_cut_off() -> None:
    sentences: list[str] = []
    settings = parse(["--env.max-new-tokens", "40", "--env.eval-max-new-tokens", "300"])
    observer = Observer(settings, ["alice"], "problem+role", sentences.append)
    finish = ["length"] * 4 + ["stop"] * 12
    played = [episode("p", *(row("p", "alice", how) for how in finish))]
    observer.look_at(played, "step 1: ")
    observer.look_at_evaluation(played, "evaluation after training: ")
    observer.look_at(played, "step 2: ")
    page = "docs/my-model-does-not-learn.md#length"
    assert sentences == [
        "step 1: 4 of 16 answers broke off at 40 tokens: --env.max-new-tokens 256 gives them room "
        f"({page})",
        "evaluation after training: 4 of 16 answers broke off at 300 tokens: "
        f"--env.eval-max-new-tokens 600 gives them room ({page})",
    ]
    few = [episode("p", *(row("p", "alice", how) for how in [*finish[1:], "stop"]))]
    observer.look_at_evaluation(few, "evaluation after training: ")
    assert len(sentences) == 2


def test_a_turn_with_a_shorter_limit_of_its_own_is_no_answer_that_broke_off() -> None:
    """COREA's stated confidence has 8 tokens, whatever the answer before it may have."""

    def traces(*turns: tuple[str, int]) -> Trajectory:
        ends = [0, *itertools.accumulate(count for _, count in turns)]
        return dataclasses.replace(
            row("p", "alice"),
            turns=tuple(itertools.pairwise(ends)),
            finish=tuple(how for how, _ in turns),
            usage=((0, 0),) * len(turns),
        )

    assert not is_cut_off(traces(("eos", 40), ("length", 8)), 64)
    assert not is_cut_off(traces(("length", 1)), 64)
    assert is_cut_off(traces(("length", 64), ("stop", 5)), 64)
    # One limit for a whole episode, as in consultations.
    assert is_cut_off(traces(("stop", 40), ("length", 24)), 64)
    # Bytes stand for tokens, four for one, unless the server counts.
    assert not is_cut_off(traces(("length", 64)), 64, 4)
    by_server = dataclasses.replace(traces(("length", 200)), usage=((9, 64),))
    assert is_cut_off(by_server, 64, 4)


def test_settings_that_do_not_suit_a_model(monkeypatch: pytest.MonkeyPatch) -> None:
    real = ["--agents.alice.model", "nobody/0.1B", "--agents.bob.model", "nobody/0.1B"]
    monkeypatch.setattr("coterie.training.run.symptoms.native_bfloat16", lambda: "avx512_bf16")
    assert at_start(parse(real)) == {}
    assert at_start(parse(["--learner.lr", "1"])) == {}  # tiny
    rate = at_start(parse([*real, "--learner.lr", "1e-2"]))["rate --learner."]
    assert rate.startswith(
        "--learner.lr is 0.01, which breaks models of this size: 0.0002 is usual"
    )
    forced = parse([*real, "--agents.bob.dtype", "float32"])
    assert "--agents.bob.dtype auto" in at_start(forced)["float32"]
    number_format = "coterie.agents.models.number_format"
    for module in (number_format, "coterie.training.run.symptoms"):
        monkeypatch.setattr(f"{module}.native_bfloat16", lambda: None)
        monkeypatch.setattr(f"{module}.native_int8", lambda: None)
    assert at_start(forced) == {}
    for module in (number_format, "coterie.training.run.symptoms"):
        monkeypatch.setattr(f"{module}.native_int8", lambda: "avx512_vnni")
    assert at_start(forced) == {
        "int8": "alice computes in float32 on a processor that is faster in 8 bits: "
        "--agents.alice.dtype int8 (docs/my-model-does-not-learn.md#speed)"
    }
    full = parse([*real, "--agents.alice.tuning", "full", "--agents.bob.dtype", "int8"])
    assert at_start(full) == {}
    assert at_start(parse([])) == {}  # tiny


def test_every_sentence_links_a_section_that_there_is() -> None:
    titles = {
        line.removeprefix("## ").strip().lower().replace(" ", "-")
        for line in DOCS.read_text(encoding="utf-8").splitlines()
        if line.startswith("## ")
    }
    modules = (
        DOCS.parents[1] / "training" / "run" / f"{name}.py" for name in ("symptoms", "cut_off")
    )
    text = "".join(module.read_text(encoding="utf-8") for module in modules)
    linked = set(re.findall(r"\{PAGE\}#([a-z-]+)", text))
    assert len(linked) > 4
    assert linked <= titles


def test_a_run_of_random_weights_says_each_of_them(
    random_model: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr("coterie.training.run.symptoms.native_bfloat16", lambda: "avx512_bf16")
    models = [f"--agents.{role}.model={random_model}" for role in ("alice", "bob")]
    flags = ["--problems.train", "chains", "--problems.held-out", "8", "--steps", "1"]
    flags += ["--env.prompt-style", "plain", "--env.max-new-tokens", "12", "--learner.lr", "1e-2"]
    flags += ["--rollout.problems-per-step", "1", "--agents.alice.dtype", "float32"]
    assert train.main([*models, *flags, "--run-dir", str(tmp_path / "run")]) == 0
    output = capsys.readouterr().out
    for sentence in (
        "--learner.lr is 0.01, which breaks models of this size",
        "alice computes in float32 on a processor that is faster in bfloat16",
        "responses: --env.prompt-style answer asks for one",
        "groups have no signal (0 all right, ",
    ):
        assert output.count(sentence) == 1, sentence
    # Evaluations before and after training.
    sentence = "answers broke off at 12 tokens: --env.max-new-tokens 256"
    moments = [line.split(":")[0] for line in output.splitlines() if sentence in line]
    assert moments == ["evaluation before training", "evaluation after training"]
    # And all of it before the first step.
    assert output.index("groups have no signal") < output.index("step 1/1")
    lines = [line for line in output.splitlines() if line.startswith("evaluating before training:")]
    # 8 problems, 4 traces of 2 roles, twice.
    assert lines[0] == "evaluating before training: 128 answers"
    assert f"loading {random_model}: 2 roles" in output
    assert output.splitlines()[1] == "checking settings, models and problems"


def test_every_part_of_a_run_says_through_a_pipe_how_far_it_is(
    random_model: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    @contextmanager
    def watched(show: Callable[[float, float], None], counted: object) -> Iterator[None]:
        show(0, 0.0)
        yield

    # As if every part came after a long silence, however short it is.
    monkeypatch.setattr("coterie.training.run.stage_progress.SILENCE_S", 0.0)
    monkeypatch.setattr("coterie.training.run.stage_progress._watching", watched)
    problems = tmp_path / "sums.jsonl"
    sums = [{"question": f"{n}+1?", "answer": n + 1, "solution": f"{n}+1"} for n in range(9)]
    problems.write_text("".join(json.dumps(row) + "\n" for row in sums))
    flags = ["--env", "solo", "--agents.solver.model", random_model, "--eval.every", "1"]
    flags += ["--problems.train", str(problems), "--problems.held-out", "2", "--steps", "2"]
    flags += ["--env.max-new-tokens", "4", "--env.eval-answers", "1", "--warmup.steps", "1"]
    flags += ["--rollout.problems-per-step", "2"]
    assert train.main([*flags, "--run-dir", str(tmp_path / "run")]) == 0
    output = capsys.readouterr().out
    for part in (
        f"loading {random_model}: 0/1 roles",
        "evaluating before training: 0/2 answers",
        "warmup step 1: learning: 0/16 rows",
        "evaluating after the warm-up: 2 answers",
        "step 1: sampling: ",
        "step 1: learning: ",
        "step 1: evaluating: 0/2 answers",
        "warmup step 1: saving: ",
        "step 2: saving: ",
        "step 2: keeping the trained models: ",
    ):
        assert f"\n{part}" in output, part


def test_models_of_a_papers_preset_are_large() -> None:
    # Its defaults are the paper's; steps and answers take long all the same.
    assert has_large(parse(["--preset", "core-qwen-gsm8k"]).agents)
    assert not has_large(parse([]).agents)
