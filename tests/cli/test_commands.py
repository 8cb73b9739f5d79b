"""Exit codes, what is said with them, and signals, which are taken between steps."""

import asyncio
import errno
import gc
import io
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from coterie import benchmark, train
from coterie.cli.commands import Interruptible, Stop, run_command
from coterie.datatypes import UserError

ROOT = Path(__file__).parents[2]


def raising(error: BaseException) -> int:
    def command() -> int:
        raise error

    return run_command(command, program="x.py", interrupted="stopped")


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


def test_sigterm_is_taken_like_ctrl_c(capsys: pytest.CaptureFixture[str]) -> None:
    """At any moment: while modules are imported, models are loaded, problems are read."""
    before = signal.getsignal(signal.SIGTERM)

    def struck() -> int:
        os.kill(os.getpid(), signal.SIGTERM)
        return 0

    assert run_command(struck, program="x.py", interrupted="stopped") == 130
    assert capsys.readouterr().err == "\nx.py: stopped\n"
    assert signal.getsignal(signal.SIGTERM) == before


@pytest.mark.skipif(sys.platform != "linux", reason="of glibc")
def test_freed_memory_is_kept_for_the_next_tensor(python: Any) -> None:
    """Of 200 tensors of 64 MiB, fewer than 20 take pages from the system."""
    code = """import resource, sys, torch
from coterie.cli.commands import run_command
def faults(): return resource.getrusage(resource.RUSAGE_SELF).ru_minflt
def command():
    torch.ones(1 << 24); before = faults()
    for _ in range(200): torch.ones(1 << 24)
    print(faults() - before); return 0
sys.exit(run_command(command, program='p', interrupted=''))"""
    assert int(python("-c", code).stdout) < 20 * 16_384


def test_a_signal_is_taken_care_of_before_anything_large_is_imported(python: Any) -> None:
    code = """import sys, coterie.train; from coterie.cli.commands import run_command
print('numpy' in sys.modules)"""
    assert python("-c", code).stdout == "False\n"


def test_a_task_that_was_struck_is_not_told_of(
    caplog: pytest.LogCaptureFixture, capsys: pytest.CaptureFixture[str]
) -> None:
    """Nobody waits for it any more, and asyncio would show a traceback after our sentence."""
    tasks = []

    async def serve() -> None:
        raise KeyboardInterrupt

    async def wait() -> None:
        tasks.append(asyncio.get_running_loop().create_task(serve()))
        await asyncio.sleep(9)

    loop = asyncio.new_event_loop()
    assert (
        run_command(lambda: loop.run_until_complete(wait()), program="x.py", interrupted="s") == 130
    )
    tasks.clear()
    for task in asyncio.all_tasks(loop):
        task.cancel()
    loop.run_until_complete(asyncio.sleep(0))
    loop.close()
    gc.collect()
    assert not caplog.records
    assert capsys.readouterr().err == "\nx.py: s\n"


def test_faults_of_ours_keep_their_traceback() -> None:
    with pytest.raises(ConnectionResetError):
        raising(ConnectionResetError(errno.ECONNRESET, "reset"))
    with pytest.raises(ValueError, match="ours"):
        raising(ValueError("ours"))


def test_letters_that_a_terminal_lacks(monkeypatch: pytest.MonkeyPatch) -> None:
    written = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(written, encoding="ascii"))
    assert run_command(lambda: print("élève") or 0, program="x.py", interrupted="") == 0
    assert written.getvalue() == b"?l?ve\n"


def test_a_signal_while_the_interpreter_closes_down_changes_no_exit_code(python: Any) -> None:
    code = (
        "import atexit, os, signal, sys\n"
        "from coterie.cli.commands import run_command\n"
        "atexit.register(os.kill, os.getpid(), signal.SIGTERM)\n"
        "sys.exit(run_command(lambda: 0, program='x.py', interrupted='stopped'))"
    )
    run = python("-c", code)
    assert (run.stdout, run.stderr) == ("", "")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_the_first_signal_waits_for_the_step_and_the_second_strikes(number: signal.Signals) -> None:
    before = signal.getsignal(number)
    with Interruptible() as interrupt:
        with pytest.raises(KeyboardInterrupt):  # nothing is at stake yet
            os.kill(os.getpid(), number)
        interrupt.begin()
        interrupt.check()
        os.kill(os.getpid(), number)
        with pytest.raises(Stop):
            interrupt.check()
        with pytest.raises(KeyboardInterrupt):
            os.kill(os.getpid(), number)
    assert signal.getsignal(number) == before


def test_a_signal_after_the_last_result_neither_strikes_nor_says_that_it_stops(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with Interruptible() as interrupt:
        interrupt.begin()
        interrupt.over = True
        os.kill(os.getpid(), signal.SIGTERM)
    assert not capsys.readouterr().out


@pytest.mark.parametrize(
    ("program", "work"), [(train, "_train"), (benchmark, "_compare")], ids=["train", "benchmark"]
)
def test_a_signal_at_any_other_time_says_how_to_go_on(
    program: Any, work: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def struck(_: object) -> int:
        raise KeyboardInterrupt

    monkeypatch.setattr(program, work, struck)
    assert program.main([]) == 130
    assert "continue" in capsys.readouterr().err


def started(*words: str, shell: str = "") -> subprocess.CompletedProcess[str]:
    """``python -c`` a command of ours; ``shell`` goes behind its words."""
    code = (
        "import sys; from coterie.cli.commands import run_command; "
        "run = lambda: exec(sys.argv[1]) or 0; "
        "sys.exit(run_command(run, program='x.py', interrupted='stopped'))"
    )
    return subprocess.run(
        ["sh", "-c", f'"$0" "$@" {shell}', sys.executable, "-c", code, *words],
        capture_output=True,
        text=True,
        cwd=ROOT,
    )


def test_closed_streams_go_nowhere_and_no_file_takes_their_number(tmp_path: Path) -> None:
    written = tmp_path / "log"
    work = (
        f"import os, sys; file = open({str(written)!r}, 'w'); assert file.fileno() > 2; "
        "print('out'); print('err', file=sys.stderr); os.write(1, b'raw'); os.write(2, b'raw'); "
        "file.write('mine')"
    )
    for closed in ("2>&-", ">&-", "<&-", ">&- 2>&-"):
        assert started(work, shell=closed).returncode == 0, closed
        assert written.read_text() == "mine"


def test_a_reader_that_has_gone_ends_it_quietly() -> None:
    many = "from rich.console import Console\nfor _ in range(9999): Console().print('line')"
    ended = started(many, shell="| head -1")
    assert ended.stdout == "line\n"
    assert "Traceback" not in ended.stderr
    code = "import sys; from rich.console import Console\n"
    code += "try: raise BrokenPipeError\nexcept BrokenPipeError: raise SystemExit(1)"
    assert started(code).returncode == 141


def test_a_working_folder_that_is_gone_is_named(tmp_path: Path) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    work = f"import os; os.chdir({str(gone)!r}); os.rmdir({str(gone)!r}); os.getcwd()"
    ended = started(work)
    assert ended.returncode == 2
    assert ended.stderr == ("x.py: the working directory no longer exists; change to another one\n")
