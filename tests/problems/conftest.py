"""Data sets in files and in the hub's layout, on this machine."""

import json
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from coterie.datatypes import Problem
from coterie.problems.columns import Columns
from coterie.problems.files import load_file
from coterie.problems.source import ProblemSet

Tables = dict[str, dict[str, list[dict[str, Any]]]]


def load(folder: Path, *rows: Mapping[str, Any], **columns: Any) -> ProblemSet:
    """The problems of a file with these rows, and with these settings of its columns."""
    path = folder / "own.jsonl"
    path.write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    return load_file(path, Columns(**columns))


def numbered(n: int, start: int = 0, name: str = "s") -> ProblemSet:
    """``What is 0?``, whose gold is 0, and so on."""
    problems = [Problem(f"{name}:{i}", f"What is {i}?", str(i)) for i in range(start, start + n)]
    return ProblemSet(name, problems)


def golds(problems: Any) -> list[int]:
    return [int(problem.gold) for problem in problems]


@pytest.fixture
def publish(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[Tables], str]]:
    """Writes ``tables[config][split]``, lists of rows, to a folder, and gives its path."""
    import datasets
    import pyarrow
    import pyarrow.parquet

    def write(tables: Tables) -> str:
        folder, head = tmp_path / "repo", ["---", "configs:"]
        for config, splits in tables.items():
            head += [f"- config_name: {config}", "  data_files:"]
            for split, rows in splits.items():
                (folder / config).mkdir(parents=True, exist_ok=True)
                path = f"{config}/{split}-00000-of-00001.parquet"
                pyarrow.parquet.write_table(pyarrow.Table.from_pylist(rows), folder / path)
                head += [f"  - split: {split}", f"    path: {path}"]
        (folder / "README.md").write_text("\n".join([*head, "---", ""]))
        return str(folder)

    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path / "cache")
    datasets.disable_progress_bars()
    yield write
    datasets.enable_progress_bars()
