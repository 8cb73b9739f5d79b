"""Every snippet that the documentation shows is run.

``python`` and ``bash`` blocks are executed from a scratch folder in which the repository's entry
points and examples are at hand; blocks of one page share it, in order. A ``python`` block that
begins with ``# NAME.py`` is saved under that name, too, and a ``text`` block right after a
``python`` block is what it prints. ``console`` blocks show what needs a download, a GPU, a new
machine or more time, and are not run; neither are blocks without a language.
"""

import io
import os
import re
import shlex
import subprocess
import sys
from contextlib import redirect_stdout
from pathlib import Path

import pytest

from coterie.__main__ import main

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted([ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").glob("**/*.md")])
# Pages that train for longer than a moment.
SLOW = (
    "README",
    "benchmarks",
    "coming-from",
    "core-teaching",
    "experts",
    "games",
    "gateway",
    "my-model-does-not-learn",
    "new-environments",
    "problems",
    "report",
)
# Blocks of Python that register nothing and save no module need no process of their own.
HERE = ("from-python", "gspo", "models")
SAVED = re.compile(r"# (\w+\.py)\n")
BLOCK = re.compile(
    r"^```(python|bash)\n(.*?)^```$(?:\n\n```text\n(.*?)^```$)?", re.MULTILINE | re.DOTALL
)
PROGRAMS = (["python", "train.py"], ["python", "benchmark.py"])
SECONDS = 600


def blocks(page: Path) -> list[tuple[str, str, str]]:
    """(language, text, what stands after it as its output or nothing) of each block."""
    return BLOCK.findall(page.read_text(encoding="utf-8"))


def plain(text: str) -> list[list[str]]:
    """The words of each command, if all of them are ``train.py``, ``benchmark.py`` or ``coterie``
    and none needs a shell; otherwise nothing."""
    lines = text.replace("\\\n", " ").splitlines()
    if any(mark in text for mark in ("$", "|", ";", "<", ">", "export ")):
        return []
    commands = [words for line in lines if (words := shlex.split(line, comments=True))]
    known = [words[:2] in PROGRAMS or words[0] == "coterie" for words in commands]
    return commands if all(known) else []


def run_here(commands: list[list[str]], folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run commands in this process, since a new one takes ten seconds to import torch and
    transformers. Afterwards remove the modules that the page itself has written."""
    before = set(sys.modules)
    with monkeypatch.context() as patch:
        patch.chdir(folder)
        patch.syspath_prepend(folder)
        for program, *arguments in commands:
            words = arguments if program == "coterie" else [Path(arguments[0]).stem, *arguments[1:]]
            try:
                code = main(words)
            except SystemExit as exit:
                code = exit.code
            assert not code, [program, *arguments]
    for name in set(sys.modules) - before:
        file = getattr(sys.modules[name], "__file__", None) or ""
        if Path(file).is_relative_to(folder):
            del sys.modules[name]


@pytest.mark.parametrize(
    "page",
    [
        pytest.param(page, marks=[pytest.mark.slow] if page.stem in SLOW else [], id=page.stem)
        for page in PAGES
        if blocks(page) and page.stem != "tutorial"  # test_notebook.py runs it
    ],
)
def test_snippets_run(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("train.py", "benchmark.py", "tools", "research", "examples"):
        (tmp_path / name).symlink_to(ROOT / name)
    environment = {
        **os.environ,
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        # The code under test, even where another checkout is the one that is installed.
        "PYTHONPATH": f"{tmp_path}{os.pathsep}{ROOT}",
    }
    for language, text, shown in blocks(page):
        if language == "bash" and (commands := plain(text)):
            run_here(commands, tmp_path, monkeypatch)
            continue
        command = ["bash", "-euo", "pipefail", "-c", text]
        if language == "python":
            if name := SAVED.match(text):
                (tmp_path / name[1]).write_text(text, encoding="utf-8")
            if page.stem in HERE:
                with monkeypatch.context() as patch, redirect_stdout(io.StringIO()) as printed:
                    patch.chdir(tmp_path)
                    exec(text, {"__name__": "__main__"})
                assert shown in ("", printed.getvalue()), f"{page.name} shows another output"
                continue
            command = [sys.executable, "-c", text]
        done = subprocess.run(
            command,
            cwd=tmp_path,
            env=environment,
            capture_output=True,
            text=True,
            timeout=SECONDS,
            check=False,
        )
        assert done.returncode == 0, f"{page.name}:\n{text}\n{done.stdout}\n{done.stderr}"
        if language == "python" and shown:
            assert done.stdout == shown, f"{page.name} shows another output:\n{text}"
