"""The first look at the command line: which environment, which algorithm, which roles."""

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

DEFAULT_ENV = "core-teaching"
DEFAULT_ALGO = "gspo"


@dataclass(frozen=True)
class Choice:
    """What decides which settings there are at all."""

    env: str
    algo: str
    roles: tuple[str, ...]
    """Empty: the environment's own."""
    train_role: tuple[str, ...] = ()
    """Who learns; empty: whoever learns in this environment by default."""
    preset: str | None = None
    resume: Path | None = None


def choose(argv: Sequence[str]) -> tuple[dict[str, object], list[str]]:
    """Split ``argv`` into what was chosen (only what was named) and what is left to parse."""
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False, argument_default=None)
    parser.add_argument("--env")
    parser.add_argument("--algo")
    parser.add_argument("--roles", nargs="+")
    parser.add_argument("--train-role", nargs="+")
    parser.add_argument("--preset")
    parser.add_argument("--resume", type=Path)
    named, rest = parser.parse_known_args(list(argv))
    return {key: value for key, value in vars(named).items() if value is not None}, rest


def overview(envs: Sequence[str], algorithms: Sequence[str], presets: Sequence[str]) -> str:
    """The help text before anything is chosen."""
    return f"""\
usage: train.py [--env ENV] [--algo ALGO] [--roles A B ...] [--train-role A ...]
                [--preset NAME] [settings]
       train.py --resume RUN_DIR [--steps N]

Train a team of language models together. Without settings, the tiny team that ships with the
repository trains on this machine in a few minutes.

  --env ENV        what they do together (default {DEFAULT_ENV}); or pkg.module:Class
                   {_wrapped(envs)}
  --algo ALGO      how they learn from it (default {DEFAULT_ALGO})
                   {_wrapped(algorithms)}
  --roles A B ...  who is on the team (default: the environment's own roles)
  --train-role A   who of them learns; all others are frozen
  --preset NAME    the settings of a paper
                   {_wrapped(presets)}
  --resume DIR     continue a run exactly where its last checkpoint stands

All settings of one choice:  python train.py --env {DEFAULT_ENV} --algo {DEFAULT_ALGO} --help"""


def _wrapped(names: Sequence[str], width: int = 80) -> str:
    lines, line = [], ""
    for name in names:
        if len(line) + len(name) + 1 > width:
            lines.append(line)
            line = ""
        line = f"{line} {name}".strip()
    return ("\n" + " " * 19).join([*lines, line])
