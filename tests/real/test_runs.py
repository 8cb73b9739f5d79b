"""A whole run on real weights: trained, killed, resumed, evaluated, compared, reported, exported.

CI runs this one; ``python tools/real_matrix.py`` runs every environment with each model alone, with
both as one team, with adapters and with full weights, and prints a table.
"""

from collections.abc import Callable
from pathlib import Path

import pytest

from real_matrix import STAGES, Cell

pytestmark = pytest.mark.real


def test_a_run(weights: Callable[[str], Path], tmp_path: Path) -> None:
    weights("smollm2")
    seen = Cell("core-teaching", "smollm2", "lora").check(tmp_path)
    assert tuple(seen.seconds) == STAGES
