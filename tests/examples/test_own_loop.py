"""Training without the command line: as a program, and in a notebook whose loop runs already."""

import asyncio
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

from examples.own_loop import train

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.slow
def test_the_loop_learns(capsys: pytest.CaptureFixture[str]) -> None:
    before, after = asyncio.run(train())
    assert capsys.readouterr().out == f"mean reward {before:.3f} -> {after:.3f}\n"
    # An answer that is no move is paid -1; a player that draws or stands at random, about -.4.
    assert before < -0.9
    assert after > -0.35


# Jupyter's own modules.
@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_the_notebook_runs() -> None:
    notebook = nbformat.read(ROOT / "examples" / "own_loop.ipynb", as_version=4)
    nbformat.validate(notebook)
    where = {"metadata": {"path": str(ROOT)}}
    done = NotebookClient(notebook, timeout=300, resources=where).execute()
    trained, game = (
        "".join(output.text for output in cell.outputs if output.get("name") == "stdout")
        for cell in done.cells
        if cell.cell_type == "code"
    )
    assert trained.startswith("mean reward ")
    assert "== player_0 ==" in game
