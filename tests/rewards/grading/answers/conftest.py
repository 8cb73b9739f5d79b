"""Checkers whose worker processes end with the tests of a file."""

from collections.abc import Iterator

import pytest

from coterie.rewards.grading.answers import Checker


@pytest.fixture(scope="module")
def checker() -> Iterator[Checker]:
    checker = Checker(deadline_s=20.0)
    yield checker
    checker.close()


@pytest.fixture(scope="module", params=[True, False], ids=["shortcuts", "algebra"])
def either_checker(request: pytest.FixtureRequest) -> Iterator[Checker]:
    """A checker with the short-cuts of equality, then one that leaves all to algebra."""
    checker = Checker(shortcuts=request.param, deadline_s=20.0)
    yield checker
    checker.close()
