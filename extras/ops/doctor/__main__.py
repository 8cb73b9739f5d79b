"""``coterie doctor``: the same as ``coterie train --doctor``."""

import sys
from collections.abc import Sequence

from coterie import train

_FLAG = "--doctor"


def main(argv: Sequence[str] | None = None) -> int:
    """Run the doctor. Returns the exit code: 0 no errors found, 1 errors found, 2 user error."""
    argv = sys.argv[1:] if argv is None else argv
    return train.main(argv if _FLAG in argv else [*argv, _FLAG])


if __name__ == "__main__":
    sys.exit(main())
