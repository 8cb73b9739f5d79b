"""Exit codes, and what is said with them."""

import errno
import io
import os
import subprocess
import sys
from pathlib import Path

import pytest

from training.ending import ended
from vocabulary import UserError

ROOT = Path(__file__).parents[2]


def raising(error: BaseException) -> int:
    def command() -> int:
        raise error

    return ended(command, program="x.py", interrupted="stopped")


@pytest.mark.parametrize(
    ("error", "code", "said"),
    [
        (UserError("--a is wrong"), 2, "x.py: --a is wrong\n"),
        (KeyboardInterrupt(), 130, "\nx.py: stopped\n"),
        (OSError(errno.ENOSPC, "No space left"), 2, "x.py: No space left\n"),
        (OSError(errno.EACCES, "denied", "/a/b"), 2, "x.py: /a/b: denied\n"),
    ],
)
def test_one_sentence(
    error: BaseException, code: int, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert raising(error) == code
    assert capsys.readouterr().err == said


def test_faults_of_ours_keep_their_traceback() -> None:
    with pytest.raises(ConnectionResetError):
        raising(ConnectionResetError(errno.ECONNRESET, "reset"))
    with pytest.raises(ValueError, match="ours"):
        raising(ValueError("ours"))


def test_letters_that_a_terminal_lacks(monkeypatch: pytest.MonkeyPatch) -> None:
    written = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(written, encoding="ascii"))
    assert ended(lambda: print("élève") or 0, program="x.py", interrupted="") == 0
    assert written.getvalue() == b"?l?ve\n"


@pytest.mark.parametrize("script", ["train.py", "benchmark.py"])
def test_a_reader_that_has_gone(script: str) -> None:
    with subprocess.Popen(
        [sys.executable, script, "sweep" if script == "benchmark.py" else "--help"],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        assert process.stderr.read() == b""
    # rich, which writes most of it, ends with 1.
    assert process.returncode in (1, 141)
