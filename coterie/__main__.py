"""All programs by one command: ``coterie train --env core-teaching --algo gspo``."""

import multiprocessing
import sys
from collections.abc import Collection, Sequence
from importlib import import_module

_CORE = {
    "train": ("coterie.train", "train a team of language models together"),
    "benchmark": ("coterie.benchmark", "compare trained systems"),
    "report": ("coterie.evaluation.report.__main__", "write a run as one HTML file"),
    "check": ("coterie.envs.check.__main__", "test whether an environment keeps the contract"),
    "cache": ("coterie.agents.models.cache_command", "list and clear cached weights"),
}


def main(argv: Sequence[str] | None = None) -> int:
    """Returns the exit code of the program that ``argv`` names first."""
    program, *rest = (sys.argv[1:] if argv is None else argv) or ["--help"]
    programs = _CORE if program in _CORE else _all_programs()
    if program in ("-h", "--help"):
        print("usage: coterie PROGRAM [arguments]\n")
        for name, (_, what) in programs.items():
            print(f"  {name:<10} {what}")
        print("\nAll arguments of one program:  coterie train --help")
        return 0
    if program not in programs:
        print(f"coterie: {_unknown(program, programs)}", file=sys.stderr)
        return 2
    # So that --env mymodule:Env finds a module of the folder that the command is given in.
    if "" not in sys.path:
        sys.path.insert(0, "")
    from coterie.cli.arguments import by_coterie

    with by_coterie():
        return import_module(programs[program][0]).main(rest)


def _all_programs() -> dict[str, tuple[str, str]]:
    """Those of the core, then those of the extras that are here."""
    from coterie.cli.extras import extras

    added = {name: program for extra in extras() for name, program in extra.programs.items()}
    return {**_CORE, **added}


def _unknown(program: str, programs: Collection[str]) -> str:
    """What is said of a program that is not here."""
    from coterie.cli.missing_extras import check_added
    from coterie.datatypes import UserError, did_you_mean

    try:
        check_added(program, f"coterie {program}")
    except UserError as missing:
        return str(missing)
    near = did_you_mean(program, programs)
    return f"unknown program {program!r}; {near}known: {', '.join(programs)}"


if multiprocessing.parent_process():  # in the processes that a run starts
    from coterie.agents.vllm.processes import end_with_parent

    end_with_parent()
if __name__ == "__main__":
    sys.exit(main())
