"""Commands that the pages only show (they take long, or need a GPU) exist as they are written.

Their flags are parsed, and nothing is run.
"""

import re
import shlex
from pathlib import Path

import pytest

from launch.command_line import parse

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted([ROOT / "README.md", *(ROOT / "docs").glob("**/*.md")])
BLOCK = re.compile(r"^```console\n(.*?)^```$", re.MULTILINE | re.DOTALL)
TRAIN = re.compile(r"python train\.py +(.*?)$", re.MULTILINE)
# Runs of others, and an example that has to be installed first.
NOT_HERE = ("--resume", "--env nim")


def commands(page: Path) -> list[str]:
    blocks = "".join(BLOCK.findall(page.read_text(encoding="utf-8"))).replace("\\\n", " ")
    found = [line.replace("$seed", "0") for line in TRAIN.findall(blocks)]
    return [line for line in found if not any(flag in line for flag in NOT_HERE)]


@pytest.mark.parametrize(
    "page", [page for page in PAGES if commands(page)], ids=lambda page: page.stem
)
def test_commands_parse(page: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)  # examples are named from here
    monkeypatch.syspath_prepend(ROOT)
    for line in commands(page):
        try:
            parse(shlex.split(line, comments=True))
        except SystemExit as refused:
            pytest.fail(f"{page.name}: python train.py {line} ({refused.code})")
