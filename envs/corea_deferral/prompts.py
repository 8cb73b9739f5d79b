"""What both roles are asked."""

from coterie.datatypes import Problem

# COREA, arXiv:2603.03752, section 3.1
SUFFIX = (
    r"Please reason step by step, and put your final answer within \boxed{}, then output the "
    r"confidence (0.0-1.0) that your answer is correct within \confidence{}."
)


def prompt_for(problem: Problem) -> str:
    """The user's message, the same for the small and the large model."""
    return f"{problem.question} {SUFFIX}"
