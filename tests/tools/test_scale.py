"""The simulation of a step, held to numbers derived by hand and to published ones."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from scale.model import Case, Roofline, Split, holds, learner_s, why_not
from scale.page import PAGE, filled, stored
from scale.scenarios import ROUTES, episodes_of, lengths
from scale.simulation import NO_WORK, Ask, EngineKind, Played, Work, play

PROMPT = np.arange(10)


@dataclass(frozen=True)
class Plain:
    """Seconds of a prompt's token, of an iteration, and of a token of context in it."""

    read: float = 0.0
    iteration: float = 0.0
    context: float = 0.0

    def prefill_s(self, tokens: int) -> float:
        return self.read * tokens

    def decode_s(self, rows: int, context: float) -> float:
        return self.iteration + self.context * context


def ask(read: int, written: int, *, role: str = "bob", known: int = 0) -> Ask:
    return Ask("bob", role, PROMPT, read, known, written)


def played(episodes: Any, kind: EngineKind, work: Work = NO_WORK) -> Played:
    return play(episodes, {"bob": ["engine 0"]}, {"bob": kind}, work)


def test_one_request_takes_what_it_reads_and_writes_and_what_the_driver_does() -> None:
    kind = EngineKind(Plain(0.001, 0.01), room=1000)
    # 100 x 0.001 + 50 x 0.01
    assert played([[[ask(100, 50)]]], kind).seconds == pytest.approx(0.6)
    # and 0.2 for the episode, 0.01 for the request, 50 x 0.001
    found = played([[[ask(100, 50)]]], kind, Work(0.2, 0.01, 0.001))
    assert found.seconds == pytest.approx(0.86)
    assert found.driver_s == pytest.approx(0.26)
    assert found.engine_s == {"engine 0": pytest.approx(0.6)}


@pytest.mark.parametrize(("written", "expected"), [(16, 560), (32, 1632)])
def test_contexts_grow_while_they_are_read(written: int, expected: float) -> None:
    # Two rows of 10 tokens: iteration j reads 20 + 2 j. 16 x 20 + 2 x 120; 32 x 20 + 2 x 496.
    kind = EngineKind(Plain(context=1.0), room=1000)
    found = played([[[ask(10, written), ask(10, written)]]], kind)
    assert found.seconds == pytest.approx(expected)


def test_who_has_no_room_waits() -> None:
    speed, turn = Plain(iteration=0.1), [ask(10, 20), ask(10, 20)]
    assert played([[turn]], EngineKind(speed, room=1000)).seconds == pytest.approx(2)
    # Each holds 10 + 20 / 2 tokens on average.
    assert played([[turn]], EngineKind(speed, room=39)).seconds == pytest.approx(4)
    assert played([[turn]], EngineKind(speed, room=1000, rows=1)).seconds == pytest.approx(4)


def test_a_turn_waits_for_all_answers_of_the_one_before() -> None:
    kind = EngineKind(Plain(iteration=0.1), room=1000)
    # 30 tokens, of which the shorter answer is no part, then 10.
    assert played([[[ask(1, 8), ask(1, 30)], [ask(1, 10)]]], kind).seconds == pytest.approx(4)


def test_a_closed_batch_is_answered_as_a_whole() -> None:
    speed = Plain(iteration=0.1)
    episodes = [[[ask(1, 16)], [ask(1, 16)]], [[ask(1, 48)]]]
    assert played(episodes, EngineKind(speed, 1000)).seconds == pytest.approx(4.8)
    # The second turn begins behind the longest answer: 48 + 16.
    closed = EngineKind(speed, 1000, together=True)
    assert played(episodes, closed).seconds == pytest.approx(6.4)


def test_a_beginning_is_read_once_for_each_role() -> None:
    kind = EngineKind(Plain(read=1.0), room=1000)
    turn = [ask(10, 1, known=9), ask(10, 1, known=9), ask(10, 1, known=9, role="alice")]
    assert played([[turn]], kind).seconds == pytest.approx(10 + 1 + 10)


def test_every_token_is_written_whoever_is_asked() -> None:
    case = Case("4B", "lora", 3, 8, episodes=20)
    written = lengths(case)
    engines = {"policy0": [f"engine {i}" for i in range(4)]}
    kinds = {"policy0": EngineKind(Plain(1e-5, 1e-3, 1e-8), room=40_000, rows=8)}
    for route in ROUTES.values():
        found = play(episodes_of(case, written), engines, kinds, route=route)
        assert found.tokens == written.sum()
        assert sum(found.asked.values()) == written.size == 20 * 3 * 3


def test_an_engine_reads_its_weights_and_its_cache_or_computes() -> None:
    # 2 x 10^9 x 2 bytes / (0.8 x 3.35e12) = 1.493 ms; 1,000 x 10^5 / 2.68e12 = 0.037 ms; 1.3 ms.
    speed = Roofline(2e9, 1e5, 10)
    assert speed.decode_s(1, 1000) == pytest.approx(1.4925e-3 + 0.0373e-3 + 1.3e-3, rel=1e-3)
    # 4e9 operations a token / (0.3 x 989e12); 256 of them take 3.451 ms, longer than reading.
    assert speed.prefill_s(1) == pytest.approx(1.3482e-5, rel=1e-3)
    assert speed.decode_s(256, 0) == pytest.approx(3.4513e-3 + 1.3e-3, rel=1e-3)
    # On two GPUs half of that, and 2 x 10 all-reduces of 15 microseconds.
    wide = Roofline(2e9, 1e5, 10, spans=2)
    assert wide.decode_s(1, 0) == pytest.approx(0.7463e-3 + 1.3e-3 + 0.3e-3, rel=1e-3)


def test_engines_are_as_fast_as_published() -> None:
    # vLLM 0.11, Qwen3-8B on an H100, ShareGPT four at a time: 100 requests of 23,260 tokens read
    # and 22,061 written in 44.40 s (docs/scale.md).
    random = np.random.default_rng(0)
    drawn = np.minimum(random.lognormal(size=(2, 100)), 5)
    read, written = (drawn.T / drawn.sum(1) * [23_260, 22_061]).astype(int).T
    kind = EngineKind(Roofline(8.19e9, 147_456, 36), room=3e5, rows=4)
    episodes = [[[ask(int(r), max(1, int(w)))]] for r, w in zip(read, written)]
    assert played(episodes, kind).seconds == pytest.approx(44.4, rel=0.05)


def test_an_update_takes_rounds_of_micro_batches() -> None:
    from types import SimpleNamespace

    found = SimpleNamespace(parameters=1e9, trained=4e9, recomputes=True)
    role: Any = SimpleNamespace(found=found)
    # Eight rows of 8,192 tokens on four ranks: two rounds of 8 x 1e9 x 8,192 operations.
    once = 8e9 * 8192 / (0.36 * 989e12)
    assert learner_s(role, True, [8192] * 8, 4) == pytest.approx(2 * once)
    # The longest row is alone, and all others wait for its rank: 16,384 tokens, then 8,192.
    assert learner_s(role, True, [16_384, *[8192] * 7], 4) == pytest.approx(3 * once)
    # Few tokens: what is bounded then is gathering 8e9 bytes over NVLink at 0.8 x 450e9.
    assert learner_s(role, True, [4] * 4, 4) == pytest.approx(8e9 / 3.6e11)


@pytest.mark.slow
def test_what_cannot_be_placed_is_said() -> None:
    case = Case("4B", "full", 8, 8)
    assert not holds(case, Split(1, 1, 1))
    assert why_not(case) == "needs 16 GPUs"
    assert holds(Case("4B", "lora", 8, 8), Split(4, 4, 1))
    assert not holds(Case("4B", "lora", 8, 8), Split(4, 5, 1))
    # 32 billion weights learn on no fewer than 16 GPUs, and an engine's do not fit on one.
    assert not holds(Case("32B", "full", 2, 64), Split(4, 4, 2))


def test_the_page_says_what_was_simulated() -> None:
    page = PAGE.read_text(encoding="utf-8")
    assert filled(page, stored()) == page, "PYTHONPATH=tools python -m scale.page writes it again"
