"""A preset says how a suite's models are asked."""

from coterie.comparison.inherited import parse
from coterie.comparison.suite import SuiteComparison


def test_a_suite_is_asked_as_the_preset_says() -> None:
    flags = ("--preset", "core-qwen-gsm8k", "--policies", "a=tiny:alice")
    suite = parse(SuiteComparison, flags, "suite")
    assert (suite.temperature, suite.top_p) == (0.7, 0.9)
