"""What Results, the log and the pages of the protocols say in numbers stands in the dated files
under ``research/``, which hold every measurement in full."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
MEASURED = "\n".join(
    page.read_text(encoding="utf-8") for page in sorted((ROOT / "research").glob("2026-*.md"))
)
# Decimals, and numbers with thousands: 1, 25 and 2026 may be anything.
NUMBER = re.compile(r"(?<![\w.])[-−+]?(?:\d*\.\d+|\d{1,3}(?:,\d{3})+)(?:e-?\d+)?(?![\w.]*\d)")
CODE = re.compile(r"```.*?```|`[^`\n]*`|arXiv:[\d.]+|<!-- table: .*?<!-- end of table -->", re.S)
# On pages of environments only what is measured, not what is set.
SECTIONS = {
    "corea-deferral.md": "Results on the tiny team",
    "eapo-consultation.md": "What a run shows",
}


def numbers(text: str) -> set[str]:
    return {number.replace("−", "-").replace("+", "") for number in NUMBER.findall(text)}


def measured_part(name: str) -> str:
    text = (ROOT / "docs" / name).read_text(encoding="utf-8")
    if name in SECTIONS:
        (text,) = re.findall(rf"^## {SECTIONS[name]}\n(.*?)(?=^## )", text, re.M | re.S)
    return CODE.sub("", text)


@pytest.mark.parametrize("name", ["evidence.md", "LOG.md", *SECTIONS])
def test_a_measured_number_stands_in_a_dated_file(name: str) -> None:
    said = numbers(measured_part(name))
    assert len(said) > 5
    assert sorted(said - numbers(MEASURED)) == []
