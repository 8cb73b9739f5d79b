"""Restricts a process: after :func:`guard` it can only compute and use pipes that are open.

The kernel refuses everything else (seccomp): files, sockets, other processes and their memory,
signals, threads. The process cannot undo this. Memory, time and file sizes are limited too. The
module imports nothing from this project: child processes run it as a plain file.
"""

import __future__  # noqa: F401

import ctypes
import errno
import importlib
import platform
import re
import resource
import signal
import struct

_MODULES = """
abc array ast base64 binascii bisect calendar cmath collections collections.abc
contextlib copy dataclasses datetime _strptime decimal difflib enum fractions functools hashlib
heapq inspect io itertools json keyword math numbers operator os queue random re statistics string
struct textwrap time traceback types typing unicodedata uuid warnings zlib
"""
"""Modules of the standard library that guarded processes may use."""

# Machine -> the kernel's name for it (AUDIT_ARCH), and its column below.
_MACHINES = {"x86_64": (0xC000003E, 0), "aarch64": (0xC00000B7, 1)}
# Allowed system calls, by the kernel's numbers: open descriptors, memory, clocks, the process's
# own signal handlers, random bytes, exit.
_CALLS = {
    "read": (0, 63),
    "write": (1, 64),
    "close": (3, 57),
    "fstat": (5, 80),
    "lseek": (8, 62),
    "mmap": (9, 222),
    "mprotect": (10, 226),
    "munmap": (11, 215),
    "brk": (12, 214),
    "rt_sigaction": (13, 134),
    "rt_sigprocmask": (14, 135),
    "rt_sigreturn": (15, 139),
    "sched_yield": (24, 124),
    "mremap": (25, 216),
    "madvise": (28, 233),
    "nanosleep": (35, 101),
    "getpid": (39, 172),
    "exit": (60, 93),
    "gettimeofday": (96, 169),
    "getrusage": (98, 165),
    "sigaltstack": (131, 132),
    "gettid": (186, 178),
    "futex": (202, 98),
    "restart_syscall": (219, 128),
    "clock_gettime": (228, 113),
    "clock_getres": (229, 114),
    "clock_nanosleep": (230, 115),
    "exit_group": (231, 94),
    "getrandom": (318, 278),
}
_LOAD, _EQUAL, _RETURN = 0x20, 0x15, 0x06
_ALLOW, _KILL, _REFUSE = 0x7FFF0000, 0x80000000, 0x00050000 | errno.EPERM
_SET_PARENT_DEATH_SIGNAL, _SET_SECCOMP, _SET_NO_NEW_PRIVILEGES = 1, 22, 38


def load_modules(source: str | None = None) -> None:
    """Import the modules that a program may use, since :func:`guard` forbids later imports. With
    ``source``, import only those that it names."""
    words = set(re.findall(r"\w+", source or ""))
    for name in _MODULES.split():
        # Counter.most_common imports heapq, and datetime.strptime _strptime.
        if source is None or name == "heapq" or name.partition(".")[0].removeprefix("_") in words:
            importlib.import_module(name)


def guard(memory: int, cpu_s: int) -> None:
    """Drop all rights that a program does not need.

    Args:
        memory: limit of the address space, in bytes.
        cpu_s: limit of processor time from now on, in seconds.

    Raises:
        OSError: the kernel does not support it.
    """
    libc = ctypes.CDLL(None, use_errno=True)
    _call(libc, _SET_PARENT_DEATH_SIGNAL, signal.SIGKILL)
    used = resource.getrusage(resource.RUSAGE_SELF)
    seconds = int(used.ru_utime + used.ru_stime) + cpu_s + 1
    for limit, value in (
        (resource.RLIMIT_AS, memory),
        (resource.RLIMIT_CPU, seconds),
        (resource.RLIMIT_FSIZE, 0),
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_NPROC, 0),
        (resource.RLIMIT_NOFILE, 0),
    ):
        _, hard = resource.getrlimit(limit)
        value = value if hard == resource.RLIM_INFINITY else min(value, hard)
        resource.setrlimit(limit, (value, value))
    _call(libc, _SET_NO_NEW_PRIVILEGES, 1)
    _filter(libc)


def _filter(libc: ctypes.CDLL) -> None:
    machine = platform.machine()
    if machine not in _MACHINES:
        raise OSError(f"no list of system calls for {machine}")
    architecture, column = _MACHINES[machine]
    numbers = [by_machine[column] for by_machine in _CALLS.values()]
    program = [
        (_LOAD, 0, 0, 4),
        (_EQUAL, 1, 0, architecture),
        (_RETURN, 0, 0, _KILL),
        (_LOAD, 0, 0, 0),
        # Each known number jumps to the last line, which allows the call.
        *((_EQUAL, len(numbers) - index, 0, number) for index, number in enumerate(numbers)),
        (_RETURN, 0, 0, _REFUSE),
        (_RETURN, 0, 0, _ALLOW),
    ]
    code = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *line) for line in program))
    # struct sock_fprog: the number of lines and a pointer to them.
    pointer = ctypes.create_string_buffer(struct.pack("HP", len(program), ctypes.addressof(code)))
    _call(libc, _SET_SECCOMP, 2, ctypes.addressof(pointer))


def _call(libc: ctypes.CDLL, option: int, *values: int) -> None:
    words = [ctypes.c_ulong(value) for value in (*values, 0, 0, 0, 0)[:4]]
    if libc.prctl(option, *words):
        raise OSError(ctypes.get_errno(), f"prctl {option} failed")
