"""Programs that models write: found in a response, run under guard, judged by their tests.

``--scoring.programs`` has them graded; ``coterie.extras.programs.tool_use:SPEC`` is an environment
whose agent may run some.
"""

from coterie.datatypes.extras import Extra

EXTRA = Extra("programs")
