"""Check whether an environment keeps the contract: ``coterie check NAME``.

NAME is what ``--env`` takes. A text environment is checked as its author writes it, and in tokens,
as models read it. Exit code 0: it keeps the contract; 1: it breaks a rule, which is printed; 2: it
cannot be built or played.
"""

import importlib
import sys
import traceback
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from coterie import envs
from coterie.cli.arguments import Arguments
from coterie.datatypes import UserError, raised
from coterie.envs.adapt import is_text_env
from coterie.envs.contract import why_not_roles


def main(argv: Sequence[str] | None = None) -> int:
    """Check one environment; returns the exit code."""
    parser = Arguments("coterie check", description=__doc__)
    parser.add_argument("name", help="a registered name, pkg.module:Class, or KIND:ID")
    parser.add_argument("--seed", type=int, default=0, help="seed of the first episode")
    parser.add_argument("--max-steps", type=int, default=100, help="longest episode")
    parser.add_argument(
        "--same-every-time",
        action="store_true",
        help="allow an environment in which nothing depends on the seed",
    )
    parser.add_argument(
        "--unasked", nargs="+", default=(), help="roles that random answers may never reach"
    )
    try:
        chosen = parser.read(sys.argv[1:] if argv is None else argv)
    except UserError as mistake:
        print(f"coterie check: {mistake}", file=sys.stderr)
        return 2
    arguments: dict[str, Any] = {
        "seed": chosen.seed,
        "max_steps": chosen.max_steps,
        "varied": not chosen.same_every_time,
    }
    try:
        spec = envs.spec(chosen.name)
        # Who does not learn there may be asked seldom.
        learn = spec.learns(spec.settings()) if spec.learns and spec.settings else spec.roles
        arguments["unasked"] = {*chosen.unasked} | {*spec.roles} - {*learn}
        tokens = envs.make(chosen.name)
        strange = why_not_roles(spec.roles, tokens.possible_agents)
        assert not strange, f"{strange}: name the former in its EnvSpec, or in default_roles"
        if is_text_env(getattr(tokens, "env", None)):
            report = envs.check_env(envs.make(chosen.name, view="text"), **arguments)
            envs.check_env(tokens, **arguments)
        else:
            report = envs.check_env(tokens, **arguments)
        roles = ", ".join(spec.roles)
    except (AssertionError, UserError) as error:
        broken = isinstance(error, AssertionError)
        print(_author_line(error), end="", file=sys.stderr)
        verdict = f"{chosen.name} breaks the contract: " if broken else ""
        print(f"coterie check: {verdict}{error}", file=sys.stderr)
        return 1 if broken else 2
    except (Exception, SystemExit) as error:
        line = _author_line(error)
        if not line:
            # A bug in the check itself: the traceback says more than a sentence.
            raise
        print(line, end="", file=sys.stderr)
        print(f"coterie check: {chosen.name} {raised(error)}.", file=sys.stderr)
        return 2
    print(f"{chosen.name} keeps the contract. Its roles: {roles}.")
    print(report)
    return 0


def _author_line(error: BaseException) -> str:
    """The traceback line of the author's code that raised the error; "" if it is our code."""
    while error.__cause__ is not None:
        error = error.__cause__
    ours = str(Path(__file__).parents[2])
    frames = [
        frame
        for frame in traceback.extract_tb(error.__traceback__)
        if not frame.filename.startswith((ours, "<frozen", importlib.__file__))
    ]
    return "".join(traceback.format_list(frames[-1:]))


if __name__ == "__main__":
    sys.exit(main())
