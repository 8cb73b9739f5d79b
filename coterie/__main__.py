"""All programs by one command: ``coterie train --env core-teaching --algo gspo``."""

import multiprocessing
import sys
from collections.abc import Sequence
from importlib import import_module

from coterie.cli.extras import PROGRAMS

_PROGRAMS = {
    "train": ("coterie.train", "train a team of language models together"),
    "benchmark": ("coterie.benchmark", "compare trained systems"),
    "report": ("coterie.evaluation.report.__main__", "write a run as one HTML file"),
    "check": ("coterie.envs.check.__main__", "test whether an environment keeps the contract"),
    "cache": ("coterie.agents.models.cache_command", "list and clear cached weights"),
    **PROGRAMS,
}


def main(argv: Sequence[str] | None = None) -> int:
    """Run the program that ``argv`` names first, and return its exit code."""
    program, *rest = (sys.argv[1:] if argv is None else argv) or ["--help"]
    if program in ("-h", "--help"):
        print("usage: coterie PROGRAM [arguments]\n")
        for name, (_, what) in _PROGRAMS.items():
            print(f"  {name:<10} {what}")
        print("\nThe options of one program:  coterie train --help")
        return 0
    if program not in _PROGRAMS:
        from coterie.datatypes import did_you_mean

        near = did_you_mean(program, _PROGRAMS)
        known = f"{near}known: {', '.join(_PROGRAMS)}"
        print(f"coterie: unknown program {program!r}; {known}", file=sys.stderr)
        return 2
    # --env mymodule:Env should find a module of the working folder.
    if "" not in sys.path:
        sys.path.insert(0, "")
    from coterie.cli.arguments import by_coterie

    with by_coterie():
        return import_module(_PROGRAMS[program][0]).main(rest)


if multiprocessing.parent_process():  # in the processes that a run starts
    from coterie.agents.vllm.processes import end_with_parent

    end_with_parent()
if __name__ == "__main__":
    sys.exit(main())
