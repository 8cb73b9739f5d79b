"""Rules of the house that no linter knows."""

import ast
import re
import tomllib
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[1]
ROOMS = [path for path in (ROOT / "coterie").iterdir() if path.is_symlink()]
PRODUCT = [
    *sorted(file for room in ROOMS for file in room.resolve().rglob("*.py")),
    *(ROOT / "coterie").glob("*.py"),
]
TOOLS = sorted(f for room in ("tools", "research") for f in (ROOT / room).rglob("*.py"))
TESTS = sorted((ROOT / "tests").rglob("*.py"))
MOST_LINES = 400
# Lines of Python by part: whoever adds some deletes others, and lowers the bound with them.
MOST_OF = {"core": 45_700, "extras": 14_000, "tools and research": 8_400, "tests": 47_650}
# Private names of other packages that have no public one: of argparse's parsers, of PettingZoo's
# AEC environments (their documented way), of torch.
OF_OTHERS = {
    *("_exit", "_actions", "_cdata", "_scaled_dot_product_flash_attention_for_cpu"),
    *("_cumulative_rewards",),
}


@cache
def tree_of(file: Path) -> ast.Module:
    return ast.parse(file.read_text(encoding="utf-8"))


def foreign_private_names(tree: ast.Module) -> set[str]:
    """Private names that a file imports, or reads from something, and neither defines nor assigns,
    to whatever object."""
    read: set[str] = set()
    bound: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            bound.add(node.name)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            bound.add(node.id)
        elif isinstance(node, ast.Attribute):
            (bound if isinstance(node.ctx, ast.Store) else read).add(node.attr)
        elif isinstance(node, ast.ImportFrom):
            read |= {alias.name for alias in node.names}
    private = {name for name in read if name.strip("_") and name[0] == "_" and name[:2] != "__"}
    return private - bound - OF_OTHERS


def test_what_counts_as_a_foreign_private_name() -> None:
    code = "from other import _helper, public\nclass A:\n    _own = 1\nA._own\nb._theirs\nb.__doc__"
    assert foreign_private_names(ast.parse(code)) == {"_helper", "_theirs"}


def test_no_private_name_is_used_from_outside_its_module() -> None:
    assert len(PRODUCT) > 200
    used = {file: foreign_private_names(tree_of(file)) for file in (*PRODUCT, *TOOLS)}
    assert {str(file): names for file, names in used.items() if names} == {}


# Words that name nothing: a noun says what it is.
NO_NOUNS = {"one", "found", "told", "how", "held", "some", "brought"}


def names_without_a_noun(tree: ast.Module) -> set[str]:
    """Names that a file gives to something, and that are such a word, with or without the suffix
    of a shape; of private names, every word of them counts."""
    given: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            given.add(node.name)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            given.add(node.id)
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            given.add(node.attr)
        elif isinstance(node, ast.arg | ast.keyword):
            given.add(node.arg or "")
        elif isinstance(node, ast.ExceptHandler | ast.MatchAs | ast.MatchStar):
            given.add(node.name or "")
        elif isinstance(node, ast.alias):
            given.add(node.asname or "")
    plain = {name: re.sub(r"_[A-Z0-9]+$", "", name) for name in given}
    words = {name: p.split("_") if p.startswith("_") else [p] for name, p in plain.items()}
    return {name for name, parts in words.items() if NO_NOUNS & {*parts}}


def test_which_names_lack_a_noun() -> None:
    code = (
        "def f(how, *, one_N):\n    _found = held = 1\n"
        "for one in x:\n    _as_told(some=one)\nwith a as brought: ..."
    )
    names = names_without_a_noun(ast.parse(code))
    assert names == {"how", "one_N", "_found", "held", "one", "some", "brought"}


def test_a_name_says_what_it_is() -> None:
    others = [f for room in ("docs", "examples", "tests") for f in (ROOT / room).rglob("*.py")]
    files = {*PRODUCT, *TOOLS, *others}
    assert len(files) > 500
    named = {str(file): names_without_a_noun(tree_of(file)) for file in files}
    assert {file: names for file, names in named.items() if names} == {}


def test_nothing_is_patched_in_the_product() -> None:
    files = {str(f) for f in (*PRODUCT, *TOOLS) if "unittest" in f.read_text(encoding="utf-8")}
    assert files == set()


def lines_of(file: Path) -> int:
    return len(file.read_text(encoding="utf-8").splitlines())


def test_no_file_is_longer_than_it_can_be_read() -> None:
    lengths = {str(file): lines_of(file) for file in (*PRODUCT, *TOOLS, *TESTS)}
    assert {file: lines for file, lines in lengths.items() if lines > MOST_LINES} == {}


def test_the_house_does_not_grow() -> None:
    extras = [file for file in PRODUCT if (ROOT / "extras") in file.parents]
    core = {*PRODUCT} - {*extras}
    parts = {"core": core, "extras": extras, "tools and research": TOOLS, "tests": TESTS}
    lines = {part: sum(map(lines_of, files)) for part, files in parts.items()}
    assert {part: count for part, count in lines.items() if count > MOST_OF[part]} == {}
    shrunk = {part: count for part, count in lines.items() if count < MOST_OF[part] - 1000}
    # The core alone is smaller and has fewer tests.
    assert not extras or shrunk == {}


def test_pyproject_names_the_rooms_that_there_are() -> None:
    """The links of ``coterie/`` are the set of rooms; tools that need names are given these."""
    rooms = {path.name for path in ROOMS if path.suffix != ".py"}
    scripts = {path.stem for path in ROOMS if path.suffix == ".py"}
    tool = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]
    banned = tool["ruff"]["lint"]["flake8-tidy-imports"]["banned-api"]
    assert set(banned) == rooms | scripts
    assert {name.partition("/")[2] for name in tool["pyright"]["include"] if "/" in name} >= rooms
    (core,) = (
        contract["source_modules"]
        for contract in tool["importlinter"]["contracts"]
        if contract["name"] == "core never imports extras"
    )
    of_core = (rooms - {"extras"}) | scripts | {"__main__"}
    assert set(core) == {f"coterie.{name}" for name in of_core}


def test_nobody_is_treated_by_where_it_was_written() -> None:
    files = {str(f) for f in PRODUCT if 'startswith("coterie' in f.read_text(encoding="utf-8")}
    assert files == set()


def test_an_environment_is_named_in_its_own_folder_alone() -> None:
    protocols = {"core-teaching", "corea-deferral", "eapo-consultation", "sd-e2"}
    protocols |= {name.replace("-", "_") for name in protocols}
    naming: set[str] = set()
    for file in PRODUCT:
        place = file.relative_to(ROOT)
        # Benchmarks and baselines of one paper each are an extra.
        own = place.parts[0] == "coterie" or place.parts[:2] == ("extras", "papers")
        if own or {*place.parts} & protocols:
            continue
        if any(
            isinstance(node, ast.Constant) and node.value in protocols
            for node in ast.walk(tree_of(file))
        ):
            naming.add(str(place))
    assert naming == {"envs/__init__.py"}
