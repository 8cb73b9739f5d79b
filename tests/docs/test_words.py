"""How long the documents and their sentences are. ``python tests/docs/test_words.py`` prints it.

A word is a run of characters between blanks that has a letter or a digit. All of a file counts,
code blocks and tables too, but for tables that ``docs/hooks/tables.py`` writes: those are reference
made from the code, as ``docs/api`` is. ``research/`` is not counted.

A sentence ends at ``.``, ``!`` or ``?`` before a word that does not begin with a small letter, or
where its paragraph, list item or quotation ends. Code blocks, tables, headings, pictures and lines
of HTML hold none. A span of code is one word, a link counts by its text.
"""

import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
DOCS = [
    *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md")),
    *(page for page in sorted((ROOT / "docs").rglob("*.md")) if page.parent.name != "api"),
]
MOST_WORDS = 40_000
MOST_WORDS_OF_A_PAGE = 1_500
MOST_WORDS_OF = {"README.md": 900}
# Registers: each entry is read by itself.
REGISTERS = {"CHANGELOG.md", "docs/LOG.md"}
LONGEST_SENTENCE = 40
LONGEST_MEAN = 18.0

_GENERATED = re.compile(r"<!-- table: .+? -->.*?<!-- end of table -->", re.DOTALL)
_FENCED = re.compile(r"^ *(```+)[^`]*?^ *\1 *$", re.MULTILINE | re.DOTALL)
_COMMENT = re.compile(r"<!--.*?-->", re.DOTALL)
_PICTURE = re.compile(r"!\[[^\]]*\]\([^)]*\)")
_CODE = re.compile(r"(`+)(?!`).+?(?<!`)\1(?!`)", re.DOTALL)
_LINK = re.compile(r"\[([^\]]*)\]\([^)]*\)")
# A table's row, a heading, HTML, the line of an admonition.
_NO_SENTENCE = re.compile(r" *(\||#{1,6} |<|!!! |\?\?\? |---$)")
_ITEM = re.compile(r" *(?:[-*+]|\d+\.) +|> ?")
_END = re.compile(r".*[.!?][\"'”’)\]]*$")
_ABBREVIATIONS = {"e.g.", "i.e.", "al.", "vs.", "cf.", "eq.", "eqs.", "no.", "p."}


@dataclass(frozen=True)
class Sentence:
    """``words`` words that begin in line ``line`` of a page."""

    line: int
    words: int
    text: str


def count(text: str) -> int:
    """Words of a page or of a sentence."""
    return sum(any(map(str.isalnum, word)) for word in text.split())


def words_of(page: str) -> int:
    """Words of a page without its generated tables."""
    return count(_GENERATED.sub("", page))


def sentences(page: str) -> Iterator[Sentence]:
    """All sentences of a page of Markdown."""
    for blank in (_GENERATED, _FENCED, _COMMENT):
        page = blank.sub(lambda match: "\n" * match[0].count("\n"), page)
    block: list[tuple[int, str]] = []
    for number, line in enumerate([*page.split("\n"), ""], start=1):
        ends = not line.strip() or _NO_SENTENCE.match(line)
        if (ends or _ITEM.match(line)) and block:
            yield from _of_block(block)
            block = []
        if not ends:
            block.append((number, _ITEM.sub("", line, count=1) if _ITEM.match(line) else line))


def _of_block(block: list[tuple[int, str]]) -> Iterator[Sentence]:
    """Sentences of the numbered lines of one paragraph."""
    text = "\n".join(line for _, line in block)
    for pattern, plain in ((_PICTURE, ""), (_CODE, "Code"), (_LINK, r"\1")):
        text = pattern.sub(
            lambda match, plain=plain: match.expand(plain) + "\n" * _lost(match, plain), text
        )
    text = text.replace("**", "").replace("*", "")
    words = [
        (block[min(place, len(block) - 1)][0], word)
        for place, line in enumerate(text.split("\n"))
        for word in line.split()
    ]
    begin = 0
    for place, (_, word) in enumerate(words):
        following = words[place + 1][1] if place + 1 < len(words) else "A"
        if (_ends(word) and not following[0].islower()) or place + 1 == len(words):
            shown = " ".join(word for _, word in words[begin : place + 1])
            if count(shown):
                yield Sentence(words[begin][0], count(shown), shown)
            begin = place + 1


def _lost(match: re.Match[str], plain: str) -> int:
    """Line ends that a replacement would swallow."""
    return match[0].count("\n") - match.expand(plain).count("\n")


def _ends(word: str) -> bool:
    """Not an ellipsis, and no abbreviation."""
    return (
        bool(_END.match(word) and word.strip("."))
        and word.lower().lstrip("(") not in _ABBREVIATIONS
    )


def name_of(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


def faults(page: Path) -> list[str]:
    """What is too long on a page, with its line."""
    name, text = name_of(page), page.read_text(encoding="utf-8")
    read = list(sentences(text))
    most = MOST_WORDS_OF.get(name, MOST_WORDS_OF_A_PAGE)
    listed = [
        f"{name}:{sentence.line}: {sentence.words} words, at most {LONGEST_SENTENCE}: "
        f"{sentence.text}"
        for sentence in read
        if sentence.words > LONGEST_SENTENCE
    ]
    if name not in REGISTERS and words_of(text) > most:
        listed.append(f"{name}: {words_of(text):,} words, at most {most:,}")
    if read and _mean(read) > LONGEST_MEAN:
        longest = sorted(read, key=lambda sentence: -sentence.words)[:3]
        listed.append(
            f"{name}: the mean sentence has {_mean(read):.1f} words, at most {LONGEST_MEAN:g}; "
            + "; ".join(f"line {s.line} has {s.words}: {s.text}" for s in longest)
        )
    return listed


def _mean(read: list[Sentence]) -> float:
    return sum(sentence.words for sentence in read) / len(read)


@pytest.mark.parametrize("page", DOCS, ids=name_of)
def test_a_page_is_read_once(page: Path) -> None:
    assert faults(page) == []


def test_all_documents_together_are_a_short_book() -> None:
    pages = [page.read_text(encoding="utf-8") for page in DOCS]
    assert sum(map(words_of, pages)) <= MOST_WORDS
    assert _mean([sentence for page in pages for sentence in sentences(page)]) <= LONGEST_MEAN


def test_pages_that_are_named_exist() -> None:
    assert {*REGISTERS, *MOST_WORDS_OF} <= {name_of(page) for page in DOCS}


PAGE = """# A heading. No sentence

Two words. Then `one --span` of [three more](x.md#y.z)
words (e.g. This)! Is it .5? Yes.

| a. b | c |
![A picture. Of it.](p.svg)
- **Lead.** An item without an end
  on two lines
- `x` ends. `y` begins:

```python
# Code. Has none.
```

1. He said "So." And ... on.
<!-- table: t -->
many words. In here.
<!-- end of table -->
"""


def test_how_sentences_are_cut_and_counted() -> None:
    assert [(s.line, s.words) for s in sentences(PAGE)] == [
        (3, 2),  # Two words.
        (3, 8),  # Then Code of three more words (e.g. This)!
        (4, 3),  # Is it .5?
        (4, 1),  # Yes.
        (8, 1),  # Lead.
        (8, 8),  # An item without an end on two lines
        (10, 2),  # Code ends.
        (10, 2),  # Code begins:
        (16, 3),  # He said "So."
        (16, 2),  # And ... on.
    ]


def test_how_words_are_counted() -> None:
    # heading: A heading No sentence = 4; prose: Two words Then `one --span` of [three
    # more](x.md#y.z) = 8, words (e.g. This)! Is it .5? Yes. = 7; row: a b c = 3; picture: ![A
    # picture Of it.](p.svg) = 4; items: Lead An item without an end on two lines = 9, `x` ends `y`
    # begins = 4; block: ```python Code Has none = 4; list: 1. He said So And on = 6.
    assert words_of(PAGE) == 4 + 8 + 7 + 3 + 4 + 9 + 4 + 4 + 6


def test_what_is_too_long_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.modules[__name__], "ROOT", tmp_path)
    page = tmp_path / "page.md"
    page.write_text("A b.\n\n" + "Word " * 41 + "\n\n" + "c " * 1500, encoding="utf-8")
    first, second, size, mean = faults(page)
    assert first.startswith("page.md:3: 41 words, at most 40: Word Word")
    assert second.startswith("page.md:5: 1500 words")
    assert size == "page.md: 1,543 words, at most 1,500"
    assert mean.startswith("page.md: the mean sentence has 514.3 words")  # (2 + 41 + 1500) / 3
    page.write_text("Short. " * 1500, encoding="utf-8")
    assert faults(page) == []


def main() -> None:
    """Words and mean sentence of each page that is named, or of all; and what is too long."""
    chosen = [Path(name).resolve() for name in sys.argv[1:]] or DOCS
    for page in chosen:
        text = page.read_text(encoding="utf-8")
        read = list(sentences(text)) or [Sentence(0, 0, "")]
        longest = max(sentence.words for sentence in read)
        print(f"{name_of(page):40}{words_of(text):7,} words{_mean(read):6.1f} mean{longest:5} max")
        if sys.argv[1:]:
            print(*faults(page), sep="\n")
    print(f"{sum(words_of(page.read_text('utf-8')) for page in chosen):,} words")


if __name__ == "__main__":
    main()
