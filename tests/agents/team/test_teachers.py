"""Teachers: which model reads for whom, and its probabilities of the tokens."""

import dataclasses
import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from coterie.agents.models.locate import TINY
from coterie.agents.team import AgentSettings, LearningSetup, build_team
from coterie.agents.team.teachers import check_teachers, teacher_models, teacher_seats
from coterie.algorithms import Algorithm, LearnerSettings, get
from coterie.algorithms.algorithm import Distillation
from coterie.algorithms.role_algorithms import RoleAlgorithms
from coterie.datatypes import Trajectory, UserError

ALICE = AgentSettings("tiny:alice")


def taught_by(model: str, **settings: Any) -> Algorithm:
    return dataclasses.replace(
        get("gspo"), distillation=Distillation(beta=1.0, teacher=model, **settings)
    )


def row(tokens: list[int], first: int, **fields: Any) -> Trajectory:
    mask = np.arange(len(tokens)) >= first
    return Trajectory(
        agent="alice_0",
        role="alice",
        tokens=np.array(tokens),
        mask=mask,
        logprobs=np.zeros(len(tokens), np.float32),
        reward=0.0,
        reward_terms={},
        groups={"problem": "p"},
        **fields,
    )


def test_a_frozen_role_with_the_model_is_the_teacher() -> None:
    agents = {"alice": ALICE, "bob": AgentSettings("tiny:bob", trained=False)}
    algorithms = {"alice": taught_by("tiny:bob")}
    assert teacher_seats(agents, algorithms) == {"alice": "bob"}
    assert teacher_models(agents, algorithms) == {}


@pytest.mark.parametrize(
    ("player", "pupil", "shared"),
    [
        ({}, {}, True),
        ({"context": 64}, {}, False),
        ({"context": 64}, {"context": 65}, False),
        ({"context": 64}, {"context": 64}, True),
        ({"dtype": "nf4"}, {}, False),
        ({"dtype": "bfloat16"}, {}, False),
        # What auto is for a tiny model.
        ({"dtype": "float32"}, {}, True),
        # These change what is sampled, and nothing for a reader of tokens.
        ({"chat": "plain", "temperature": 0.5}, {"context": 64}, True),
        ({"revision": "main"}, {}, False),
        ({"trained": True}, {}, False),
    ],
)
def test_a_role_is_the_teacher_if_it_reads_all_that_one_reads(
    player: dict, pupil: dict, shared: bool
) -> None:
    bob = {"trained": False, "device": "cpu", **player}
    alice = dataclasses.replace(ALICE, device="cpu", **pupil)
    agents = {"alice": alice, "bob": AgentSettings("tiny:bob", **bob)}
    algorithms = {"alice": taught_by("tiny:bob")}
    seat = "bob" if shared else "alice|teacher"
    assert teacher_seats(agents, algorithms) == {"alice": seat}
    own = {} if shared else {"alice|teacher": AgentSettings("tiny:bob", trained=False)}
    for name, teacher in teacher_models(agents, algorithms).items():
        expected = dataclasses.replace(own[name], chat="plain", device="cpu")
        assert teacher == expected


def copy_of_alice(folder: Path, positions: int) -> str:
    shutil.copytree(TINY / "alice", folder)
    config = json.loads((folder / "config.json").read_text())
    config["max_position_embeddings"] = positions
    (folder / "config.json").write_text(json.dumps(config))
    return str(folder)


def test_a_teacher_with_a_shorter_context_is_refused(tmp_path: Path) -> None:
    short = copy_of_alice(tmp_path / "short", 64)
    team = RoleAlgorithms(taught_by(short))
    way_out = "reads at most 64 tokens, and alice may write up to {}: say --agents.alice.context 64"
    for context, longest in ((None, 4096), (65, 65)):
        with pytest.raises(UserError, match=way_out.format(longest)):
            check_teachers({"alice": dataclasses.replace(ALICE, context=context)}, team)
    check_teachers({"alice": dataclasses.replace(ALICE, context=64)}, team)
    check_teachers({"alice": ALICE}, RoleAlgorithms(taught_by(copy_of_alice(tmp_path / "l", 8192))))


def test_what_a_frozen_role_cannot_read_is_no_matter_for_a_teacher_of_its_own() -> None:
    bob = AgentSettings("tiny:alice", trained=False, context=64)
    check_teachers({"alice": ALICE, "bob": bob}, RoleAlgorithms(taught_by("tiny:alice")))


def test_a_run_is_no_teacher_but_its_models_are(tmp_path: Path) -> None:
    run = tmp_path / "run"
    (run / "final").mkdir(parents=True)
    (run / "config.json").write_text("{}")
    with pytest.raises(
        UserError, match=rf"^--algo.distillation.teacher: {run} is a run that has no model yet"
    ):
        check_teachers({"alice": ALICE}, RoleAlgorithms(taught_by(str(run))))
    trained = copy_of_alice(run / "final" / "solver", 4096)
    with pytest.raises(UserError, match=f"is a run, which may have several models: name {trained}"):
        check_teachers({"alice": ALICE}, RoleAlgorithms(taught_by(str(run))))
    check_teachers({"alice": ALICE}, RoleAlgorithms(taught_by(trained)))


def test_a_teacher_with_code_of_its_own_is_refused(tmp_path: Path) -> None:
    folder = copy_of_alice(tmp_path / "own", 4096)
    config = json.loads((tmp_path / "own" / "config.json").read_text())
    strange = {"auto_map": {"AutoModelForCausalLM": "x.Y"}, "model_type": "strange"}
    (tmp_path / "own" / "config.json").write_text(json.dumps(config | strange))
    with pytest.raises(UserError, match="only if you trust it: take a teacher without") as refusal:
        check_teachers({"alice": ALICE}, RoleAlgorithms(taught_by(folder)))
    assert "ROLE" not in str(refusal.value)


def test_two_roles_share_a_teacher() -> None:
    agents = {"alice": dataclasses.replace(ALICE, device="cpu"), "bob": AgentSettings("tiny:bob")}
    algorithms = {"alice": taught_by("tiny:carol"), "bob": taught_by("tiny:carol")}
    assert teacher_seats(agents, algorithms) == dict.fromkeys(agents, "alice|teacher")
    (teacher,) = teacher_models(agents, algorithms).values()
    assert (teacher.model, teacher.trained, teacher.device) == ("tiny:carol", False, "cpu")
    algorithms["bob"] = taught_by("tiny:carol", teacher_revision="v1")
    assert teacher_seats(agents, algorithms) == {role: f"{role}|teacher" for role in agents}


@pytest.mark.parametrize(
    ("model", "why"),
    [
        ("tiny:bob", "another vocabulary than tiny:alice"),
        ("scripted:oracle", "gives no probabilities"),
        ("no/such/folder/", "no model folder"),
    ],
)
def test_a_teacher_that_cannot_read_is_refused(model: str, why: str) -> None:
    with pytest.raises(UserError, match=why):
        check_teachers({"alice": ALICE}, RoleAlgorithms(taught_by(model)))
    check_teachers({"alice": ALICE}, RoleAlgorithms(taught_by("tiny:alice")))


@pytest.mark.parametrize("likeliest", [0, 3])
async def test_readings_are_the_teachers_own_probabilities(likeliest: int, near) -> None:
    algorithm = taught_by("tiny:alice", likeliest=likeliest)
    learning = LearningSetup(algorithm, LearnerSettings(), temperature=0.5, total_steps=2)
    team = build_team({"alice": ALICE}, learning=learning)
    rows = [
        row([5, 6, 7, 8, 9], 2),
        # Read after the context that the environment names, and only where something is learned.
        row([5, 6, 7, 8, 9], 2, reread_after=np.array([11, 12, 13]), untrained=((2, 3),)),
        row([5, 6, 7], 0),  # a first token cannot be scored
        # Nobody learns from these.
        row([5, 6, 7], 1, status="failed"),
        row([5, 6, 7], 1, untrained=((1, 3),)),
        row([5] * 4097, 1),  # longer than the context
    ]
    readings = await team.read(rows, step=1)
    assert sorted(readings) == [0, 1, 2, 5]
    assert readings[2] is readings[5] is None
    model = team.loaded["alice"].handle.module
    for index, tokens, first in ((0, [5, 6, 7, 8, 9], 2), (1, [11, 12, 13, 7, 8, 9], 4)):
        with torch.no_grad():
            logits = model(torch.tensor([tokens])).logits[0] / 0.5
        logp = logits.log_softmax(-1)[first - 1 : -1]
        expected = logp[torch.arange(len(tokens) - first), torch.tensor(tokens[first:])]
        reading = readings[index]
        assert reading is not None
        near(reading.logp_N, expected, passes=4)
        if likeliest:
            top = logp.topk(3)
            assert reading.ids_NK is not None
            assert reading.ids_NK.tolist() == top.indices.tolist()
            near(reading.logp_NK, top.values, passes=4)
        else:
            assert reading.ids_NK is None
    await team.aclose()


async def test_a_teacher_whose_weight_has_faded_reads_nothing() -> None:
    algorithm = taught_by("tiny:alice", fade=0.5)
    learning = LearningSetup(algorithm, LearnerSettings(), temperature=1.0, total_steps=4)
    team = build_team({"alice": ALICE}, learning=learning)
    rows = [row([5, 6, 7, 8], 2)]
    assert [len(await team.read(rows, step=step)) for step in (1, 2, 3, 4)] == [1, 1, 0, 0]
    await team.aclose()
