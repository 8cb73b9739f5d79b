"""Programs that models write: extracted from a response, run in a sandbox, judged by tests.

``--scoring.programs`` turns grading on. ``coterie.extras.programs.tool_use:SPEC`` is an environment
whose agent may run programs.
"""
