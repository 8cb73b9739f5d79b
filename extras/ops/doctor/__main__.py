"""``coterie doctor``: the same as ``coterie train --doctor``."""

import sys
from collections.abc import Sequence

from coterie import train

_FLAG = "--doctor"


def main(argv: Sequence[str] | None = None) -> int:
    """Returns the exit code: 0 nothing is wrong, 1 something is, 2 the user's mistake."""
    argv = sys.argv[1:] if argv is None else argv
    return train.main(argv if _FLAG in argv else [*argv, _FLAG])


if __name__ == "__main__":
    sys.exit(main())
