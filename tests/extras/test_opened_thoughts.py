"""Where the prompt opens a thought, nothing in it is an answer until it is closed."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pytest

from coterie import envs
from coterie.agents.team.team import PlayerCodec
from coterie.datatypes import Completion, Problem, Prompt, Sampling
from coterie.datatypes.thinking import opened_by
from coterie.envs.bytes_codec import END, BytesCodec
from coterie.envs.token_view import TokenView
from coterie.experts import TranslatedPolicy
from coterie.extras.games.game import Game, game_spec, read_move
from coterie.extras.papers.leap.environment import LeapEnv
from coterie.extras.programs.tool_use import ToolUseEnv

from ..envs.test_views import Dialogue, ids  # noqa: TID252 - one dialogue for both rooms

PROBLEM = Problem("sum", "What is 7 + 8 - 3?", "12")
CUT = "Seven and five, so perhaps \\boxed{12} \\confidence{0.9}\nAnswer: 12\nis that all"
CLOSED = "no idea{}\\boxed{{12}} \\confidence{{0.9}}\nAnswer: 12"
MARKS = {
    "<think>\n": "</think>",
    "<|channel|>analysis<|message|>": "<|channel|>final<|message|>",
}


class Opening(BytesCodec):
    """Opens a thought, as templates of models that always think do."""

    def __init__(self, mark: str) -> None:
        self.mark = mark

    def open(self, message: str) -> list[int]:
        return super().open(f"{message}\nASSISTANT:{self.mark}")

    def follow(self, message: str, *, ended: bool, mark: int | None = None) -> list[int]:
        given = super().follow(message, ended=ended, mark=mark)
        return [*given, *super().open(f"\nASSISTANT:{self.mark}")]


OF_EXTRAS = {"leap": LeapEnv, "tool-use": ToolUseEnv}


def played(name: str, codec: BytesCodec, text: str) -> Mapping[str, Any]:
    """The last infos of an episode in which everybody always writes ``text``."""
    if name in OF_EXTRAS:
        text_env = OF_EXTRAS[name]()
        env: Any = TokenView(text_env, dict.fromkeys(text_env.roles, codec))
    else:
        env = envs.make(name, codecs=dict.fromkeys(envs.spec(name).roles, codec))
    observations, _ = env.reset(seed=0, options={"problem": PROBLEM})
    infos: Any = {}
    for _ in range(20):
        active = [agent for agent, seen in observations.items() if seen["active"]]
        action = np.array([*text.encode(), END], dtype=np.int64)
        observations, _, _, _, infos = env.step(dict.fromkeys(active, action))
        if not env.agents:
            break
    env.close()
    return infos


GRADING = ("solo", "corea-deferral", "core-teaching", "eapo-consultation", "sd-e2", *OF_EXTRAS)


@pytest.mark.parametrize("name", GRADING)
@pytest.mark.parametrize("mark", MARKS)
def test_a_thought_that_was_cut_off_is_never_right(name: str, mark: str) -> None:
    codec = Opening(mark)
    right = {"correct", "right"}
    cut = played(name, codec, CUT)
    graded = [info[key] for info in cut.values() for key in right & info.keys()]
    assert graded
    assert not any(graded)
    assert all(info.get("answer") is None for info in cut.values())
    assert all(info.get("confidence") is None for info in cut.values())
    assert not any(info.get("stated") for info in cut.values())
    assert not any(info["episode"].get("hints") for info in cut.values())
    closed = played(name, codec, CLOSED.format(MARKS[mark]))
    assert any(info[key] for info in closed.values() for key in right & info.keys())
    # Without an opened thought the same text answers.
    said = played(name, BytesCodec(), CUT.rpartition("\n")[0])
    assert any(info[key] for info in said.values() for key in right & info.keys())


def test_what_the_environment_hears_begins_with_the_thought() -> None:
    inner = Dialogue()
    env = TokenView(inner, {"a": Opening("<think>\n")})
    env.reset(seed=0)
    actions = [ids("hm, 5"), ids("</think>6", END), ids("<think>and 7", END)]
    assert env.score_requests({"a_0": actions[0]}).checks == ()
    infos: Any = {}
    for action in actions:
        _, _, _, _, infos = env.step({"a_0": action})
    # A continuation goes on inside its turn; the mark is not written twice.
    assert [heard["a_0"] for heard in inner.heard] == [
        "<think>\nhm, 5",
        "</think>6",
        "<think>and 7",
    ]
    assert infos["a_0"]["texts"] == [
        "ask", "<think>\nhm, 5", "<got>", "</think>6", "more", "<think>and 7",
    ]  # fmt: skip


def test_an_empty_continuation_opens_no_second_thought(monkeypatch: pytest.MonkeyPatch) -> None:
    pieces = (("ask", "message"), ("", "continuation"), ("more", "message"))
    monkeypatch.setattr(Dialogue, "PIECES", pieces)
    inner = Dialogue()
    env = TokenView(inner, {"a": Opening("<think>\n")})
    env.reset(seed=0)
    for text in ("hm, 5", "so 4"):
        env.step({"a_0": ids(text)})
    assert [heard["a_0"] for heard in inner.heard] == ["<think>\nhm, 5", "so 4"]


def test_an_empty_answer_stays_empty() -> None:
    inner = Dialogue()
    env = TokenView(inner, {"a": Opening("<think>\n")})
    env.reset(seed=0)
    env.step({"a_0": ids("", END)})
    assert inner.heard == [{"a_0": ""}]


class Marks(BytesCodec):
    """Tells with which mark it was told that a turn ended; one id more is nothing."""

    vocab_size = END + 3
    eos_ids = (END, END + 1)

    def follow(self, message: str, *, ended: bool, mark: int | None = None) -> list[int]:
        return list(f"[{mark if ended else 'cut'}]".encode())


@pytest.mark.parametrize(
    ("last", "shown"),
    [([END], "[256]"), ([END + 1], "[257]"), ([END + 2], "[cut]"), ([], "[cut]")],
)
def test_only_an_id_that_ends_turns_ends_one(last: Sequence[int], shown: str) -> None:
    inner = Dialogue()
    env = TokenView(inner, {"a": Marks()})
    env.reset(seed=0)
    env.step({"a_0": ids("x", *last)})
    observations, *_ = env.step({"a_0": ids("y", *last)})
    assert observations["a_0"]["tokens"].tolist()[-len(shown) :] == list(shown.encode())


def test_a_move_in_a_thought_does_not_count() -> None:
    answered: list[str] = []

    class Counting(Game):
        players = ("one",)

        def reset(self, seed: int) -> None:
            answered.clear()

        def asks(self) -> Mapping[str, tuple[str, Sequence[str]]]:
            return {} if answered else {"one": ("Seen:", ("0", "1"))}

        def play(self, answer: str) -> bool:
            answered.append(answer)
            return read_move(answer, ("0", "1")) is not None

        def rewards(self) -> Mapping[str, float]:
            return {"one": 0.0}

    class Whole(Counting):
        reads_thinking = True

    for kind, text, heard in (
        (Counting, "<think>\n1 or", ""),
        (Counting, "<think>\n1 or</think>0", "0"),
        (Whole, "<think>\n1 or", ""),
        (Whole, "<think>\n1 or</think>0", "<think>\n1 or</think>0"),
    ):
        factory: Any = game_spec("counting", lambda settings, kind=kind: kind()).factory
        env = factory()
        env.reset(seed=0)
        env.step({env.possible_agents[0]: text})
        assert answered == [heard]


async def test_a_stand_in_closes_the_thought_of_whoever_it_speaks_for() -> None:
    class Says:
        async def __call__(self, prompt: Prompt, sampling: Sampling) -> Completion:
            tokens = ids("hm 5</think>6")
            return Completion(tokens, np.zeros(len(tokens), np.float32), "eos")

    opening, plain = Opening("<think>\n"), BytesCodec()
    for inner, outer, whole in (
        (opening, plain, "<think>\nhm 5</think>6"),
        (opening, opening, "\nhm 5</think>6"),
        (plain, opening, "hm 5</think>6"),
    ):
        policy = TranslatedPolicy(Says(), inner=inner, outer=outer)
        context = np.array(outer.open("x"), dtype=np.int64)
        said = await policy(Prompt(context, "x", "a_0", 0), Sampling(99))
        assert plain.decode(said.tokens) == whole


def test_a_script_does_not_inherit_the_thought_of_its_reader() -> None:
    codec: Any = PlayerCodec(Opening("<think>\n"))
    assert opened_by(codec, codec.open("x")) == ""
    assert (codec.vocab_size, codec.extend("x")) == (END + 1, [120])
