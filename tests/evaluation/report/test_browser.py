"""The page as a person meets it: a real Chromium, its keyboard, both themes, a phone's width.

Needs ``pip install -e ".[test,browser]"`` and a Chromium of the system; no browser is downloaded.
"""

import dataclasses
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from coterie.envs.core_teaching import evaluation as core_teaching
from coterie.evaluation.report.__main__ import main
from coterie.evaluation.report_labels import Drawing, ReportLabels

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser"))), None)
try:
    from playwright.sync_api import sync_playwright
except ModuleNotFoundError:
    sync_playwright = None

_WHY_NOT = (
    'playwright is not installed; say pip install -e ".[browser]"'
    if sync_playwright is None
    else "no chromium on this machine"
)
pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(sync_playwright is None or CHROMIUM is None, reason=_WHY_NOT),
]
FLAGS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
PHONE = {"width": 360, "height": 740}
Open = Callable[..., Any]


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    assert sync_playwright is not None
    with sync_playwright() as playwright:
        launched = playwright.chromium.launch(executable_path=CHROMIUM, args=list(FLAGS))
        yield launched
        launched.close()


@pytest.fixture
def opened(browser: Any, run: Callable[..., Path]) -> Iterator[Open]:
    """Opens the report of a run in a new, empty profile; whatever goes wrong in it fails."""
    contexts: list[Any] = []
    wrong: list[str] = []

    def open_page(
        episodes: list[Any] | None = None, without: tuple[str, ...] = (), **context: Any
    ) -> Any:
        path = run(episodes, without)
        assert main([str(path)]) == 0
        contexts.append(browser.new_context(offline=True, **context))
        page = contexts[-1].new_page()
        page.on("pageerror", lambda error: wrong.append(str(error)))
        page.on("console", lambda message: wrong.append(message.text))
        page.on("dialog", lambda dialog: wrong.append(dialog.message))
        page.on("request", lambda request: wrong.append(request.url) if _remote(request) else None)
        page.goto((path / "report.html").as_uri())
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert wrong == []


def _remote(request: Any) -> bool:
    return not request.url.startswith(("file:", "data:"))


def title(page: Any) -> str:
    return page.locator("#episode h3").inner_text()


def test_the_keyboard_moves_between_episodes(opened: Open) -> None:
    page = opened()
    assert title(page) == "rescued"
    assert page.locator("#shown").inner_text() == "6 of 6 shown"
    for key, there in (("j", "hurt"), ("ArrowRight", "leaked"), ("k", "hurt")):
        page.keyboard.press(key)
        assert title(page) == there
    for _ in range(3):
        page.keyboard.press("ArrowLeft")
    assert title(page) == "rescued"
    # In the list the arrows up and down move too, and the focus goes along.
    page.locator("#list button").first.focus()
    page.keyboard.press("ArrowDown")
    assert page.evaluate("document.activeElement.textContent").startswith("hurt")
    assert page.url.endswith("#episode-1")
    page.reload()
    assert title(page) == "hurt"


def test_the_filter_by_text_and_by_what_happened(opened: Open) -> None:
    page = opened()
    page.keyboard.press("/")
    assert page.evaluate("document.activeElement.id") == "search"
    # Letters are typed here, not commands.
    page.keyboard.type("jk")
    assert page.locator("#shown").inner_text() == "0 of 6 shown"
    assert "No episode matches" in page.locator("#episode").inner_text()
    page.keyboard.press("Escape")
    assert page.locator("#shown").inner_text() == "6 of 6 shown"
    for name in ("rescued", "hurt", "leaked", "deferred", "consulted", "failed"):
        button = page.locator(f"button[data-tag={name}]")
        button.focus()
        page.keyboard.press("Enter")
        assert page.locator("#list button span").all_inner_texts() == [name]
        assert title(page) == name
        assert button.get_attribute("aria-pressed") == "true"
        page.keyboard.press("Space")
    assert page.locator("#shown").inner_text() == "6 of 6 shown"
    # What was sampled is searched as text, whatever its tokens.
    page.locator("#search").fill("<RESULT> 7")
    assert page.locator("#shown").inner_text() == "6 of 6 shown"


def test_tokens_are_shaded_by_probability_and_by_loss(opened: Open) -> None:
    page = opened()
    ground = """all => all.map(
        one => getComputedStyle(one).backgroundColor.match(/[\\d.]+/g).map(Number))"""
    sampled = page.locator(".card").nth(1).locator(".tok")
    # bob sampled " <result>" with p = 1/e and " 7" with p = 1/2: .85 (1 - p), in sixteenths.
    first, second = sampled.evaluate_all(ground)
    assert first[3] == pytest.approx(0.85 * 10 / 16, abs=0.01)
    assert second[3] == pytest.approx(0.85 * 8 / 16, abs=0.01)
    page.keyboard.press("s")
    # 0.12 + 0.5 |advantage * weight| / 2 with -0.5 * 0.8: all alike, and red.
    first, second = sampled.evaluate_all(ground)
    assert first == second
    assert first[3] == pytest.approx(0.22, abs=0.01)
    assert first[0] > 2 * first[1]
    assert page.locator("input[value=loss]").is_checked()
    page.get_by_label("nothing").check()
    assert [colour[3] for colour in sampled.evaluate_all(ground)] == [0, 0]
    sampled.first.hover()
    line = page.locator(".card").nth(1).locator(".sampled .small").inner_text()
    assert line == "token 1 of 2: “ <result>” · p .368 · log p −1"


def test_tokens_that_a_hint_would_change_have_a_shade_of_their_own(
    opened: Open, episode: Callable[..., Any], trace: Callable[..., Any]
) -> None:
    row = trace("bob_0", "7 # 0 =", " <result> 7", token_bonus=[[1.5, 0]])
    page = opened([episode(0, "7 # 0 =", row)])
    page.keyboard.press("s")
    sampled = page.locator(".card").first.locator(".tok")
    first, second = sampled.evaluate_all(
        """all => all.map(
            one => getComputedStyle(one).backgroundColor.match(/[\\d.]+/g).map(Number))"""
    )
    # -0.5 + 1.5 raises the first, 0.12 + 0.5 (1 * 0.8) / 2; the second is as its trace.
    assert first[3] == pytest.approx(0.32, abs=0.01)
    assert second[3] == pytest.approx(0.22, abs=0.01)
    assert second[0] > first[0]
    sampled.first.hover()
    line = page.locator(".card").first.locator(".sampled .small").inner_text()
    assert line.endswith("log p −1 · advantage +1.5")


def test_a_trace_shows_its_terms_confidence_and_loss(opened: Open) -> None:
    page = opened()
    card = page.locator(".card").nth(1)
    assert card.locator("h5").text_content() == "bob_0reward +1.3"
    assert card.locator(".terms tr").all_text_contents() == ["exploitation+1", "rescue+0.3"]
    text = card.text_content()
    assert "reward 0: exploration" in text
    assert "advantage −0.5, loss weight 0.8: the 2 underlined tokens become less likely" in text
    page.locator("button[data-tag=deferred]").click()
    meter = page.locator(".card").nth(1).locator("meter")
    assert meter.get_attribute("aria-label") == "stated confidence"
    assert meter.evaluate("meter => meter.value") == 0.25


def test_a_curve_tells_its_values_under_the_pointer(opened: Open) -> None:
    page = opened()
    figure = page.locator("figure.chart").first
    drawing = figure.locator("svg")
    drawing.scroll_into_view_if_needed()
    box = drawing.bounding_box()
    page.mouse.move(box["x"] + box["width"] - 15, box["y"] + 50)
    assert figure.locator(".readout").inner_text() == "step 4: alice 1, bob 0.5"
    page.mouse.move(0, 0)
    assert figure.locator(".readout").inner_text().strip() == ""


def test_links_and_keys_lead_to_the_episode(opened: Open) -> None:
    page = opened(viewport={"width": 400, "height": 740})
    top = "document.getElementById('episode').getBoundingClientRect().top"
    page.keyboard.press("j")
    assert 0 <= page.evaluate(top) <= 370
    page.goto(page.url.partition("#")[0] + "#episode-4")
    page.wait_for_function("document.querySelector('#episode h3').innerText === 'consulted'")
    assert 0 <= page.evaluate(top) <= 370
    page.reload()
    page.wait_for_function(f"{top} >= 0 && {top} <= 370")
    assert title(page) == "consulted"


def test_an_environment_without_problems_shows_its_own_state(
    opened: Open, episode: Any, trace: Any
) -> None:
    row = trace("alice_0", "7 # 0", "7", advantage=None)
    page = opened([episode(1, "unused", row) | {"gold": "8", "problem_shown": False}])
    assert title(page) == "7 # 0"
    assert page.locator(".gold").count() == 0
    assert "unused" not in page.locator("#list").inner_text()
    assert "not learned: it entered no update" in page.locator(".card").inner_text()


def test_an_environment_s_drawing_keeps_its_lines(
    opened: Open, episode: Any, trace: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    drawing = Drawing("Moves", "moves", lambda moves: moves)
    plugin = dataclasses.replace(core_teaching.EVALUATION, labels=ReportLabels(drawings=(drawing,)))
    monkeypatch.setattr(core_teaching, "EVALUATION", plugin)
    text = "e4 " * 200 + "\n  └ d4"
    page = opened([episode(1, "p", trace("alice_0", "7", "7"), moves={"alice": text})])
    assert page.get_by_role("heading", name="Moves").is_visible()
    shown = page.get_by_role("region", name="Moves, alice")
    assert shown.text_content() == text
    # As wide as it is: 600 characters are not broken into lines.
    assert shown.bounding_box()["height"] < 80


def test_hostile_text_stays_text(opened: Open, hostile: list[dict[str, Any]]) -> None:
    page = opened(hostile)
    page.locator("summary").evaluate_all("all => all.forEach(one => one.click())")
    assert page.title() == "x: a run of Coterie"
    assert page.locator("img").count() == 0
    assert page.locator("script").count() == 2
    assert title(page).startswith("</script><script>document.title='owned'</script><img src=x")
    assert title(page).endswith("a‹U+202E›b␛[31mc‹U+200B›d")
    gold = page.locator(".gold pre").text_content()
    assert gold.startswith("</script><script>document.title='owned'</script><img src=x")


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_a_phone_scrolls_in_one_direction_only(
    opened: Open, episode: Any, trace: Any, theme: str
) -> None:
    long = "x" * 400
    row = trace("alice_0", long, long, info={"answer": long, long: long, "round": "A"})
    record = episode(1, long, row, hints={long: long}, rounds=[[{"query": long, "result": long}]])
    record |= {"gold": long, "kind": "number"}
    page = opened([record], viewport=PHONE, color_scheme=theme)
    page.locator("summary").evaluate_all("all => all.forEach(one => one.click())")
    assert page.evaluate("document.documentElement.scrollWidth") == PHONE["width"]


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_text_can_be_told_from_its_ground(opened: Open, theme: str) -> None:
    page = opened(color_scheme=theme)
    # WCAG's contrast of every text with the ground that it stands on, shaded tokens included.
    contrasts = page.evaluate((Path(__file__).parent / "contrast.js").read_text())
    assert len(contrasts) > 50
    assert [contrast for contrast in contrasts if contrast[0] < 4.5] == []


def test_everything_that_can_be_used_has_a_name_and_a_visible_focus(opened: Open) -> None:
    page = opened()
    controls = page.locator("button:enabled:visible, input:visible, a:visible, summary:visible")
    for place in range(controls.count()):
        control = controls.nth(place)
        name = control.evaluate(
            """e => e.ariaLabel
                || [...(e.labels ?? [])].map(l => l.textContent).join() || e.textContent"""
        )
        assert name.strip(), control.evaluate("e => e.outerHTML")
    seen = set()
    for _ in range(12):
        page.keyboard.press("Tab")
        style = "getComputedStyle(document.activeElement).outlineStyle"
        assert page.evaluate(style) != "none", page.evaluate("document.activeElement.outerHTML")
        seen.add(page.evaluate("document.activeElement.outerHTML"))
    assert len(seen) > 8


def test_an_empty_run_has_no_reader(opened: Open) -> None:
    page = opened(without=("episodes.jsonl", "summary.json"))
    assert page.locator("#reader").is_hidden()
    assert page.locator("#filters").is_hidden()
    assert "There are no episodes to read." in page.locator("#episodes").inner_text()
    page.keyboard.press("j")
