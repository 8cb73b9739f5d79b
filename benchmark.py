"""Compare trained systems: ``python benchmark.py corea --corea runs/x --rlvr runs/y``."""

import sys
from collections.abc import Sequence

_USAGE = """\
usage: benchmark.py corea [settings]   small models, cascades with a large one, and controls

All settings of one comparison:  python benchmark.py corea --help"""


def main(argv: Sequence[str] | None = None) -> int:
    """Returns the exit code: 0 done, 2 the user's mistake."""
    from vocabulary import UserError

    try:
        return _compare(sys.argv[1:] if argv is None else argv)
    except UserError as mistake:
        print(f"benchmark.py: {mistake}", file=sys.stderr)
        return 2


def _compare(argv: Sequence[str]) -> int:
    from vocabulary import UserError

    if not argv or argv[0] in ("-h", "--help"):
        print(_USAGE)
        return 0
    if argv[0] != "corea":
        raise UserError(f"unknown comparison {argv[0]!r}; known: corea")
    import tyro

    from launch.compare.corea import CoreaComparison, compare

    compare(tyro.cli(CoreaComparison, args=list(argv[1:]), prog="benchmark.py corea"))
    return 0


if __name__ == "__main__":
    sys.exit(main())
