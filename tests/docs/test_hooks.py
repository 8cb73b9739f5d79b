"""What the site does to the pages: tables, links, formulas, names."""

from collections.abc import Callable
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

Hook = Callable[[str], ModuleType]


PAGE = "# T\n<!-- table: algo-flags -->\nold\n<!-- end of table -->\nrest <!-- table: x -->\n"


def test_a_table_is_written_between_its_marks_and_nowhere_else(hook: Hook) -> None:
    tables = hook("tables")
    page = tables.filled(PAGE)
    head, _, rest = page.partition("<!-- table: algo-flags -->\n")
    assert head == "# T\n"
    assert rest.startswith("\n| flag | value |  |\n| --- | --- | --- |\n| `--algo.")
    assert rest.endswith(" |\n\n<!-- end of table -->\nrest <!-- table: x -->\n")
    assert "old" not in page
    assert tables.filled(page) == page


def test_the_script_writes_the_pages_that_have_changed(
    hook: Hook, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    tables = hook("tables")
    docs = tmp_path / "docs"
    docs.mkdir()
    monkeypatch.setattr(tables, "PAGES", docs)
    (docs / "stale.md").write_text(PAGE, encoding="utf-8")
    (docs / "fresh.md").write_text(tables.filled(PAGE), encoding="utf-8")
    (docs / "plain.md").write_text("nothing", encoding="utf-8")
    tables.main()
    assert capsys.readouterr().out == f"{Path('docs', 'stale.md')}\n"
    assert (docs / "stale.md").read_text("utf-8") == (docs / "fresh.md").read_text("utf-8")


@pytest.mark.parametrize(
    ("page", "link", "there"),
    [
        ("answers.md", "problems.md#held-out", "problems.md#held-out"),
        ("answers.md", "../README.md", "index.md"),
        ("index.md", "docs/report.md", "report.md"),
        ("index.md", "CONTRIBUTING.md", "contributing.md"),
        ("algorithms/gspo.md", "../papers.md", "../papers.md"),
        ("algorithms/gspo.md", "../../envs/solo.py", "../source/envs/solo.md"),
        ("new-environments.md", "../examples/debate", "source/examples/debate.md"),
    ],
)
def test_links_of_the_repository_lead_within_the_site(
    hook: Hook, page: str, link: str, there: str
) -> None:
    shown = SimpleNamespace(file=SimpleNamespace(src_uri=page))
    text = hook("outside").on_page_markdown(f"a [b]({link}) c", shown, None, None)
    assert text == f"a [b]({there}) c"


@pytest.mark.parametrize(
    "text",
    [
        "[b](https://example.org/x.md)",
        "[b](#here)",
        "```python\nx[0](../README.md)\n```\n",
        "````text\n```\n[b](../README.md)\n```\n````\n",
    ],
)
def test_what_is_no_link_of_the_repository_is_left_alone(hook: Hook, text: str) -> None:
    outside = hook("outside")
    shown = SimpleNamespace(file=SimpleNamespace(src_uri="answers.md"))
    assert outside.on_page_markdown(text, shown, None, None) == text


class Files(list[Any]):
    """As much of mkdocs' collection as the hook uses."""

    def documentation_pages(self) -> list[Any]:
        return list(self)


def test_every_source_that_a_page_links_to_is_a_page(
    hook: Hook, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    outside = hook("outside")
    monkeypatch.setattr(outside, "ROOT", tmp_path)
    (tmp_path / "pkg").mkdir()
    (tmp_path / "pkg" / "b.py").write_text("z = 3\n")
    (tmp_path / "pkg" / "a.toml").write_text("x = 1\n")
    (tmp_path / "one.py").write_text("y = 2\n")
    for origin in outside.PAGES:
        (tmp_path / origin).write_text("[one](one.py#L1) [lost](lost.py)")
    files = Files([SimpleNamespace(src_uri="x.md", content_string="[p](../pkg) [r](../README.md)")])
    pages = {file.src_uri: file.content_string for file in outside.on_files(files, None)}
    assert sorted(pages) == [
        *("changes.md", "contributing.md", "index.md"),
        *("source/one.md", "source/pkg.md", "x.md"),
    ]
    assert pages["source/one.md"].endswith("# one.py\n\n````python\ny = 2\n````\n")
    assert pages["source/pkg.md"].index("## pkg/a.toml") < pages["source/pkg.md"].index("## pkg/b")
    # A page of source has no links.
    shown = SimpleNamespace(file=SimpleNamespace(src_uri="source/pkg.md"))
    assert outside.on_page_markdown("[a](b.md)", shown, None, None) == "[a](b.md)"


def test_every_formula_of_a_block_is_a_paragraph(hook: Hook) -> None:
    formulas = hook("formulas")
    html = formulas.formula("\nx^2\n\n\n\ny\n", "math", "math", {}, None)
    assert html == '<div class="formula"><block>x^2</div><div class="formula"><block>y</div>'
    config = formulas.on_config(SimpleNamespace(mdx_configs={}))
    (fence,) = config.mdx_configs["pymdownx.superfences"]["custom_fences"]
    assert (fence["name"], fence["format"]) == ("math", formulas.formula)


def item(text: str = "", *, module: bool = False, alias: bool = False, **members: Any) -> Any:
    docstring = SimpleNamespace(value=text) if text else None
    return SimpleNamespace(
        docstring=docstring, is_module=module, is_alias=alias, members=members, exports=["x"]
    )


def test_names_stand_where_they_are_defined_and_roles_become_code(hook: Hook) -> None:
    method = item("See :meth:`Other.check`.")
    cls = item("A :class:`Thing`, not `:this:`.", method=method)
    elsewhere = item("Of :func:`another` package.", alias=True)
    package = item("", module=True, cls=cls, elsewhere=elsewhere)
    hook("names").OnePlace().on_package(pkg=package)
    assert package.exports == []
    assert cls.docstring.value == "A `Thing`, not `:this:`."
    assert cls.exports == ["x"]
    assert method.docstring.value == "See `Other.check`."
    assert elsewhere.docstring.value == "Of :func:`another` package."
