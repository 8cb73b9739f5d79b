"""The names at the top of the repository that readers and commands rely on."""

from pathlib import Path

ROOT = Path(__file__).parents[1]
FIXED = {
    *("pyproject.toml", "README.md", "train.py"),
    *("envs", "agents", "algorithms", "rewards", "experts", "tests"),
}


def test_the_fixed_names_are_at_the_top() -> None:
    assert {path.name for path in ROOT.iterdir()} >= FIXED
