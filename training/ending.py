"""How a command ends: whatever stops it early becomes one sentence and an exit code."""

import errno
import io
import os
import sys
from collections.abc import Callable

from vocabulary import UserError

# What a user can mend: a disk that is full, a place that cannot be written or read.
_OF_PLACES = (errno.EACCES, errno.EISDIR, errno.ENAMETOOLONG, errno.ENOENT, errno.ENOTDIR)
_OF_DISKS = (errno.EDQUOT, errno.EFBIG, errno.EIO, errno.ENOSPC, errno.EPERM, errno.EROFS)


def ended(command: Callable[[], int], *, program: str, interrupted: str) -> int:
    """The exit code of ``command``, which takes over what it prints.

    2 the user's mistake, 130 interrupted, 141 nobody reads its output any more.

    Args:
        command: does the work; gives 0, or a code of its own.
        program: begins every sentence.
        interrupted: what to say after Ctrl-C.
    """
    try:
        for stream in (sys.stdout, sys.stderr):
            # A terminal that lacks a letter shows another one.
            if isinstance(stream, io.TextIOWrapper):
                stream.reconfigure(errors="replace")
        code = command()
        sys.stdout.flush()
        return code
    except KeyboardInterrupt:
        print(f"\n{program}: {interrupted}", file=sys.stderr)
        return 130
    except BrokenPipeError:
        # Nothing more can be written, not even what is written on the way out.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 141
    except OSError as error:
        if error.errno not in (*_OF_PLACES, *_OF_DISKS):
            raise
        where = f"{error.filename}: " if error.filename else ""
        print(f"{program}: {where}{error.strerror}", file=sys.stderr)
        return 2
    except UserError as mistake:
        print(f"{program}: {mistake}", file=sys.stderr)
        return 2
