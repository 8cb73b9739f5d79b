"""A person at the terminal, whose keys come from a pipe, a file or a pseudo-terminal."""

import asyncio
import os
import pty
import selectors
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from coterie.datatypes import Completion, Prompt, Sampling, UserError
from coterie.envs.bytes_codec import BytesCodec
from coterie.experts import human
from coterie.experts.human import HumanPolicy, Terminal

CODEC = BytesCodec()
Type = Callable[[str], Terminal]


@pytest.fixture
def typed(monkeypatch: pytest.MonkeyPatch) -> Iterator[Type]:
    """Make a text standard input, which ends after it."""
    opened = []

    def give(text: str) -> Terminal:
        end, start = os.pipe()
        os.write(start, text.encode())
        os.close(start)
        opened.append(os.fdopen(end))
        return seat(monkeypatch, opened[-1])

    yield give
    for file in opened:
        file.close()


def seat(monkeypatch: pytest.MonkeyPatch, stdin: object) -> Terminal:
    terminal = Terminal()
    monkeypatch.setattr("sys.stdin", stdin)
    monkeypatch.setattr(human, "TERMINAL", terminal)
    return terminal


async def ask(*texts: str, limit: int = 50, stop: tuple[str, ...] = ()) -> list[Completion]:
    """The answers to all texts, which are asked at the same time by two players."""
    policies = [HumanPolicy(CODEC), HumanPolicy(CODEC)]
    sampling = Sampling(limit, stop=stop)
    prompts = [
        Prompt(np.array(CODEC.open(text)), text, f"bob_{number}", 0)
        for number, text in enumerate(texts)
    ]
    calls = (policies[n % 2](prompt, sampling) for n, prompt in enumerate(prompts))
    return list(await asyncio.gather(*calls))


def said(answers: list[Completion]) -> list[str]:
    return [CODEC.decode(answer.tokens) for answer in answers]


def test_one_question_at_a_time(typed: Type, capsys: pytest.CaptureFixture[str]) -> None:
    typed("one\ntwo\n")
    answers = asyncio.run(ask("first?", "second?"))
    assert said(answers) == ["one", "two"]
    assert [answer.finish_reason for answer in answers] == ["eos", "eos"]
    assert np.isnan(answers[0].logprobs).all()
    shown = capsys.readouterr()
    # The second question is shown only after the first answer was asked for.
    order = [shown.err.index(text) for text in ("first?", "bob_0> ", "second?", "bob_1> ")]
    assert order == sorted(order)
    assert shown.out == ""


def test_a_person_reads_the_system_message(typed: Type, capsys: pytest.CaptureFixture[str]) -> None:
    typed("one\n")
    told = HumanPolicy(CODEC, "Be brief.")
    prompt = Prompt(np.array(CODEC.open("first?")), "first?", "bob_0", 0)
    assert said([asyncio.run(told(prompt, Sampling(9)))]) == ["one"]
    assert "Be brief.\n\nfirst?" in capsys.readouterr().err


def test_how_an_answer_ends(typed: Type) -> None:
    # Nothing is no answer; a backslash goes on; the last line needs no end.
    typed("\n  \nmove e2 \\\nto e4\nlast")
    assert said(asyncio.run(ask("a", "b"))) == ["move e2 \nto e4", "last"]


def test_an_answer_keeps_the_limits_of_the_seat(
    typed: Type, capsys: pytest.CaptureFixture[str]
) -> None:
    typed("12345678\nx STOP y\n")
    # Bytes are tokens here.
    long, stopped = asyncio.run(ask("a", "b", limit=6, stop=("STOP",)))
    assert said([long, stopped]) == ["123456", "x STOP"]
    assert (long.finish_reason, stopped.finish_reason) == ("length", "stop")
    assert "only the first 6 tokens" in capsys.readouterr().err


def test_what_models_wrote_cannot_steer_the_terminal(
    typed: Type, capsys: pytest.CaptureFixture[str]
) -> None:
    typed("x\n")
    asyncio.run(ask("\x1b[2Jhello\rthere"))
    shown = capsys.readouterr().err
    assert "␛[2Jhello␍there" in shown
    assert "\x1b" not in shown


def test_input_that_ends_is_refused(
    typed: Type, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    typed("one\n")
    with pytest.raises(UserError, match="nobody answers, because standard input has ended"):
        asyncio.run(ask("a", "b"))
    # An end that is there already is refused before models are loaded.
    with pytest.raises(UserError, match="nobody answers"):
        typed("").check()
    typed("waits\n").check()
    monkeypatch.setattr("sys.stdin", None)
    with pytest.raises(UserError, match="nobody answers"):
        Terminal().check()
    # A file has no end to wait for.
    (tmp_path / "keys").write_text("from a file\n")
    with (tmp_path / "keys").open() as file:
        terminal = seat(monkeypatch, file)
        terminal.check()
        assert said(asyncio.run(ask("a"))) == ["from a file"]


def test_every_event_loop_may_ask(monkeypatch: pytest.MonkeyPatch) -> None:
    end, start = os.pipe()
    with os.fdopen(end) as stdin:
        seat(monkeypatch, stdin)
        # Nothing is there yet when the second question waits for the first one.
        for keys in ("1\n2\n", "3\n4\n"):
            os.write(start, keys.encode())
            assert said(asyncio.run(ask("a", "b"))) == keys.split()
    os.close(start)


def test_no_wait_is_without_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """A signal just before a wait is handled after it."""
    waits: list[float | None] = []
    really = selectors.DefaultSelector.select

    def select(self: selectors.DefaultSelector, timeout: float | None = None) -> Any:
        waits.append(timeout)
        return really(self, timeout)

    monkeypatch.setattr(selectors.DefaultSelector, "select", select)
    end, start = os.pipe()
    with os.fdopen(end) as stdin:
        seat(monkeypatch, stdin)
        threading.Timer(0.1, os.write, (start, b"1\n")).start()
        assert said(asyncio.run(ask("a"))) == ["1"]
    os.close(start)
    assert waits
    assert None not in waits


@pytest.mark.parametrize("keys", ["\x04", "\x03"])
def test_both_ways_out(keys: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ctrl-D by the terminal; Ctrl-C by the signal, since this one does not control us."""
    master, slave = pty.openpty()

    async def leave() -> None:
        loop = asyncio.get_running_loop()
        if keys == "\x04":
            loop.call_later(0.05, os.write, master, keys.encode())
        else:
            loop.call_later(0.05, os.kill, os.getpid(), 2)
        await ask("a", "b")

    with os.fdopen(slave) as stdin:
        seat(monkeypatch, stdin).check()
        with pytest.raises(KeyboardInterrupt):
            asyncio.run(leave())
    os.close(master)
