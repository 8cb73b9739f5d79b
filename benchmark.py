"""Compare trained systems: ``python benchmark.py --policies alice=runs/x bob=tiny:bob``."""

import importlib
import sys
from collections.abc import Sequence

_USAGE = """\
usage: {program} COMPARISON [settings]

  --policies ...     any policies on any suites: alone, by vote, in a cascade
  --teams ...        whole teams in any environment; also --team
  --cross-play ...   all pairings over the roles; who wins in games
{more}  compare RUN RUN    runs on the same held-out problems, in pairs
  seeds              runs of several seeds: means, differences, learning curves

All settings of one comparison:  {command} eapo --help
                                 {command} suite --help"""

# Name -> module, its settings, what runs them.
_COMPARISONS = {
    "seeds": ("coterie.evaluation.compare.seeds", "SeedsComparison", "compare"),
    "compare": ("coterie.evaluation.compare.paired", "PairedComparison", "compare"),
    "suite": ("coterie.evaluation.compare.suite", "SuiteComparison", "compare"),
}


def main(argv: Sequence[str] | None = None) -> int:
    """Run a comparison; return the exit code: 0 done, 2 a user's mistake, 130 interrupted."""
    from coterie.cli.arguments import program
    from coterie.cli.commands import run_command

    return run_command(
        lambda: _compare(sys.argv[1:] if argv is None else argv),
        program=program("benchmark.py"),
        interrupted="stopped; the same command continues from the stored results",
    )


def _compare(argv: Sequence[str]) -> int:
    from coterie.cli.arguments import command, program
    from coterie.datatypes import UserError, did_you_mean

    if not argv or argv[0] in ("-h", "--help"):
        print(_usage(program("benchmark.py"), command("benchmark.py")))
        return 0
    if argv[0].startswith("--"):
        argv = ["suite", *argv]
    known = comparisons()
    if argv[0] not in known:
        near = did_you_mean(argv[0], known)
        raise UserError(f"unknown comparison {argv[0]!r}; {near}known: {', '.join(known)}")
    from coterie.evaluation.compare.inherited_settings import parse

    module, settings, run = known[argv[0]]
    comparison = importlib.import_module(module)
    prog = f"{command('benchmark.py')} {argv[0]}"
    parsed = parse(getattr(comparison, settings), argv[1:], prog)
    getattr(comparison, run)(parsed)
    return 0


def comparisons() -> dict[str, tuple[str, str, str]]:
    """Every comparison: name -> module, class of its settings, function that runs it."""
    from coterie.cli.extras import COMPARISONS

    return {name: entry[:3] for name, entry in COMPARISONS.items()} | _COMPARISONS


def _usage(program: str, command: str) -> str:
    from coterie.cli.extras import COMPARISONS

    more = "".join(
        f"  {f'{name} {entry.takes}':<19}{entry.what}\n" for name, entry in COMPARISONS.items()
    )
    return _USAGE.format(program=program, command=command, more=more)


if __name__ == "__mp_main__":  # what the processes that a comparison starts call this module
    from coterie.agents.vllm.processes import end_with_parent

    end_with_parent()
if __name__ == "__main__":
    sys.exit(main())
