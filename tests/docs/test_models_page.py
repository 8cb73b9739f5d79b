"""What the page says of the models that ship with the repository."""

import math
import re
from pathlib import Path

from safetensors import safe_open

from coterie.agents.models.locate import TINY

DOCS = Path(__file__).parents[2] / "docs"
PAGE = (DOCS / "models.md").read_text("utf-8")
NUMBERS = {13: "thirteen", 14: "fourteen", 15: "fifteen", 16: "sixteen"}


def weights(folder: Path) -> int:
    with safe_open(folder / "model.safetensors", "numpy") as file:
        return sum(math.prod(file.get_slice(name).get_shape()) for name in file.keys())  # noqa: SIM118


def test_the_page_counts_and_names_every_shipped_model() -> None:
    folders = [path.parent for path in TINY.glob("*/config.json")]
    ((count, *sizes),) = re.findall(r"\n(\w+) models of ([\d.]+) to ([\d.]+) million", PAGE)
    assert count.lower() == NUMBERS[len(folders)]
    millions = [weights(folder) / 1e6 for folder in folders]
    assert sizes == [f"{size:.1f}" for size in (min(millions), max(millions))]
    (row,) = re.findall(r"\| `tiny:alice` \| .*?: (.*) \|\n", PAGE)
    assert sorted(re.findall(r"`(\w+)`", row)) == sorted(folder.name for folder in folders)
