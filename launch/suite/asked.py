"""Who is asked what."""

from dataclasses import dataclass

from evaluation.suite.suites import Suite


@dataclass(frozen=True)
class Asked:
    """Who is asked what, on one set of problems."""

    suite: Suite
    agent: str
    """Who answers."""
    experts: tuple[str, ...] = ()
    """Who answers first, in a workflow; the seats go round."""
