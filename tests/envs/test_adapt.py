"""Environments that import nothing of ours."""

import string
from typing import Any

import numpy as np
import pytest
from gymnasium import spaces
from pettingzoo import AECEnv, ParallelEnv

from coterie import envs
from coterie.datatypes import UserError
from coterie.envs.adapt import adapt
from coterie.envs.bytes_codec import BytesCodec


class Echo(ParallelEnv):
    """Two guests hear a number and are paid for saying it twice."""

    metadata = {"name": "echo_v0", "render_modes": []}  # noqa: RUF012

    def __init__(self) -> None:
        self.possible_agents = ["guest_0", "guest_1"]
        self.space = spaces.Text(50, charset=string.printable)

    def observation_space(self, agent: str) -> Any:
        return self.space

    def action_space(self, agent: str) -> Any:
        return self.space

    def reset(self, seed: int | None = None, options: Any = None) -> Any:
        self.agents = list(self.possible_agents)
        self.number = str(np.random.default_rng(seed).integers(1000))
        self.turn = 0
        infos: dict[str, Any] = {agent: {} for agent in self.agents}
        return dict.fromkeys(self.agents, f"Say {self.number}"), infos

    def step(self, actions: dict[str, str]) -> Any:
        self.turn += 1
        alive = self.agents
        rewards = {agent: float(actions[agent] == self.number) for agent in alive}
        over = self.turn == 2
        self.agents = [] if over else alive
        return (
            dict.fromkeys(alive, "again"),
            rewards,
            dict.fromkeys(alive, over),
            dict.fromkeys(alive, False),
            {agent: {} for agent in alive},
        )


class Numbers(Echo):
    """The same in token ids 0..9."""

    def __init__(self) -> None:
        super().__init__()
        self.space = spaces.Sequence(spaces.Discrete(10))

    def reset(self, seed: int | None = None, options: Any = None) -> Any:
        _, infos = super().reset(seed, options)
        self.heard: list[Any] = []
        return {agent: tuple(map(int, self.number)) for agent in self.agents}, infos

    def step(self, actions: dict[str, Any]) -> Any:
        self.heard.append(actions)
        _, *rest = super().step({agent: "".join(map(str, ids)) for agent, ids in actions.items()})
        return dict.fromkeys(rest[0], (1, 2)), *rest


class Turns(AECEnv):
    """One after the other adds a letter to a common word, four in all."""

    metadata = {"name": "turns_v0", "render_modes": []}  # noqa: RUF012
    render_mode = None

    def __init__(self) -> None:
        self.possible_agents = ["left_0", "right_0"]
        self.space = spaces.Text(50, min_length=0, charset=string.printable)

    def observation_space(self, agent: str) -> Any:
        return self.space

    def action_space(self, agent: str) -> Any:
        return self.space

    def reset(self, seed: int | None = None, options: Any = None) -> None:
        self.agents = list(self.possible_agents)
        self.word = str(seed)
        self.count = 0
        self.rewards = dict.fromkeys(self.agents, 0.0)
        self._cumulative_rewards = dict.fromkeys(self.agents, 0.0)
        self.terminations = dict.fromkeys(self.agents, False)
        self.truncations = dict.fromkeys(self.agents, False)
        self.infos: dict[str, Any] = {agent: {} for agent in self.agents}
        self.agent_selection = "left_0"

    def observe(self, agent: str) -> str:
        return f"word {self.word}"

    def step(self, action: Any) -> None:
        if self.terminations[self.agent_selection]:
            self._was_dead_step(action)
            return
        self.word += action[:1]
        self.count += 1
        self._cumulative_rewards[self.agent_selection] = 0
        self._clear_rewards()
        self.rewards[self.agent_selection] = float(len(action))
        if self.count == 4:
            self.terminations = dict.fromkeys(self.agents, True)
        self.agent_selection = self.possible_agents[self.count % 2]
        self._accumulate_rewards()


class Cycle(Turns):
    metadata = {**Turns.metadata, "is_parallelizable": True}  # noqa: RUF012


class Arms(Echo):
    def __init__(self) -> None:
        super().__init__()
        self.space = spaces.Discrete(3)


def tokens(text: str) -> Any:
    return np.array(list(text.encode()), dtype=np.int64)


def test_a_plain_text_environment() -> None:
    env = adapt(Echo())
    observations, _ = env.reset(seed=5)
    number = BytesCodec().decode(observations["guest_0"]["tokens"])[4:]
    assert observations["guest_1"]["active"] == 1
    observations, rewards, *_ = env.step({"guest_0": tokens(number), "guest_1": tokens("x")})
    assert rewards == {"guest_0": 1.0, "guest_1": 0.0}
    text = BytesCodec().decode(observations["guest_0"]["tokens"])
    assert text == f"Say {number}{number}again"
    # guest_1 fails to answer: an empty answer for the environment, which wants everybody's.
    _, rewards, terminated, _, _ = env.step({"guest_0": tokens(number)})
    assert rewards == {"guest_0": 1.0, "guest_1": 0.0}
    assert terminated == {"guest_0": True, "guest_1": True}
    assert env.metadata["default_group"] == "problem+role"


def test_who_is_not_active_reads_what_it_is_told() -> None:
    class Whispers(Echo):
        """guest_1 is told the number, and asked for it one step later."""

        def asking(self, asked: str, told: dict[str, str]) -> dict[str, Any]:
            return {a: {"observation": text, "active": int(a == asked)} for a, text in told.items()}

        def reset(self, seed: int | None = None, options: Any = None) -> Any:
            told, infos = super().reset(seed)
            return self.asking("guest_0", told), infos

        def step(self, actions: dict[str, str]) -> Any:
            told, *rest = super().step(actions)
            return self.asking("guest_1", told), *rest

    env = adapt(Whispers())
    env.reset(seed=5)
    observations, *_ = env.step({"guest_0": tokens("x")})
    assert [shown["active"] for shown in observations.values()] == [0, 1]
    assert BytesCodec().decode(observations["guest_1"]["tokens"]) == "Say 670again"


def test_who_ends_early_has_its_last_info_without_an_observation() -> None:
    class EndsEarly(Echo):
        def step(self, actions: dict[str, str]) -> Any:
            told, rewards, _, cut, infos = super().step(actions)
            over = {agent: agent == "guest_1" or not self.agents for agent in told}
            self.agents = [agent for agent in self.agents if not over[agent]]
            infos["guest_1"] = {"loss_weight": 0.5, "said": "much"}
            return {agent: told[agent] for agent in self.agents}, rewards, over, cut, infos

    env = adapt(EndsEarly())
    env.reset(seed=5)
    observations, *_, infos = env.step({"guest_0": tokens("x"), "guest_1": tokens("y")})
    assert "guest_1" not in observations
    texts = ["Say 670", "y"]
    assert infos["guest_1"] == {"loss_weight": 0.5, "said": "much", "texts": texts}
    assert "texts" not in infos["guest_0"]
    # Who has ended says no more.
    *_, infos = env.step({"guest_0": tokens("x")})
    assert infos.keys() == {"guest_0"}


def test_what_a_log_cannot_hold_stays_with_the_environment() -> None:
    class Measures(Echo):
        def step(self, actions: dict[str, Any]) -> Any:
            *rest, infos = super().step(actions)
            said = {"ok": (1, "x"), "half": "\ud800", "keys": {3: 1}, "long": 2**70, "nan": np.nan}
            return *rest, {agent: {**info, **said, 5: 1} for agent, info in infos.items()}

    env = adapt(Measures())
    env.reset(seed=1)
    *_, infos = env.step({})
    assert set(infos["guest_0"]) & {"ok", "half", "keys", "long", "nan", 5} == {"ok", "half"}


def test_a_plain_token_environment() -> None:
    plain = Numbers()
    env = adapt(plain)
    observations, _ = env.reset(seed=5)
    said = observations["guest_0"]["tokens"]
    assert said.tolist() == [int(digit) for digit in plain.number]
    assert env.action_space("guest_0").contains(np.array([9]))
    assert not env.action_space("guest_0").contains(np.array([10]))
    observations, rewards, *_ = env.step({"guest_0": said})
    assert rewards == {"guest_0": 1.0, "guest_1": 0.0}
    assert plain.heard[0] == {"guest_0": tuple(said.tolist()), "guest_1": ()}
    # It says by itself what its agents see.
    assert observations["guest_0"]["tokens"].tolist() == [1, 2]
    with pytest.raises(UserError, match=r"speaks 10 token ids and its model 257"):
        adapt(Numbers(), {"guest": BytesCodec()})
    with pytest.raises(UserError, match="has no text view"):
        adapt(Numbers(), view="text")


def test_turns_are_taken_one_at_a_time() -> None:
    env = adapt(Turns(), view="text")
    observations, _ = env.reset(seed=7)
    assert observations == {
        "left_0": {"text": "word 7", "active": 1},
        "right_0": {"text": "", "active": 0},
    }
    observations, rewards, *_ = env.step({"left_0": "abc", "right_0": "ignored"})
    assert rewards == {"left_0": 3.0, "right_0": 0.0}
    assert observations["right_0"] == {"text": "word 7a", "active": 1}
    for agent in ("right_0", "left_0", "right_0"):
        _, rewards, terminated, _, _ = env.step({agent: "z"})
    assert terminated == {"left_0": True, "right_0": True}
    assert env.agents == []


def test_observations_of_turns_are_in_their_space_too() -> None:
    class Accents(Turns):
        def observe(self, agent: str) -> str:
            return "é"

    with pytest.raises(AssertionError, match="'é', which is not in its observation space Text"):
        envs.check_env(Accents(), varied=False)


def test_a_cyclic_environment_acts_together() -> None:
    env = adapt(Cycle(), view="text")
    observations, _ = env.reset(seed=7)
    assert [shown["active"] for shown in observations.values()] == [1, 1]
    observations, rewards, *_ = env.step({"left_0": "ab", "right_0": "c"})
    assert rewards == {"left_0": 2.0, "right_0": 1.0}
    assert observations["left_0"]["text"] == "word 7ac"


@pytest.mark.parametrize("plain", [Echo, Numbers, Turns, Cycle])
def test_our_check_passes_on_them(plain: Any) -> None:
    envs.check_env(plain())


def test_other_actions_are_refused() -> None:
    with pytest.raises(UserError, match=r"Arms: the actions of guest_0 are Discrete\(3\)"):
        adapt(Arms())
    with pytest.raises(UserError, match="neither a PettingZoo ParallelEnv nor an AECEnv"):
        adapt(object())
