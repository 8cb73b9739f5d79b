"""Run and judge the programs that models write.

They are extracted from a response, run in a sandbox and judged by tests.

``--scoring.programs`` turns grading on. ``coterie.extras.programs.tool_use:SPEC`` is an environment
whose agent may run programs.
"""
