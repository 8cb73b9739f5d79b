"""Suites as a user starts them."""

import json
from pathlib import Path
from typing import Any

import pytest

from coterie import benchmark
from coterie.cli.arguments import overlay
from coterie.evaluation.compare import sample_responses


@pytest.fixture(autouse=True)
def no_pictures(monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> None:
    """All but one test go without."""
    if "drawn" not in request.fixturenames:
        pictures = "coterie.evaluation.compare.pictures"
        monkeypatch.setattr(f"{pictures}.draw_rows", lambda rows, path, title: path)
        monkeypatch.setattr(f"{pictures}.draw_matrix", lambda cells, seats, path, meaning: path)


@pytest.fixture
def drawn() -> None:
    """For the test that looks at the picture."""


@pytest.fixture
def run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Any:
    def command(*flags: str, code: int = 0, out: str = "out") -> Any:
        """results.json and what was shown; the message of a refusal."""
        few = ("--questions", "6", "--samples", "4", "--resamples", "50")
        flags = (*flags, "--out", str(tmp_path / out))
        assert benchmark.main(overlay([*few, *flags])) == code
        shown = capsys.readouterr()
        if code:
            return shown.err
        return json.loads((tmp_path / out / "results.json").read_text()), shown.out

    return command


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, int]]:
    """(title, how many) of what is sampled from now on."""
    calls: list[tuple[str, int]] = []
    really = sample_responses.sample

    async def sample(job: Any, team: Any, wanted: Any, *more: Any) -> Any:
        calls.append((job.lineup.name.removeprefix("workflow-"), len(wanted)))
        return await really(job, team, wanted, *more)

    monkeypatch.setattr("coterie.evaluation.compare.sample_responses.sample", sample)
    return calls
