"""Cards, arrows and words as SVG, for light and dark pages."""

from collections.abc import Sequence
from html import escape

# One tone stands for the same part in every picture and in the report.
TONES = ("plain", "blue", "orange", "green", "violet", "grey")
_STYLE = """
svg{--paper:#fbfaf8;--card:#fff;--ink:#1d2129;--soft:#5c6470;--line:#d5d1c9;
--blue:#2f6bd8;--orange:#c9610f;--green:#11713b;--violet:#8f3b8a;--grey:#5b6b86;--plain:#8a909b}
@media (prefers-color-scheme:dark){svg{--paper:#14161a;--card:#1f232a;--ink:#e5e7eb;--soft:#9aa3b0;
--line:#3a404b;--blue:#7aa8ff;--orange:#ffa25c;--green:#5fd08c;--violet:#e08bdb;--grey:#a3b1c9;
--plain:#7d8694}}
text{font-family:system-ui,-apple-system,"Segoe UI",Roboto,"DejaVu Sans",sans-serif;fill:var(--ink)}
.paper{fill:var(--paper)}.title{font-size:19px;font-weight:650}.soft{fill:var(--soft)}
.mono{font-family:ui-monospace,SFMono-Regular,Menlo,"DejaVu Sans Mono",monospace}
.card{fill:var(--card);stroke:var(--line);stroke-width:1.5}.way{fill:none;stroke-width:2}
.middle{text-anchor:middle}.end{text-anchor:end}.bold{font-weight:650}.dash{stroke-dasharray:6 5}
.grid{stroke:var(--line)}.thin{stroke-width:1;opacity:.55}.halo{stroke:var(--paper);stroke-width:5;
paint-order:stroke;stroke-linejoin:round}
""" + "".join(f".f-{tone}{{fill:var(--{tone})}}.s-{tone}{{stroke:var(--{tone})}}" for tone in TONES)
_BROAD, _BOLD, _MONO = 0.575, 0.63, 0.615
"""Width of a letter over its font size, in the broadest of the fonts: on average, bold, and
monospaced."""


class Picture:
    """A drawing. Words that leave it, or their card, are an error: nobody would see them cut."""

    def __init__(self, title: str, width: int, height: int) -> None:
        self.title, self.width, self.height = title, width, height
        self._parts: list[str] = []
        self.words(24, 36, title, "title")

    def words(self, x: float, y: float, text: str, style: str = "", size: float = 15) -> None:
        """Draw one line of text with its baseline at ``y``."""
        size = 19 if "title" in style else size
        room = _room(text, size, style)
        start = x - room * ("end" in style or 0.5 * ("middle" in style))
        if start < 0 or start + room > self.width:
            raise ValueError(f"{text!r} is too wide for the picture {self.title!r}")
        self._parts.append(
            f'<text x="{x:g}" y="{y:g}" font-size="{size:g}" class="{style}">{escape(text)}</text>'
        )

    def card(
        self, x: float, y: float, width: float, lines: Sequence[str], tone: str = "plain",
        mark: str = "", height: float | None = None,
    ) -> None:  # fmt: skip
        """Draw a rounded card with a bar of its tone; its first line is bold. A line that begins
        with ``$`` is code; ``mark`` is a sign in the upper corner, ``✓`` or ``✗``."""
        tall = 18 + 21 * len(lines) if height is None else height
        self._parts.append(
            f'<rect class="card" x="{x:g}" y="{y:g}" width="{width:g}" height="{tall:g}" rx="9"/>'
            f'<rect class="f-{tone}" x="{x:g}" y="{y + 9:g}" width="4" height="{tall - 18:g}"/>'
        )
        for place, line in enumerate(lines):
            code, bold = line.startswith("$"), place == 0
            text, size = line.removeprefix("$"), 13.5 if code else 15
            style = " ".join(
                ["mono"] * code + ["bold"] * (bold and not code) + ["soft"] * (not bold)
            )
            room = _room(text, size, style) + 22 + 20 * (bold and bool(mark))
            if room > width:
                raise ValueError(f"{text!r} is too wide for its card by {room - width:.0f}")
            self.words(x + 15, y + 24 + 21 * place, text, style, size)
        if mark:
            good = "green" if mark == "✓" else "orange"
            self.words(x + width - 22, y + 24, mark, f"bold f-{good}", 16)

    def arrow(
        self, start: tuple[float, float], end: tuple[float, float], *, tone: str = "plain",
        label: str = "", dashed: bool = False, sideways: bool = False,
    ) -> None:  # fmt: skip
        """Draw a curve that leaves and arrives vertically, or horizontally if ``sideways``. Its
        label stands in the middle."""
        (x1, y1), (x2, y2) = start, end
        if sideways:
            middle, tip = (x1 + x2) / 2, 7 if x2 > x1 else -7
            bend = f"C{middle:g} {y1:g} {middle:g} {y2:g} {x2 - tip:g} {y2:g}"
            head = (
                f"M{x2 - 1.4 * tip:g} {y2 - 5.5:g}L{x2:g} {y2:g}L{x2 - 1.4 * tip:g} {y2 + 5.5:g}z"
            )
        else:
            middle, tip = (y1 + y2) / 2, 7 if y2 > y1 else -7
            bend = f"C{x1:g} {middle:g} {x2:g} {middle:g} {x2:g} {y2 - tip:g}"
            head = (
                f"M{x2 - 5.5:g} {y2 - 1.4 * tip:g}L{x2:g} {y2:g}L{x2 + 5.5:g} {y2 - 1.4 * tip:g}z"
            )
        dash = " dash" if dashed else ""
        self._parts.append(
            f'<path class="way s-{tone}{dash}" d="M{x1:g} {y1:g}{bend}"/>'
            f'<path class="f-{tone}" d="{head}"/>'
        )
        if label:
            self.words((x1 + x2) / 2, (y1 + y2) / 2 + 5, label, "middle soft halo", 14)

    def line(
        self, points: Sequence[tuple[float, float]], style: str, dots: float = 0, tone: str = ""
    ) -> None:
        """Draw a line through ``points``, each marked by a dot of radius ``dots``."""
        path = "L".join(f"{x:.1f} {y:.1f}" for x, y in points)
        self._parts.append(f'<path class="way {style}" d="M{path}"/>')
        self._parts += [
            f'<circle class="f-{tone}" cx="{x:.1f}" cy="{y:.1f}" r="{dots:g}"/>'
            for x, y in points
            if dots
        ]

    def svg(self) -> str:
        """Return the file. It has a background, so that it is readable on any page."""
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {self.width} {self.height}" '
            f'width="{self.width}" height="{self.height}" role="img" aria-label="{self.title}">'
            f"<style>{_STYLE}</style>"
            f'<rect class="paper" width="{self.width}" height="{self.height}" rx="12"/>\n'
            + "\n".join(self._parts)
            + "\n</svg>\n"
        )


def _room(text: str, size: float, style: str) -> float:
    bold = "bold" in style or "title" in style
    return len(text) * size * (_MONO if "mono" in style else _BOLD if bold else _BROAD)
