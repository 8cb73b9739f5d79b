"""An environment without ``ConversationEnv``: a writer describes a word, a reader names it.

``coterie check examples.relay:Relay`` checks it. Name a model for each role, and ``train.py --env
examples.relay:Relay --roles writer reader`` trains it.
"""

from typing import Any

from gymnasium import Space, spaces
from pettingzoo import ParallelEnv

from coterie.envs.spaces import TextSpace

Observations = dict[str, dict[str, Any]]
Infos = dict[str, dict[str, Any]]


class Relay(ParallelEnv[str, dict[str, Any], str]):
    """writer_0 sees a word; reader_0 sees the writer's text and must name the word."""

    metadata = {"name": "relay_v0", "render_modes": [], "is_parallelizable": True}  # noqa: RUF012
    words = ("red", "green", "blue")

    def __init__(self) -> None:
        self.possible_agents = ["writer_0", "reader_0"]
        self.agents: list[str] = []
        self._observed = {
            agent: spaces.Dict({"text": TextSpace(), "active": spaces.Discrete(2)})
            for agent in self.possible_agents
        }
        self._acted = {agent: TextSpace() for agent in self.possible_agents}
        self._word, self._written = "", False

    def observation_space(self, agent: str) -> Space[Any]:
        return self._observed[agent]

    def action_space(self, agent: str) -> Space[Any]:
        return self._acted[agent]

    def reset(
        self, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Observations, Infos]:
        """Show the writer a word that the seed chooses."""
        self.agents = list(self.possible_agents)
        self._word = self.words[(seed or 0) % 3]
        for space in self._acted.values():
            space.seed(seed)
        return self._show(writer=f"The word is {self._word}. Describe it: ")

    def step(self, actions: dict[str, str]) -> tuple[Any, ...]:
        """Show the reader the writer's text; then reward both if the reader names the word."""
        if "writer_0" in actions and not self._written:
            written = str(actions["writer_0"])[:80]
            observations, infos = self._show(reader=f"{written}\nThe word: ")
            return observations, dict.fromkeys(self.agents, 0.0), *self._ended(False), infos
        right = float(self._word in str(actions.get("reader_0", "")))
        rewards = dict.fromkeys(self.agents, right)
        observations, infos = self._show()
        ended = self._ended(True)
        self.agents = []
        return observations, rewards, *ended, infos

    def _show(self, writer: str = "", reader: str = "") -> tuple[Observations, Infos]:
        self._written = not writer
        observations: Observations = {}
        infos: Infos = {}
        for agent, text in (("writer_0", writer), ("reader_0", reader)):
            observations[agent] = {"text": text, "active": int(bool(text))}
            infos[agent] = {"max_new_tokens": 16} if text else {}
        return observations, infos

    def _ended(self, done: bool) -> tuple[dict[str, bool], dict[str, bool]]:
        return dict.fromkeys(self.agents, done), dict.fromkeys(self.agents, False)
