"""The tutorial's notebook is the tutorial, and runs."""

import importlib.util
import os
import sys
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

ROOT = Path(__file__).resolve().parents[2]
_SPEC = importlib.util.spec_from_file_location("notebook", ROOT / "docs" / "hooks" / "notebook.py")
assert _SPEC
assert _SPEC.loader
hook = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(hook)


def test_the_notebook_is_the_page() -> None:
    made = hook.notebook(hook.PAGE.read_text(encoding="utf-8"))
    assert hook.NOTEBOOK.read_text(encoding="utf-8") == made, "run python docs/hooks/notebook.py"
    nbformat.validate(nbformat.reads(made, as_version=4))


def test_blocks_become_cells_and_links_lead_to_the_pages() -> None:
    page = "# T\n\n[a](b.md) [c](../d)\n\n```bash\nls\n```\n\n```python\n# x.py\n1\n```\n"
    cells = nbformat.reads(hook.notebook(page), as_version=4).cells
    assert cells[0].source == "# T\n\n[a](../docs/b.md) [c](../d)"
    assert "os.chdir" in cells[1].source
    assert [cell.source for cell in cells[2:]] == ["%%bash\nls", "%%writefile x.py\n# x.py\n1"]


# Jupyter's own modules.
@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_the_notebook_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("train.py", "benchmark.py"):
        (tmp_path / name).symlink_to(ROOT / name)
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("PYTHONPATH", f"{tmp_path}{os.pathsep}{ROOT}")
    notebook = nbformat.read(hook.NOTEBOOK, as_version=4)
    where = {"metadata": {"path": str(tmp_path)}}
    done = NotebookClient(notebook, timeout=600, resources=where).execute()
    printed = "".join(
        output.get("text", "")
        for cell in done.cells
        if cell.cell_type == "code"
        for output in cell.outputs
    )
    assert "12 steps, " in printed
    assert "paid to" in printed
    assert (tmp_path / "runs" / "first" / "report.html").is_file()
