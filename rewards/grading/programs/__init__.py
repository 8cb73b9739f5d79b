"""Programs that models write: found in a response, run under guard, judged by their tests."""

from coterie.rewards.grading.programs.grader import ProgramGrader, program_in
from coterie.rewards.grading.programs.sandbox import Limits, Outcome, ProgramTests, run

__all__ = ["Limits", "Outcome", "ProgramGrader", "ProgramTests", "program_in", "run"]
