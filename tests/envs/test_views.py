"""The token and the padded view, over a text environment of three turns."""

from typing import Any

import numpy as np
import pytest
from gymnasium import spaces

from coterie import envs
from coterie.datatypes import UserError
from coterie.envs.bytes_codec import END, BytesCodec
from coterie.envs.padded_view import PaddedView
from coterie.envs.spaces import SpacedEnv, TextSpace
from coterie.envs.token_view import TokenView


class Dialogue(SpacedEnv):
    """A message, text inserted into the answer, and another message; then it is over."""

    metadata = {"name": "dialogue_v0", "render_modes": []}  # noqa: RUF012
    PIECES = (("ask", "message"), ("<got>", "continuation"), ("more", "message"))

    def __init__(self) -> None:
        self.possible_agents = ["a_0", "a_1"]
        shown = spaces.Dict({"text": TextSpace(), "active": spaces.Discrete(2)})
        self._observation_spaces = dict.fromkeys(self.possible_agents, shown)
        self._action_spaces = {agent: TextSpace() for agent in self.possible_agents}

    def reset(self, seed: int | None = None, options: dict[str, Any] | None = None) -> Any:
        self.agents = list(self.possible_agents)
        self.heard: list[dict[str, str]] = []
        return self.show()

    def show(self) -> Any:
        text, piece = [*self.PIECES, ("", "message")][len(self.heard)]
        shown = {"text": text, "active": int(len(self.heard) < 3)}
        idle = {"text": "", "active": 0}
        infos = {agent: {"piece": piece, "max_new_tokens": 5} for agent in self.agents}
        return {"a_0": shown, "a_1": idle}, infos

    def step(self, actions: dict[str, str]) -> Any:
        self.heard.append(actions)
        observations, infos = self.show()
        over = len(self.heard) == 3
        ends, none = dict.fromkeys(self.agents, over), dict.fromkeys(self.agents, False)
        rewards = dict.fromkeys(self.agents, 0.0)
        self.agents = [] if over else self.agents
        return observations, rewards, ends, none, infos


def ids(text: str, *more: int) -> np.ndarray:
    return np.array([*text.encode(), *more], dtype=np.int64)


def test_contexts_grow_at_their_end_and_keep_the_very_ids() -> None:
    inner = Dialogue()
    env = TokenView(inner)
    observations, infos = env.reset(seed=0)
    assert observations["a_0"]["tokens"].tolist() == list(b"ask")
    assert infos["a_0"] == {"max_new_tokens": 5, "text": "ask"}
    assert observations["a_1"]["tokens"].tolist() == []
    assert "text" not in infos["a_1"]

    # 255 is no valid UTF-8; the id stays although its text cannot be tokenised back to it.
    observations, *_, infos = env.step({"a_0": ids("x", 255), "a_1": ids("ignored")})
    assert inner.heard[0] == {"a_0": "x\ufffd", "a_1": "ignored"}
    assert observations["a_0"]["tokens"].tolist() == [*b"askx", 255, *b"<got>"]
    assert infos["a_0"]["text"] == "askx\ufffd<got>"
    assert observations["a_1"]["tokens"].tolist() == []

    observations, *_ = env.step({"a_0": ids("y")})
    # The turn was not ended by the model, so the codec ends it before the next message.
    before = [*b"askx", 255, *b"<got>y"]
    assert observations["a_0"]["tokens"].tolist() == [*before, END, *b"more"]

    observations, *_ = env.step({"a_0": ids("z")})
    assert observations["a_0"]["tokens"].tolist() == [*before, END, *b"morez"]
    assert env.agents == []


def test_a_turn_that_the_model_ended_is_not_ended_twice() -> None:
    env = TokenView(Dialogue())
    env.reset()
    env.step({"a_0": ids("x")})
    observations, *_ = env.step({"a_0": ids("y", END)})
    assert observations["a_0"]["tokens"].tolist() == [*b"askx<got>y", END, *b"more"]


def test_a_turn_without_an_answer_is_ended_after_one_that_the_model_ended() -> None:
    env = TokenView(Dialogue())
    env.reset()
    env.step({"a_0": ids("x", END)})
    observations, *_ = env.step({})  # it fails behind the continuation
    assert observations["a_0"]["tokens"].tolist() == [*b"askx", END, *b"<got>", END, *b"more"]


@pytest.mark.parametrize(
    "action",
    [None, "text", [], np.array([0.5]), np.array([-1, 257, 2**40]), [[1], [2, 3]], {"a": 1}],
    ids=str,
)
def test_what_holds_no_ids_is_an_empty_answer(action: Any) -> None:
    inner = Dialogue()
    env = TokenView(inner)
    env.reset()
    observations, *_ = env.step({"a_0": action, "nobody": ids("x")})
    assert inner.heard[0] == {"a_0": ""}
    assert observations["a_0"]["tokens"].tolist() == list(b"ask<got>")
    assert env.observation_space("a_0").contains(observations["a_0"])


def test_a_context_to_learn_after_is_told_in_ids() -> None:
    class Told(Dialogue):
        def show(self) -> Any:
            observations, infos = super().show()
            infos["a_0"]["learned_after"] = "cold"
            return observations, infos

    env = TokenView(Told())
    _, infos = env.reset(seed=0)
    assert infos["a_0"]["learned_after"].tolist() == list(BytesCodec().open("cold"))
    assert "learned_after" not in infos["a_1"]


def test_callers_cannot_change_a_context() -> None:
    env = TokenView(Dialogue())
    observations, _ = env.reset()
    observations["a_0"]["tokens"][:] = 0
    observations, *_ = env.step({})
    assert observations["a_0"]["tokens"].tolist() == list(b"ask<got>")


def test_codecs_by_role() -> None:
    class Shifted(BytesCodec):
        vocab_size = 1000

        def open(self, message: str) -> list[int]:
            return [500 + byte for byte in message.encode()]

    env = TokenView(Dialogue(), {"a": Shifted()})
    assert env.action_space("a_0").contains(np.array([999], dtype=np.int64))
    assert env.reset()[0]["a_0"]["tokens"].tolist() == [500 + byte for byte in b"ask"]
    with pytest.raises(UserError, match="role 'b', but the roles are a"):
        TokenView(Dialogue(), {"b": Shifted()})


def test_both_views_agree(scorer: Any, sums: Any) -> None:
    text = envs.make("core-teaching", view="text", scorer=scorer, source=sums)
    token = envs.make("core-teaching", scorer=scorer, source=sums)
    seen, _ = text.reset(seed=4)
    tokens, _ = token.reset(seed=4)
    answer = "<strategy>1 + 1 =<result>2</result></strategy><final_answer>7</final_answer>"
    while text.agents:
        asked = [agent for agent in text.agents if seen[agent]["active"]]
        requests = text.score_requests(dict.fromkeys(asked, answer))
        assert token.score_requests(dict.fromkeys(asked, ids(answer))) == requests
        seen, paid, *_, infos = text.step(dict.fromkeys(asked, answer))
        tokens, also_paid, *_, token_infos = token.step(dict.fromkeys(asked, ids(answer)))
        assert {agent: shown["active"] for agent, shown in seen.items()} == {
            agent: shown["active"] for agent, shown in tokens.items()
        }
    assert paid == also_paid
    # What the token view adds: each context in pieces, given and sampled in turn.
    assert token_infos["bob_2"]["texts"][1] == answer
    assert infos == {
        agent: {key: value for key, value in info.items() if key != "texts"}
        for agent, info in token_infos.items()
    }


def test_the_padded_view_cuts_and_pads() -> None:
    inner = Dialogue()
    env = PaddedView(TokenView(inner), context_length=5, action_length=4)
    pad = 257
    observations, infos = env.reset(seed=0)
    shown = observations["a_0"]
    assert shown["tokens"].tolist() == [*b"ask", pad, pad]
    assert (shown["length"].tolist(), shown["active"].tolist()) == ([3], [1])
    assert observations["a_1"]["length"].tolist() == [0]
    assert infos == {
        "a_0": {"max_new_tokens": 5, "loss_weight": 1.0},
        "a_1": {"max_new_tokens": 5, "loss_weight": 1.0},
    }
    # The action ends before its first pad; of a longer context the end is shown.
    observations, *_ = env.step({"a_0": np.array([120, 121, pad, 122])})
    assert inner.heard[0] == {"a_0": "xy"}
    assert observations["a_0"]["tokens"].tolist() == list(b"<got>")
    assert env.observation_space("a_0").contains(observations["a_0"])
    with pytest.raises(TypeError, match="wraps a token view"):
        PaddedView(inner)
