"""Sections, tables and equations that are cited exist in the papers, whose outlines stand here."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from coterie.envs.core_teaching import presets as core
from coterie.envs.corea_deferral import presets as corea
from coterie.envs.eapo_consultation import presets as eapo
from coterie.envs.preset import Setting
from coterie.envs.sd_e2 import presets as sd_e2

ROOT = Path(__file__).resolve().parents[2]
# The folders of the repository, not an environment that lies beside them.
OURS = sorted(
    path
    for path in ROOT.iterdir()
    if path.is_dir() and path.name[0] != "." and not (path / "pyvenv.cfg").is_file()
)
CORE, COREA, EAPO = "2601.21600", "2603.03752", "2509.23730"


def outline(sections: str, tables: int, equations: int, figures: int) -> set[str]:
    """``section 4.1``, ``appendix A.2``, ``table 3``, ``eq. 5``, ``figure 1``."""
    names = {f"appendix {s}" if s[0].isalpha() else f"section {s}" for s in sections.split()}
    names |= {f"table {n}" for n in range(1, tables + 1)}
    names |= {f"figure {n}" for n in range(1, figures + 1)}
    return names | {f"eq. {n}" for n in range(1, equations + 1)}


OUTLINES = {
    # The first version.
    CORE: outline("1 2 3 4 4.1 4.2 5 5.1 5.2 6 6.1 7 8 A A.1 A.2 B C D E F F.1 F.2", 7, 22, 8)
    | {"algorithm 1", "theorem 4.1"},
    COREA: outline(
        "1 2 2.1 2.2 3 3.1 3.2 4 4.1 4.2 4.3 4.4 5 5.1 5.2 5.3 5.4 5.4.1 5.4.2 5.4.3 6 "
        "A A.1 A.2 B C D E F G",
        15,
        10,
        9,
    ),
    EAPO: outline("1 2 2.1 2.2 2.3 3 3.1 3.2 4 5 A B C D E F G H I J K L", 11, 0, 5),
}

KIND = {
    **dict.fromkeys(("equation", "equations", "eq.", "eqs."), "eq."),
    "appendices": "appendix",
}
PLACE = r"(?:[A-Z](?:\.\d+)?|\d+(?:\.\d+)*)"
CITED = re.compile(
    rf"\b(sections?|appendix|appendices|tables?|figures?|equations?|eqs?\.|algorithm|theorem) "
    rf"({PLACE}(?:(?:, | and | to ){PLACE}\b)*)(?!\w)"
)


def places(text: str) -> Iterator[str]:
    """Every place that ``text`` cites, in one spelling."""
    for kind, listed in CITED.findall(text):
        name = KIND.get(kind, kind.removesuffix("s"))
        for span in re.split(r", | and ", listed):
            first, _, last = span.partition(" to ")
            numbers = range(int(first), int(last) + 1) if last else (first,)
            yield from (f"{name} {number}" for number in numbers)


def citations() -> Iterator[tuple[str, str, str]]:
    """(where, paper, place): what follows a paper's number in the same sentence."""
    code = (path for folder in OURS for path in folder.glob("**/*.py"))
    files = [*code, *ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")]
    for path in files:
        name = path.relative_to(ROOT).as_posix()
        text = " ".join(path.read_text(encoding="utf-8").replace("#", " ").split())
        if name == "docs/papers.md" or name.startswith((".", "tests/docs/")):
            continue
        for match in re.finditer(r"(?:arXiv:|abs/)(\d{4}\.\d{5})", text):
            behind = re.split(r"[);]|\. |arXiv:", text[match.end() :][:160])[0]
            yield from ((name, match[1], place) for place in places(behind))


def test_what_the_code_cites_exists() -> None:
    cited = [citation for citation in citations() if citation[1] in OUTLINES]
    assert len(cited) > 25
    assert [citation for citation in cited if citation[2] not in OUTLINES[citation[1]]] == []


def test_what_the_index_of_papers_cites_exists() -> None:
    text = (ROOT / "docs" / "papers.md").read_text(encoding="utf-8")
    for paper in OUTLINES:
        (section,) = re.findall(rf"^## \w+, arXiv:{paper}\n(.*?)(?=^## )", text, re.M | re.S)
        rows = re.findall(r"^\| (?!paper|-)([^|]+) \|", section, re.M)
        cited = [place for row in rows for place in places(row)]
        assert len(cited) >= len(rows) > 10
        assert [place for place in cited if place not in OUTLINES[paper]] == []
        # What a paper numbers has a row, and so has every appendix.
        covered = {*cited, *(re.sub(r"^(appendix \w)\..*", r"\1", place) for place in cited)}
        numbered = {
            place
            for place in OUTLINES[paper]
            if re.fullmatch(r"(eq\.|table|figure) \d+|appendix [A-Z]", place)
        }
        assert numbered - covered == set()


@pytest.mark.parametrize(
    ("module", "paper"),
    [(core, CORE), (corea, COREA), (eapo, EAPO), (sd_e2, CORE)],
)
def test_where_presets_say_that_they_stand_exists(module: object, paper: str) -> None:
    cited = 0
    for preset in module.PRESETS.values():  # type: ignore[attr-defined]
        settings: list[Setting] = [*preset.settings.values()]
        settings += [value for by_path in preset.algos.values() for value in by_path.values()]
        for setting in settings:
            for text in (setting.source, setting.paper, setting.departs):
                for place in places(text):
                    cited += 1
                    assert place in OUTLINES[paper], setting
    for departure in module.DEPARTURES:  # type: ignore[attr-defined]
        for place in places(f"{departure.paper}; {departure.why}"):
            assert place in OUTLINES[paper], departure
    assert cited > 10
