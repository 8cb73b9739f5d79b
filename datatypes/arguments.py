"""The words of a command line: what programs are called, and a mistake in one line."""

import argparse
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import NoReturn

from coterie.datatypes.userinput import UserError

_BY_COTERIE = ContextVar("by_coterie", default=False)


@contextmanager
def by_coterie() -> Iterator[None]:
    """Inside, the scripts are the programs of the command ``coterie``, and say so."""
    before = _BY_COTERIE.set(True)
    try:
        yield
    finally:
        _BY_COTERIE.reset(before)


def program(script: str) -> str:
    """What the user calls ``train.py`` or ``benchmark.py``: that, or ``coterie train``."""
    return f"coterie {script.removesuffix('.py')}" if _BY_COTERIE.get() else script


def command(script: str) -> str:
    """How the user starts it: ``python train.py``, or ``coterie train``."""
    return program(script) if _BY_COTERIE.get() else f"python {script}"


class Arguments(argparse.ArgumentParser):
    """Says what is wrong in one sentence, of which an option that is given twice is one."""

    def split(self, argv: Sequence[str]) -> tuple[argparse.Namespace, list[str]]:
        """What ``argv`` says of these arguments, and all other words.

        Raises:
            UserError: what is wrong with them.
        """
        check_once(argv, {flag for one in self._actions for flag in one.option_strings})
        return self.parse_known_args(argv)

    def read(self, argv: Sequence[str]) -> argparse.Namespace:
        """What ``argv`` says; prints help and exits with 0 on ``--help``.

        Raises:
            UserError: what is wrong with it.
        """
        check_once(argv)
        return self.parse_args(argv)

    def error(self, message: str) -> NoReturn:
        """Raise the sentence."""
        raise UserError(in_one_line(message.removeprefix("argument "), self.prog))


def in_one_line(mistake: str, prog: str) -> str:
    """A mistake in the arguments of ``prog``, and where all of them are explained."""
    return f"{mistake} (all options: {prog} --help)"


def check_once(argv: Sequence[str], known: Collection[str] | None = None) -> None:
    """Refuse an option that is given twice, ``--a.no-b`` beside ``--a.b`` too: the first one would
    be dropped.

    Args:
        argv: the command line.
        known: the options that are looked at; all without it.

    Raises:
        UserError: there is one.
    """
    seen: dict[str, str] = {}
    for word in argv:
        flag = word.partition("=")[0]
        if not flag.startswith("--") or flag == "--":
            continue
        flag = flag.replace("_", "-")
        if known is not None and flag not in known:
            continue
        name = _positive(flag)
        if name in seen:
            beside = f", as {seen[name]} before" if seen[name] != flag else ""
            raise UserError(f"{flag} is given twice{beside}; write it once")
        seen[name] = flag


def overlay(argv: Sequence[str]) -> list[str]:
    """``argv``, a list of options with their values, in which of one that is given several times
    the last one is left.

    >>> overlay(["--steps", "3", "--seed", "1", "--steps", "4"])
    ['--seed', '1', '--steps', '4']
    """
    parts: list[list[str]] = []
    for word in argv:
        if word.startswith("--") or not parts:
            parts.append([])
        parts[-1].append(word)
    names = [_positive(part[0].partition("=")[0].replace("_", "-")) for part in parts]
    return [
        word
        for number, (name, part) in enumerate(zip(names, parts))
        if not part[0].startswith("--") or name not in names[number + 1 :]
        for word in part
    ]


def _positive(flag: str) -> str:
    """``--a.b`` of ``--a.no-b``."""
    head, dot, name = flag.removeprefix("--").rpartition(".")
    return f"--{head}{dot}{name.removeprefix('no-')}"
