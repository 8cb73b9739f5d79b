"""Rounds, modes and seeds of an episode, how it is told, and what is refused."""

from typing import Any

import pytest

from coterie.datatypes import Problem, UserError
from coterie.envs.prompts import strategy_prompt

from .scripted import COLD, HINTED, RESCUE, RIGHT, WRONG, Played


def test_the_second_round_is_played_when_nobody_succeeded(make: Any) -> None:
    played = Played(make(), dict.fromkeys(RESCUE, WRONG))
    assert played.steps == 2
    assert played.prompts["alice_2"] == played.prompts["bob_2"] == COLD
    assert played.infos["alice_2"]["loss_weight"] == 0.8


def test_without_a_second_round_there_is_one_step(make: Any, problem: Problem) -> None:
    env = make(k_hinted=0)
    assert env.possible_agents == ["alice_0", "alice_1", "bob_0", "bob_1"]
    played = Played(env, RESCUE)
    assert played.steps == 1
    assert played.rewards == pytest.approx({"alice_0": 0, "alice_1": 0, "bob_0": 0, "bob_1": 1.3})
    with pytest.raises(UserError, match="set k_hinted above 0, or k_cold above 1"):
        make(k_cold=1, k_hinted=0).reset(options={"mode": "probe", "problem": problem})


def test_a_probe_without_a_second_round_takes_the_last_cold_trace(make: Any) -> None:
    env = make(k_hinted=0, hint_probability=0.0)
    played = Played(env, RESCUE | {"bob_0": RIGHT}, mode="probe", hint_probability=1.0)
    assert played.rounds == [["alice_0", "bob_0"], ["alice_1", "bob_1"]]
    assert [role for role, info in played.infos.items() if info["hinted"]] == ["alice_1", "bob_1"]
    assert played.prompts["alice_1"] != COLD == played.prompts["alice_0"]


def test_evaluation_is_cold_and_pays_correctness(make: Any, problem: Problem, scorer: Any) -> None:
    env = make(w_explore=(0.2,), eval_max_new_tokens=99)
    _, infos = env.reset(seed=0, options={"problem": problem, "mode": "eval"})
    assert {info["max_new_tokens"] for info in infos.values()} == {99}
    played = Played(env, RESCUE, mode="eval")
    assert played.rounds == [list(RESCUE)]
    assert set(played.prompts.values()) == {COLD}
    assert played.rewards == {agent: float(text == RIGHT) for agent, text in RESCUE.items()}
    assert played.infos["bob_1"]["reward_terms"] == {"correct": 1.0}
    assert {info["loss_weight"] for info in played.infos.values()} == {1.0}
    assert scorer.embedded == []


def test_an_episode_is_a_function_of_its_seed_and_options(make: Any, sums: Any) -> None:
    env, other = make(source=sums), make(source=sums)
    answers = dict.fromkeys(RESCUE, RIGHT)
    Played(other, answers, seed=9, problem=None)
    left, right = (Played(each, answers, seed=5, problem=None) for each in (env, other))
    assert left.infos == right.infos
    played = [Played(env, answers, seed=seed, problem=None) for seed in range(5)]
    assert len({each.prompts["alice_0"] for each in played}) == 5
    # Unseeded resets go on from the last seed, each with a problem of its own.
    first, _ = env.reset(seed=3)
    second, _ = env.reset()
    third, _ = env.reset()
    other.reset(seed=3)
    again, _ = other.reset()
    assert len({shown["alice_0"]["text"] for shown in (first, second, third)}) == 3
    assert again == second


def test_a_seeded_reset_seeds_the_action_spaces(make: Any, sums: Any) -> None:
    env = make(source=sums)
    samples = []
    for seed in (1, 1, 2):
        env.reset(seed=seed)
        samples.append([env.action_space(agent).sample() for agent in env.possible_agents])
    assert samples[0] == samples[1] != samples[2]
    assert len(set(samples[0])) == len(samples[0])


def test_prompts_that_ask_for_strategies(problem: Problem) -> None:
    cold = strategy_prompt(problem, "strategies")
    assert cold.endswith("Question: 7 + 8 - 3 =")
    assert "plain number" in cold
    assert "peer_hint" not in cold
    hinted = strategy_prompt(problem, "strategies", "add {first}")
    assert "<peer_hint>\nadd {first}\n</peer_hint>" in hinted
    assert strategy_prompt(problem, "plain", "{x}") == COLD.replace("\nLet", "\nHint:\n{x}\nLet")


def test_a_transcript(make: Any, capsys: pytest.CaptureFixture[str]) -> None:
    env = make(render_mode="ansi")
    Played(env, RESCUE)
    text = env.render()
    assert "\nalice_2: reward +1.450; exploitation +1.300, rescue +0.150; correct, hinted" in text
    # What several agents are asked is shown once.
    assert text.count(COLD) == text.count(HINTED) == 1
    Played(make(render_mode="human"), {**RESCUE})
    assert capsys.readouterr().out.strip() == text.strip()


@pytest.mark.parametrize(
    ("after", "learned_cold"),
    [("hint", []), ("cold", ["alice_2", "bob_2"])],
)
def test_hinted_traces_may_be_learned_after_the_cold_prompt(
    after: Any, learned_cold: list[str], make: Any
) -> None:
    infos = Played(make(learn_hinted_after=after), RESCUE).infos
    assert [agent for agent, info in infos.items() if info["hinted"]] == ["alice_2", "bob_2"]
    named = {a: info["learned_after"] for a, info in infos.items() if "learned_after" in info}
    assert named == dict.fromkeys(learned_cold, COLD)
    # What it earns does not change.
    usual = Played(make(), RESCUE).infos
    rewards = [{agent: info["reward_terms"] for agent, info in x.items()} for x in (infos, usual)]
    assert rewards[0] == rewards[1]
