"""Argument parsers whose errors are one sentence, and the names of programs in messages."""

import argparse
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import NoReturn

from coterie.datatypes.errors import UserError

_BY_COTERIE = ContextVar("by_coterie", default=False)


@contextmanager
def by_coterie() -> Iterator[None]:
    """Inside, messages name the programs of the command ``coterie``, not the scripts."""
    before = _BY_COTERIE.set(True)
    try:
        yield
    finally:
        _BY_COTERIE.reset(before)


def program(script: str) -> str:
    """The name by which the user started ``script``: ``train.py``, or ``coterie train``."""
    return f"coterie {script.removesuffix('.py')}" if _BY_COTERIE.get() else script


def command(script: str) -> str:
    """The command with which a user starts ``script``: ``python train.py``, ``coterie train``."""
    return program(script) if _BY_COTERIE.get() else f"python {script}"


class Arguments(argparse.ArgumentParser):
    """An argument parser that refuses mistakes and repeated options in one sentence."""

    def split(self, argv: Sequence[str]) -> tuple[argparse.Namespace, list[str]]:
        """The values of these arguments in ``argv``, and all other words.

        Raises:
            UserError: a mistake in these arguments.
        """
        check_once(argv, {flag for action in self._actions for flag in action.option_strings})
        return self.parse_known_args(argv)

    def read(self, argv: Sequence[str]) -> argparse.Namespace:
        """The values in ``argv``; prints help and exits with 0 on ``--help``.

        Raises:
            UserError: a mistake in it.
        """
        check_once(argv)
        return self.parse_args(argv)

    def format_help(self) -> str:
        """Implements argparse's hook for the help text: without the marks of a docstring."""
        return super().format_help().replace("``", "")

    def error(self, message: str) -> NoReturn:
        """Implements argparse's hook for a mistake.

        Raises:
            UserError: always, with the message as one sentence.
        """
        raise UserError(in_one_line(message.removeprefix("argument "), self.prog))


def in_one_line(mistake: str, prog: str, help_flag: str = "--help") -> str:
    """A mistake in the arguments of ``prog``, with the command that explains them."""
    return f"{mistake} (options: {prog} {help_flag})"


def check_once(argv: Sequence[str], known: Collection[str] | None = None) -> None:
    """Refuse an option that is given twice, of which argparse would drop the first. ``--a.b`` and
    ``--a.no-b`` are one option.

    Args:
        argv: the command line.
        known: the options to check; None: all.

    Raises:
        UserError: an option is given twice.
    """
    seen: dict[str, str] = {}
    for flag in map(flag_of, argv):
        if not flag.startswith("--") or flag == "--":
            continue
        if known is not None and flag not in known:
            continue
        name = positive(flag)
        if name in seen:
            beside = f", as {seen[name]} before" if seen[name] != flag else ""
            raise UserError(f"{flag} is given twice{beside}; write it once")
        seen[name] = flag


def overlay(argv: Sequence[str]) -> list[str]:
    """``argv`` without options that a later one overrides, and their values.

    >>> overlay(["--steps", "3", "--seed", "1", "--steps", "4"])
    ['--seed', '1', '--steps', '4']
    """
    parts = options(argv)
    names = [positive(flag_of(part[0])) for part in parts]
    return [
        word
        for number, (name, part) in enumerate(zip(names, parts))
        if not part[0].startswith("--") or name not in names[number + 1 :]
        for word in part
    ]


def options(argv: Sequence[str]) -> list[list[str]]:
    """Split ``argv`` before each flag, into flags with their values.

    >>> options(["--seed", "1", "--roles", "a", "b"])
    [['--seed', '1'], ['--roles', 'a', 'b']]
    """
    parts: list[list[str]] = []
    for word in argv:
        if word.startswith("--") or not parts:
            parts.append([])
        parts[-1].append(word)
    return parts


def flags_in(argv: Iterable[str]) -> set[str]:
    """The flags of a command line, with hyphens and without values."""
    return {flag_of(word) for word in argv if word.startswith("--")}


def flag_of(word: str) -> str:
    """The flag of a word in a command line, with hyphens and without its value.

    >>> flag_of("--env.max_new_tokens=8")
    '--env.max-new-tokens'
    """
    return word.partition("=")[0].replace("_", "-")


def value_of(flag: str, argv: Sequence[str]) -> str:
    """The value of ``flag`` in a command line; empty without one.

    >>> value_of("--seed", ["--steps", "3", "--seed=1"])
    '1'
    """
    for part in options(argv):
        if flag_of(part[0]) == flag:
            return part[0].partition("=")[2] or "".join(part[1:2])
    return ""


def positive(flag: str) -> str:
    """``--a.b`` of ``--a.no-b``, and of ``--a.b`` itself."""
    head, dot, name = flag.removeprefix("--").rpartition(".")
    return f"--{head}{dot}{name.removeprefix('no-')}"
