"""Checkers whose worker processes end with the tests of a file."""

from collections.abc import Iterator

import pytest

from coterie.rewards.grading.answers import Checker


@pytest.fixture(scope="module")
def checker() -> Iterator[Checker]:
    checker = Checker(deadline_s=20.0)
    yield checker
    checker.close()
