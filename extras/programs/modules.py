"""Modules of the standard library that guarded processes may use, and which of them to load.

Nothing can be imported once the guard is in place. The module imports nothing from this project:
child processes run it as a plain file.
"""

import __future__  # noqa: F401

import importlib
import re

_MODULES = """
abc array ast base64 binascii bisect calendar cmath collections collections.abc
contextlib copy dataclasses datetime _strptime decimal difflib enum fractions functools hashlib
heapq inspect io itertools json keyword math numbers operator os queue random re statistics string
struct textwrap time traceback types typing unicodedata uuid warnings zlib
"""


def load(source: str | None = None) -> None:
    """Import the modules; only those whose name ``source`` holds, if it is given."""
    words = set(re.findall(r"\w+", source or ""))
    for name in _MODULES.split():
        # Counter.most_common imports heapq, and datetime.strptime _strptime.
        if source is None or name == "heapq" or name.partition(".")[0].removeprefix("_") in words:
            importlib.import_module(name)
