"""Programs that models write: found in a response, run under guard, judged by their tests."""

from rewards.programs.grader import ProgramGrader
from rewards.programs.program import program_in
from rewards.programs.sandbox import Limits, Outcome, ProgramTests, run

__all__ = ["Limits", "Outcome", "ProgramGrader", "ProgramTests", "program_in", "run"]
