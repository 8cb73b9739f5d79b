"""Nim in words: a plain PettingZoo environment in which players take turns (AEC).

Each player in turn writes how many sticks it takes: 1, 2 or 3. The first number in its message
counts. The player who takes the last stick wins; a player who names no such number loses at once.
"""

import re
import string

import numpy as np
from gymnasium import spaces
from pettingzoo import AECEnv

_NUMBER = re.compile(r"[0-9]{1,9}")


class Nim(AECEnv):
    """Agents ``player_0`` and ``player_1``; text in, text out; 1 for the winner, else 0."""

    metadata = {  # noqa: RUF012 (PettingZoo's convention)
        "name": "nim_v0",
        "render_modes": ["human"],
        "is_parallelizable": False,
    }

    def __init__(self, render_mode=None, most=9):
        self.render_mode = render_mode
        self.most = most
        self.possible_agents = ["player_0", "player_1"]
        self.observation_spaces = {
            agent: spaces.Dict({"text": spaces.Text(200, charset=string.printable)})
            for agent in self.possible_agents
        }
        self.action_spaces = {
            agent: spaces.Text(16, min_length=0, charset=string.printable)
            for agent in self.possible_agents
        }

    def observation_space(self, agent):
        return self.observation_spaces[agent]

    def action_space(self, agent):
        return self.action_spaces[agent]

    def reset(self, seed=None, options=None):
        self.sticks = int(np.random.default_rng(seed).integers(4, self.most + 1))
        if seed is not None:
            for index, space in enumerate(self.action_spaces.values()):
                space.seed(seed + index)
        self.agents = list(self.possible_agents)
        self.agent_selection = self.agents[0]
        self.rewards = dict.fromkeys(self.agents, 0.0)
        self._cumulative_rewards = dict.fromkeys(self.agents, 0.0)
        self.terminations = dict.fromkeys(self.agents, False)
        self.truncations = dict.fromkeys(self.agents, False)
        # Coterie reads these two as the limits of an answer; nothing has to be imported.
        self.infos = {agent: {"max_new_tokens": 8, "stop": ["\n"]} for agent in self.agents}

    def observe(self, agent):
        return {"text": f"{self.sticks} sticks are left. Take 1, 2 or 3:\n"}

    def step(self, action):
        me = self.agent_selection
        if self.terminations[me]:
            self._was_dead_step(action)
            return
        other = next(agent for agent in self.agents if agent != me)
        self._cumulative_rewards[me] = 0.0
        self._clear_rewards()
        # A player may write anything.
        number = _NUMBER.search(action) if isinstance(action, str) else None
        taken = int(number[0]) if number else 0
        legal = 1 <= taken <= min(3, self.sticks)
        self.sticks -= taken if legal else 0
        if not legal or self.sticks == 0:
            self.rewards[me if legal else other] = 1.0
            self.terminations = dict.fromkeys(self.agents, True)
        self.agent_selection = other
        self._accumulate_rewards()
        if self.render_mode == "human":
            self.render()

    def render(self):
        print(f"{self.sticks} sticks, {self.agent_selection} is next")

    def close(self):
        pass
