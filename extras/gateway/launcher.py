"""Runs one command, and kills all that it started: ``python launcher.py FOLDER WORD ...``.

It runs as a file and imports nothing slow. On Linux the processes that a command leaves behind, in
whatever session or group, become children of this one. It kills them when the command ends, or when
standard input closes, as it does when the parent dies. Then it exits with the command's status.
``FOLDER`` holds the answer of the command; it is deleted if the command was stopped.
"""

import os
import select
import signal
import sys
import time

_DEATH, _SUBREAPER = 1, 36
"""Options of prctl(2): get a signal when the parent dies; adopt orphans."""
_SWEEP_S = 5.0


def main(folder: str, words: list[str]) -> int:
    """Run the command ``words`` and return the status to exit with."""
    woken, wake = os.pipe()
    os.set_blocking(wake, False)
    signal.set_wakeup_fd(wake, warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, lambda *_: None)  # only standard input ends it
    _prctl(_SUBREAPER, 1)
    command = os.fork()
    if command == 0:
        _become(words)
    status: int | None = None
    while status is None:
        ready, _, _ = select.select([0, woken], [], [])
        if woken in ready:
            os.read(woken, 4096)
            status = _reap(command)
        if 0 in ready and not os.read(0, 4096):
            break
    # The parent reads outputs to their end, which comes once no process holds them.
    _end_all(command)
    if status is None:
        from shutil import rmtree

        rmtree(folder, ignore_errors=True)
        return 1
    if os.WIFSIGNALED(status):
        number = os.WTERMSIG(status)
        if number != signal.SIGKILL:
            signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)
    return os.waitstatus_to_exitcode(status)


def _become(words: list[str]) -> None:
    """Turn this process into the command, in a session of its own."""
    try:
        os.setsid()
        _prctl(_DEATH, signal.SIGKILL)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGCHLD):
            signal.signal(number, signal.SIG_DFL)
        for number in (signal.SIGPIPE, signal.SIGXFSZ):  # Python ignores them
            signal.signal(number, signal.SIG_DFL)
        os.execvp(words[0], words)
    except OSError as error:
        os.write(2, f"{words[0]}: {error.strerror}\n".encode(errors="replace"))
    finally:
        os._exit(127)


def _reap(command: int) -> int | None:
    """Reap all ended processes; return the status of the command if it is one of them."""
    status = None
    while True:
        try:
            pid, ended = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return status
        if pid == 0:
            return status
        if pid == command:
            status = ended


def _end_all(command: int) -> None:
    """Kill the command's group and, if processes can be listed, all descendants."""
    limit = time.monotonic() + _SWEEP_S
    _kill(-command)
    while time.monotonic() < limit:
        try:
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        except ChildProcessError:
            return
        for pid in _descendants():
            _kill(pid)
        time.sleep(0.002)


def _kill(pid: int) -> None:
    try:
        os.kill(pid, signal.SIGKILL)
    except OSError:  # already ended
        return


def _descendants() -> list[int]:
    """All descendants of this process; none if the system does not list processes."""
    children: dict[int, list[int]] = {}
    for name in os.listdir("/proc") if os.path.isdir("/proc") else ():
        try:
            with open(f"/proc/{name}/stat", "rb") as file:
                # The parent follows the process's name, which may contain anything, and its state.
                parent = int(file.read().rpartition(b")")[2].split()[1])
            children.setdefault(parent, []).append(int(name))
        except (OSError, ValueError, IndexError):
            continue
    found = [os.getpid()]
    # One generation at a time would not catch up with a tree that grows.
    for pid in found:
        found += children.pop(pid, [])
    return found[1:]


def _prctl(option: int, value: int) -> None:
    if not sys.platform.startswith("linux"):
        return
    try:
        from ctypes import CDLL

        CDLL(None).prctl(option, value, 0, 0, 0)
    except (ImportError, OSError, AttributeError):
        return


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2:]))
