"""Draw every picture of the documentation: ``python tools/pictures/draw.py``.

``--reader RUN`` also takes a screenshot of a run's report, which needs a Chromium and
``pip install -e ".[browser]"``.
"""

import argparse
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


def screenshot(run: Path, out: Path, episode: int) -> None:
    """Write a screenshot of an episode in a run's report, in light colours."""
    import shutil

    from playwright.sync_api import sync_playwright  # pyright: ignore[reportMissingImports]

    from coterie.evaluation.report.page import page
    from coterie.evaluation.report.rundata import read_run

    html = out.with_suffix(".html")
    html.write_text(page(read_run(run)), encoding="utf-8")
    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        view = browser.new_page(viewport={"width": 1280, "height": 780})
        view.goto(f"{html.as_uri()}#episode-{episode}")
        view.evaluate("document.getElementById('filters').scrollIntoView({behavior: 'instant'})")
        view.wait_for_timeout(300)
        view.screenshot(path=out)
        browser.close()
    html.unlink()


def main() -> None:
    """Write the pictures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--reader", type=Path, help="also take a screenshot of this run's report")
    parser.add_argument("--episode", type=int, default=0, help="the episode it shows")
    arguments = parser.parse_args()
    FOLDER.mkdir(exist_ok=True)
    for name, text in drawn().items():
        (FOLDER / name).write_text(text, encoding="utf-8")
    if arguments.reader:
        screenshot(arguments.reader, FOLDER / "reader.png", arguments.episode)


if __name__ == "__main__":
    main()
