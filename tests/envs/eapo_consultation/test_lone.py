"""Lone traces, and the context behind which the wrong ones are read again, worked out by hand."""

from dataclasses import replace
from typing import Any

import pytest

from coterie import envs
from coterie.datatypes import UserError
from coterie.envs.bytes_codec import BytesCodec
from coterie.envs.eapo_consultation import EapoConsultationEnv
from coterie.rewards.grading.scorer import AnswerScorer

from .scripted import LONG, PROBLEM, RIGHT, THOUGHT, calls

LONE = replace(LONG, lone=2, reread="wrong")
WRONG = f"{THOUGHT}\nAnswer: 3"
PANEL = "Question: 7 + 8 - 3 =\nExperts: 1 to 3\nSolve:"
ALONE = "Question: 7 + 8 - 3 =\nSolve:"
CALL = calls((2, "5 - 3 ="))
RETURN = '\n<agent_returns>[{"expert_id": 2, "result": "5 - 3 = 2"}]</agent_returns>\n'


class Scene:
    """An episode that is played by a table of answers."""

    def __init__(self, mode: str = "train", **settings: Any):
        self.env = EapoConsultationEnv(replace(LONE, **settings), scorer=AnswerScorer())
        options = {"problem": PROBLEM, "step": 1, "mode": mode}
        self.observations, self.infos = self.env.reset(seed=5, options=options)

    def active(self) -> dict[str, str]:
        return {a: seen["text"] for a, seen in self.observations.items() if seen["active"]}

    def step(self, **actions: str) -> dict[str, str]:
        self.observations, self.rewards, _, self.truncated, self.infos = self.env.step(actions)
        return self.active()


def test_a_wrong_lone_trace_is_read_again_behind_the_reply() -> None:
    scene = Scene()
    assert scene.active() == {"policy_0": PANEL, "policy_1": ALONE, "policy_2": ALONE}
    assert [scene.infos[a]["stop"] for a in scene.active()] == [["</agent_calls>"], [], []]
    # Nobody asks for a lone trace: the expert is asked once, by the conversation.
    asked = scene.step(policy_0=CALL, policy_1=WRONG, policy_2=RIGHT)
    assert asked == {"expert_1": "Question: 5 - 3 =\nSolve:"}
    assert list(scene.step(expert_1="5 - 3 = 2")) == ["policy_0"]
    assert scene.step(policy_0=RIGHT) == {}
    infos = scene.infos
    assert infos["policy_1"]["reread_after"] == PANEL + CALL + RETURN
    assert "reread_after" not in infos["policy_0"] | infos["policy_2"]
    # A wrong answer in the right format earns .1; asking is free here.
    assert [scene.rewards[f"policy_{n}"] for n in range(3)] == [1.0, 0.1, 1.0]
    assert infos["policy_1"]["reward_terms"] == {"answer": 0.1, "consulting": 0.0}
    assert [infos[f"policy_{n}"].get("lone", False) for n in range(3)] == [False, True, True]
    assert [infos[f"policy_{n}"]["groups"]["problem+role"] for n in range(3)] == [
        infos["policy_0"]["groups"]["problem+role"]
    ] * 3
    assert infos["policy_0"]["expert_tokens"] == len("5 - 3 = 2")
    assert infos["policy_0"]["episode"]["reread"] == 1


def test_what_follows_the_last_reply_is_not_in_the_context() -> None:
    """A second call is refused by its coin, as acceptance is 0 from the second step of span 1 on;
    here it is malformed, and its return has no reply."""
    scene = Scene()
    scene.step(policy_0=CALL, policy_1=WRONG, policy_2=WRONG)
    scene.step(expert_1="5 - 3 = 2")
    assert list(scene.step(policy_0="<agent_calls>none</agent_calls>")) == ["policy_0"]
    scene.step(policy_0=WRONG)
    for agent in ("policy_1", "policy_2"):
        assert scene.infos[agent]["reread_after"] == PANEL + CALL + RETURN


@pytest.mark.parametrize("way", ["nobody is asked", "no reply comes", "the setting is none"])
def test_without_a_reply_nothing_is_read_again(way: str) -> None:
    scene = Scene(reread="none" if way == "the setting is none" else "wrong")
    first = WRONG if way == "nobody is asked" else CALL
    scene.step(policy_0=first, policy_1=WRONG, policy_2=WRONG)
    if first == CALL:
        scene.step(**({} if way == "no reply comes" else {"expert_1": "5 - 3 = 2"}))
        scene.step(policy_0=WRONG)
    assert not any("reread_after" in info for info in scene.infos.values())
    assert scene.infos["policy_0"]["episode"]["reread"] == 0


def test_where_experts_are_always_asked_their_replies_stand_behind_the_question() -> None:
    scene = Scene(consult="always", lone=1, experts=1)
    assert scene.active() == {"expert_0": ALONE}
    asked = scene.step(expert_0="2")
    behind = ALONE + '\n<agent_returns>[{"expert_id": 1, "result": "2"}]</agent_returns>\n'
    assert asked == {"policy_0": behind, "policy_1": ALONE}
    scene.step(policy_0=RIGHT, policy_1=WRONG)
    assert scene.infos["policy_1"]["reread_after"] == behind


def test_a_lone_trace_that_fails_earns_nothing() -> None:
    scene = Scene()
    scene.step(policy_0=RIGHT, policy_1=RIGHT)
    assert scene.rewards["policy_2"] == 0
    assert scene.infos["policy_2"]["reward_terms"] == {"answer": 0.0, "consulting": 0.0}
    assert scene.rewards["policy_1"] == 1


@pytest.mark.parametrize("mode", ["eval", "assisted", "workflow"])
def test_outside_of_training_nobody_writes_alone(mode: str) -> None:
    scene = Scene(mode)
    if mode == "workflow":
        scene.step(expert_0="2", expert_1="2", expert_2="2")
    assert list(scene.active()) == ["policy_0"]
    scene.step(policy_0=RIGHT)
    assert scene.rewards["policy_0"] == 1
    assert scene.infos["policy_1"]["reward_terms"] == {"correct": 0.0}


def test_the_answers_are_graded_in_a_batch() -> None:
    """What is asked of the scorer: the lone answers with the first turn, the policy's at its
    end."""
    scene = Scene()
    requests = scene.env.score_requests({"policy_0": CALL, "policy_1": WRONG, "policy_2": RIGHT})
    assert [text for text, _ in requests.checks] == ["Answer: 3", "Answer: 2"]
    scene.step(policy_0=CALL, policy_1=WRONG, policy_2=RIGHT)
    scene.step(expert_1="5 - 3 = 2")
    requests = scene.env.score_requests({"policy_0": RIGHT})
    assert [text for text, _ in requests.checks] == ["5 - 3 = 2", "Answer: 2"]


def test_the_context_in_tokens() -> None:
    env: Any = envs.make("eapo-consultation", settings=LONE, scorer=AnswerScorer())
    env.reset(seed=5, options={"problem": PROBLEM, "step": 1})
    codec = BytesCodec()

    def ids(text: str) -> Any:
        return codec.extend(text)

    env.step({"policy_0": ids(CALL), "policy_1": ids(WRONG), "policy_2": ids(RIGHT)})
    env.step({"expert_1": ids("5 - 3 = 2")})
    *_, infos = env.step({"policy_0": ids(RIGHT)})
    assert codec.decode(infos["policy_1"]["reread_after"]) == PANEL + CALL + RETURN


DAPO = ("--env", "eapo-consultation", "--algo", "dapo")


def run_of(*flags: str) -> Any:
    """What a command trains with, as far as it is no choice of length, seed or place."""
    from coterie.cli.command_line import parse
    from coterie.training.config.preflight import preflight

    settings = parse(flags)
    preflight(settings)
    plain = settings.plain()
    plain["choice"].pop("preset")
    for name in ("eval", "run"):
        plain.pop(name)
    return plain


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        ("--env.reread none", "set it to 0, or add --env.lone 1 --env.reread wrong"),
        ("--algo.distillation.beta 0", "without both: --env.reread none"),
        ("--env.lone 0", "choose lone 1, or reread none"),
    ],
)
def test_rereading_and_distillation_go_together(flags: str, message: str) -> None:
    with pytest.raises(UserError, match=message):
        run_of(*DAPO, *flags.split())


def test_the_default_is_the_arm_that_was_measured() -> None:
    """Consult and reread (research/2026-11-consult-and-reread.md), whose stored command is
    ``--env.lone 1 --env.group-size 4 --env.reread wrong --algo.distillation.beta 1
    --algo.distillation.likeliest 64 --env.accept-span 200 --env.penalty-start 200``."""
    from evidence.studies import studies

    default = run_of(*DAPO)
    arm = next(run for run in studies()["consult"].planned() if run.arm == "reread-long")
    assert default == run_of(*arm.words)
    own = ("lone", "group_size", "reread", "accept_span", "penalty_start")
    assert [default["env"][name] for name in own] == [1, 4, "wrong", 200, 200]
    distillation = {"beta": 1, "bound": 2, "likeliest": 64, "fade": 0, "decay": 0.95}
    teacher = {"teacher": "", "teacher_revision": ""}
    reader = {"reader": "average", "rewards": True}
    assert default["algo"]["distillation"] == {**distillation, **teacher, **reader}
    # Ten runs took 158 to 171 steps for 1.2 million policy tokens.
    from coterie.cli.command_line import parse

    assert parse(DAPO).run.steps == 165


def test_rewards_alone_are_the_default_without_rereading() -> None:
    """Eight conversations, rewards alone, help that fades over 60 of 100 steps."""
    from coterie.cli.command_line import parse

    faded, default = run_of("--preset", "eapo-faded"), run_of(*DAPO)
    off = {"lone": 0, "reread": "none", "group_size": 8, "accept_span": 60, "penalty_start": 60}
    assert faded["env"] == {**default["env"], **off}
    distillation = {**default["algo"]["distillation"], "beta": 0, "likeliest": 0}
    assert faded["algo"] == {**default["algo"], "distillation": distillation}
    assert {**faded, "env": 0, "algo": 0} == {**default, "env": 0, "algo": 0}
    assert parse(["--preset", "eapo-faded"]).run.steps == 100


@pytest.mark.parametrize("algo", ["dapo", "gspo", "grpo"])
@pytest.mark.parametrize("consult", ["never", "always"])
def test_one_flag_says_who_is_asked(consult: str, algo: str) -> None:
    """What else is on by default stands in nobody's way: eight traces of a problem."""
    own = run_of("--env", "eapo-consultation", "--algo", algo, "--env.consult", consult)["env"]
    assert own["group_size"] * (1 + own["lone"]) == 8


def test_where_nobody_can_be_asked_every_trace_is_lone() -> None:
    """One prompt, one way to be paid, and nothing that is read again: training alone."""
    scene = Scene(consult="never")
    assert scene.active() == dict.fromkeys(("policy_0", "policy_1", "policy_2"), ALONE)
    assert [info["stop"] for info in scene.infos.values() if "stop" in info] == [[]] * 3
    assert scene.step(policy_0=WRONG, policy_1=WRONG, policy_2=WRONG) == {}
    assert [scene.rewards[f"policy_{n}"] for n in range(3)] == [0.1] * 3
    assert not any("reread_after" in info for info in scene.infos.values())


@pytest.mark.slow
def test_a_run_reads_lone_traces_again(tmp_path: Any) -> None:
    import json

    from coterie.train import main

    flags = "--env eapo-consultation --algo dapo --steps 2 --eval.no-enabled --threads 1"
    more = f"--rollout.problems-per-step 4 --run-dir {tmp_path}/run"
    assert main([*flags.split(), *more.split()]) == 0
    lines = (tmp_path / "run/metrics.jsonl").read_text().splitlines()
    assert any(json.loads(line)["learner/policy/distillation/rows"] > 0 for line in lines)
