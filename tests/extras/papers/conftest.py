"""Comparisons without their pictures."""

import pytest


@pytest.fixture(autouse=True)
def no_pictures(monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> None:
    """Pictures are drawn and not written, except in tests that look at them."""
    if "drawn" not in request.fixturenames:
        monkeypatch.setattr("matplotlib.figure.Figure.savefig", lambda *_, **__: None)


@pytest.fixture
def drawn() -> None:
    """For tests that look at the pictures."""
