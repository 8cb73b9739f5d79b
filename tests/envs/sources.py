"""Environments as somebody else writes them, as the source of a module."""

WHOLE = """
import string
from gymnasium import spaces
from pettingzoo import AECEnv, ParallelEnv

class Whole(ParallelEnv):
    metadata = {"name": "whole_v0"}
    render_mode = None
    def __init__(self):
        self.possible_agents = ["me_0", "me_1"]
        self.space = spaces.Text(20, charset=string.printable)
    def observation_space(self, agent): return self.space
    def action_space(self, agent): return self.space
    def reset(self, seed=None, options=None):
        self.agents = list(self.possible_agents)
        return self.told(f"say {seed}"), self.infos()
    def told(self, text): return dict.fromkeys(self.agents, text)
    def infos(self): return {agent: {} for agent in self.agents}
    def paid(self, actions): return {agent: len(actions[agent]) for agent in self.agents}
    def step(self, actions):
        ends = self.told(True), self.told(False)
        result = self.told("bye"), self.paid(actions), *ends, self.infos()
        self.agents = []
        return result
"""
"""Keeps the contract: two agents answer once, and are paid the length of their answers."""
