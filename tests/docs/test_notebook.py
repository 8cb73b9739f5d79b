"""The tutorial's notebook is the tutorial, and runs."""

import os
import sys
from pathlib import Path
from types import ModuleType

import nbformat
import pytest
from nbclient import NotebookClient

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def notebook(hook) -> ModuleType:
    return hook("notebook")


def test_the_notebook_is_the_page(notebook: ModuleType) -> None:
    made = notebook.notebook(notebook.PAGE.read_text(encoding="utf-8"))
    assert notebook.NOTEBOOK.read_text(encoding="utf-8") == made, (
        "run python docs/hooks/notebook.py"
    )
    nbformat.validate(nbformat.reads(made, as_version=4))


def test_blocks_become_cells_and_links_lead_to_the_pages(notebook: ModuleType) -> None:
    page = "# T\n\n[a](b.md) [c](../d)\n\n```bash\nls\n```\n\n```python\n# x.py\n1\n```\n"
    cells = nbformat.reads(notebook.notebook(page), as_version=4).cells
    assert cells[0].source == "# T\n\n[a](../docs/b.md) [c](../d)"
    assert "os.chdir" in cells[1].source
    assert [cell.source for cell in cells[2:]] == ["%%bash\nls", "%%writefile x.py\n# x.py\n1"]


# Jupyter's own modules.
@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_the_notebook_runs(
    notebook: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("train.py", "benchmark.py"):
        (tmp_path / name).symlink_to(ROOT / name)
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("PYTHONPATH", f"{tmp_path}{os.pathsep}{ROOT}")
    # A cell ends at its first command that fails, as a block of a page does (test_snippets.py).
    monkeypatch.setenv("SHELLOPTS", "errexit:nounset:pipefail")
    cells = nbformat.read(notebook.NOTEBOOK, as_version=4)
    where = {"metadata": {"path": str(tmp_path)}}
    done = NotebookClient(cells, timeout=600, resources=where).execute()
    outputs = [output for cell in done.cells for output in cell.get("outputs", ())]
    printed = "".join(output.get("text", "") for output in outputs)
    assert "12 steps, " in printed
    assert "paid to" in printed
    assert (tmp_path / "runs" / "first" / "report.html").is_file()
