"""Who is rescued, worked out by hand, and who was shown a hint."""

from typing import Any

import pytest

from coterie.datatypes import derive_seed
from coterie.envs.core_teaching.environment import coin, shows_hint

from .scripted import COLD, HINTED, RESCUE, RIGHT, WRONG, Played


def test_a_rescue(make: Any) -> None:
    played = Played(make(), RESCUE)

    assert played.rounds == [["alice_0", "alice_1", "bob_0", "bob_1"], ["alice_2", "bob_2"]]
    assert played.prompts["alice_0"] == played.prompts["bob_1"] == COLD
    assert played.prompts["alice_2"] == played.prompts["bob_2"] == HINTED
    # Correct: 1 + .3; rescued: + .15. Everyone else is wrong about a number: no partial credit.
    assert played.rewards == pytest.approx(
        {"alice_0": 0, "alice_1": 0, "alice_2": 1.45, "bob_0": 0, "bob_1": 1.3, "bob_2": 0}
    )
    alice, bob, teacher = (played.infos[name] for name in ("alice_2", "bob_2", "bob_1"))
    assert (alice["rescued"], alice["eligible"], alice["hint_outcome"]) == (True, True, "helped")
    assert alice["hint_lift"] == 1.0
    # Bob had solved it once out of twice.
    assert (bob["eligible"], bob["hint_outcome"], bob["hint_lift"]) == (False, "hurt", -0.5)
    assert teacher["teacher"]
    assert not alice["teacher"]
    assert (alice["round"], teacher["round"]) == ("B", "A")
    assert (alice["loss_weight"], teacher["loss_weight"]) == (0.8, 1.0)
    assert alice["groups"] == {
        "problem": "q",
        "problem+role": "q/alice",
        "problem+role+context": "q/alice/hinted",
    }
    assert teacher["groups"]["problem+role+context"] == "q/bob/cold"
    assert played.episode["cold_rate"] == {"alice": 0.0, "bob": 0.5}
    counts = ("answered", "failed", "hinted", "leaked", "helped", "hurt", "eligible", "rescued")
    assert [played.episode[name] for name in counts] == [6, 0, 2, 0, 1, 1, 1, 1]
    assert played.terminated == dict.fromkeys(RESCUE, True)


def test_rescue_needs_a_cold_trace_of_the_same_role(make: Any) -> None:
    answers = {
        agent: text for agent, text in RESCUE.items() if agent[:7] not in ("alice_0", "alice_1")
    }
    played = Played(make(), answers)
    assert played.infos["alice_2"]["hinted"]
    assert not played.infos["alice_2"]["rescued"]
    assert played.infos["alice_2"]["hint_lift"] is None
    assert played.episode["cold_rate"] == {"bob": 0.5}
    assert played.episode["failed"] == 2


def test_three_roles(make: Any) -> None:
    env = make(roles=("alice", "bob", "carol"))
    answers = {f"{role}_{k}": WRONG for role in env.roles for k in range(3)}
    answers |= {"carol_0": RIGHT, "alice_2": RIGHT, "bob_2": RIGHT}
    played = Played(env, answers)
    assert [agent for agent, info in played.infos.items() if info["rescued"]] == [
        "alice_2", "bob_2",
    ]  # fmt: skip


def test_a_probe_has_controls(make: Any) -> None:
    env = make()
    shown = [Played(env, RESCUE, mode="probe", seed=seed).infos["alice_2"] for seed in range(40)]
    hinted = [info for info in shown if info["hinted"]]
    controls = [info for info in shown if info["control"]]
    assert len(hinted) + len(controls) == 40
    # The coins of 40 seeds, counted apart.
    u = [derive_seed("core-teaching", "hint coin", seed, "alice_2") / 2**63 for seed in range(40)]
    assert len(hinted) == sum(draw < 0.5 for draw in u)
    assert 10 < len(hinted) < 30
    assert all(info["eligible"] for info in hinted)
    assert not any(info["eligible"] for info in controls)
    never = Played(env, RESCUE, mode="probe", hint_probability=0.0)
    assert not never.infos["alice_2"]["hinted"]


def test_the_coin_shows_the_hint_strictly_below_its_probability() -> None:
    assert shows_hint(0.7499, 0.75)
    assert not shows_hint(0.75, 0.75)
    assert not shows_hint(0.0, 0.0)
    draws = [coin(seed, "alice_2") for seed in range(2000)]
    assert all(0 <= draw < 1 for draw in draws)
    # Mean of 2000 uniforms: .5 with a standard error of .0065.
    assert sum(draws) / 2000 == pytest.approx(0.5, abs=0.03)
    assert coin(1, "alice_2") != coin(1, "bob_2")
