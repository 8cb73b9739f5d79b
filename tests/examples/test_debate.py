from typing import Any

import pytest

from coterie import envs
from coterie.datatypes import Problem, UserError

COLD = "Question: 7 + 8 - 3 =\nLet's solve this step by step:"


def debate(**settings: Any) -> Any:
    from examples.debate import Debate, DebateSettings

    return Debate(DebateSettings(**settings))


def heard(*texts: str) -> str:
    said = "".join(f"{text}\n" for text in texts)
    return f"Question: 7 + 8 - 3 =\nHint:\n{said}Let's solve this step by step:"


def asked(observations: Any) -> dict[str, str]:
    return {agent: shown["text"] for agent, shown in observations.items() if shown["active"]}


def test_debaters_read_the_others_last_words_and_the_judge_reads_everyones(
    problem: Problem,
) -> None:
    env = debate(rounds=2, show_answers=True)
    observations, _ = env.reset(seed=0, options={"problem": problem})
    assert asked(observations) == {"alice_0": COLD, "bob_0": COLD}
    observations, rewards, *_ = env.step({"alice_0": "a1", "bob_0": "b1", "judge_0": "idle"})
    assert asked(observations) == {"alice_0": heard("b1"), "bob_0": heard("a1")}
    assert set(rewards.values()) == {0.0}
    observations, *_ = env.step({"alice_0": "\\boxed{2}", "bob_0": "\\boxed{3}"})
    (judge, question), *others = asked(observations).items()
    assert (judge, others) == ("judge_0", [])
    both = ("\\boxed{2}", "\\boxed{3}")
    assert question in (heard(*both), heard(*reversed(both)))

    # The judge sides with alice, who is right: 1 for everyone, and 0.5 for her own answer.
    _, rewards, ended, _, infos = env.step({"judge_0": "\\boxed{2}"})
    assert rewards == {"alice_0": 1.5, "bob_0": 1.0, "judge_0": 1.0}
    assert all(ended.values())
    assert infos["bob_0"]["reward_terms"] == {"final": 1.0, "own": 0.0}
    assert infos["bob_0"]["correct"] is False
    assert infos["bob_0"]["groups"] == {"problem+role": "q/bob", "problem": "q"}
    assert infos["judge_0"]["episode"] == {"problem": "q", "final_correct": True, "own_correct": 1}


def test_reasons_are_heard_and_answers_are_not(problem: Problem) -> None:
    env = debate(rounds=2)
    env.reset(seed=0, options={"problem": problem})
    answer = '<strategy id="1"> 7 + 8 = 5 - 3 = <result> 2 </result> </strategy> \\boxed{2}'
    observations, *_, infos = env.step({"alice_0": answer, "bob_0": "\\boxed{3}"})
    # bob gave no reason: there is nothing of his to read.
    assert asked(observations) == {"alice_0": COLD, "bob_0": heard("7 + 8 = 5 - 3 =")}
    assert infos["bob_0"] == {"piece": "fresh", "max_new_tokens": 40}


def test_the_judge_can_spoil_it(problem: Problem) -> None:
    env = debate(rounds=1, own=0.25)
    env.reset(seed=0, options={"problem": problem})
    env.step({"alice_0": "\\boxed{2}", "bob_0": "\\boxed{2}"})
    _, rewards, *_ = env.step({"judge_0": "\\boxed{3}"})
    assert rewards == {"alice_0": 0.25, "bob_0": 0.25, "judge_0": 0.0}


def test_a_debater_without_an_answer_is_not_heard(problem: Problem) -> None:
    env = debate(rounds=2, show_answers=True)
    env.reset(seed=0, options={"problem": problem})
    observations, *_ = env.step({"alice_0": "\\boxed{2}"})
    # bob said nothing: alice has nobody to read.
    assert asked(observations) == {"alice_0": COLD, "bob_0": heard("\\boxed{2}")}
    env.step({})
    _, rewards, *_, infos = env.step({})
    # alice's last words stand; the judge's are missing.
    assert rewards == {"alice_0": 0.5, "bob_0": 0.0, "judge_0": 0.0}
    assert infos["bob_0"]["failed"] is True
    assert "correct" not in infos["bob_0"]


def test_the_judge_reads_the_debaters_in_random_order(problem: Problem) -> None:
    orders = set()
    for seed in range(8):
        env = debate(rounds=1)
        env.reset(seed=seed, options={"problem": problem})
        observations, *_ = env.step({"alice_0": "a", "bob_0": "b"})
        orders.add(observations["judge_0"]["text"])
    assert orders == {heard("a", "b"), heard("b", "a")}


def test_three_debaters() -> None:
    env: Any = envs.make("examples.debate:SPEC", roles=("a", "b", "c", "j"))
    assert env.possible_agents == ["a_0", "b_0", "c_0", "j_0"]


def test_invalid_roles_and_rounds_are_refused() -> None:
    with pytest.raises(UserError, match="debate: 2 roles; name at least 3, such as alice bob judg"):
        envs.make("examples.debate:SPEC", roles=("a", "j"))
    with pytest.raises(UserError, match="rounds is 0; it must be at least 1"):
        debate(rounds=0)
