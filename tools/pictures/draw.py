"""Draw the pictures of the documentation: ``python tools/pictures/draw.py``."""

import sys
from pathlib import Path

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[1]))
from pictures.curve import learning_curve
from pictures.first_model import first_real_model, half_a_billion
from pictures.house import house
from pictures.larger_teacher import larger_teacher
from pictures.protocols import DRAWINGS

FOLDER = Path(__file__).parents[2] / "docs" / "pictures"


def drawn() -> dict[str, str]:
    """Return file name -> SVG."""
    pictures = {
        **DRAWINGS,
        "learning-curve": learning_curve,
        "first-real-model": first_real_model,
        "half-a-billion": half_a_billion,
        "house": house,
        "larger-teacher": larger_teacher,
    }
    return {f"{name}.svg": draw().svg() for name, draw in pictures.items()}


def main() -> None:
    """Write the pictures."""
    for name, text in drawn().items():
        (FOLDER / name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
