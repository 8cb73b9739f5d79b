"""Pages of the site that are files outside ``docs/``, and links that lead there.

README, CONTRIBUTING and CHANGELOG are pages of their own. Source files that a page links to are
shown as pages under ``source/``, so that no link leaves the site and all of them are checked.
"""

import posixpath
import re
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File

ROOT = Path(__file__).resolve().parents[2]
PAGES = {
    "README.md": "index.md",
    "CONTRIBUTING.md": "contributing.md",
    "CHANGELOG.md": "changes.md",
}
ORIGINS = {page: origin for origin, page in PAGES.items()}
# A fenced block or the target of a link; what stands in a block is not a link.
LINK = re.compile(
    r"^(?P<fence>```+).*?^(?P=fence)\s*?$|(?<=\]\()(?P<path>[^)#:\s]+)(?=[)#])",
    re.MULTILINE | re.DOTALL,
)


def on_files(files: Any, config: Any) -> Any:
    """Add the pages from outside ``docs/``."""
    for origin, page in PAGES.items():
        text = (ROOT / origin).read_text(encoding="utf-8")
        files.append(File.generated(config, page, content=text))
    linked = {
        path
        for file in files.documentation_pages()
        for match in LINK.finditer(file.content_string)
        if match["path"] and (path := _target(file.src_uri, match["path"])) not in PAGES
        if not path.startswith("docs/") and (ROOT / path).exists()
    }
    for path in sorted(linked):
        files.append(File.generated(config, _page(path), content=_source(path)))
    return files


def on_page_markdown(markdown: str, page: Any, config: Any, files: Any) -> str:
    """Turn links of the repository into links of the site."""
    here = page.file.src_uri
    if here.startswith("source/"):
        return markdown

    def within_site(match: re.Match[str]) -> str:
        if not match["path"]:
            return match[0]
        return posixpath.relpath(_page(_target(here, match["path"])), posixpath.dirname(here))

    return LINK.sub(within_site, markdown)


def _target(page: str, link: str) -> str:
    """Return the path in the repository that ``link`` on ``page`` leads to."""
    origin = ORIGINS.get(page, f"docs/{page}")
    return posixpath.normpath(posixpath.join(posixpath.dirname(origin), link))


def _page(path: str) -> str:
    """Return the page of the site that shows a path of the repository."""
    if path in PAGES:
        return PAGES[path]
    if path.startswith("docs/"):
        return path.removeprefix("docs/")
    return f"source/{path.removesuffix('.py')}.md"


def _source(path: str) -> str:
    """Return a page that shows one file, or all files of a folder."""
    file = ROOT / path
    files = [file] if file.is_file() else sorted([*file.rglob("*.py"), *file.rglob("*.toml")])
    lines = ["---", "search: {exclude: true}", "---", f"# {path}", ""]
    for source in files:
        if source != file:
            lines += [f"## {source.relative_to(ROOT).as_posix()}", ""]
        language = source.suffix.removeprefix(".").replace("py", "python")
        lines += [f"````{language}", source.read_text(encoding="utf-8").rstrip(), "````", ""]
    return "\n".join(lines)
