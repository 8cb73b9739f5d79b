"""YAML for files of settings: plain values; tags, duplicate names and huge aliases are refused.

Scalars are read by YAML 1.2's core schema, so that ``5e-4`` is a number, and ``no``, ``1:30`` and
``2026-01-01`` are text.
"""

import re
from typing import Any

import yaml
from yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

_MOST_VALUES = 10_000
"""Most values of a file, with every alias expanded."""
_DEEPEST = 32
_TAG = "tag:yaml.org,2002:"
_SCHEMA = (
    ("null", r"~|null|Null|NULL|", ["~", "n", "N", ""]),
    ("bool", r"true|True|TRUE|false|False|FALSE", list("tTfF")),
    ("int", r"[-+]?[0-9]+", list("-+0123456789")),
    (
        "float",
        r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?"
        r"|[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)",
        list("-+.0123456789"),
    ),
    ("merge", r"<<", ["<"]),
)
_KNOWN = {_TAG + name for name in ("map", "seq", "str", *(name for name, *_ in _SCHEMA))}


class _Loader(yaml.SafeLoader):
    yaml_implicit_resolvers: dict[str, Any] = {}  # noqa: RUF012 (as the base class has it)


for _name, _pattern, _first in _SCHEMA:
    _Loader.add_implicit_resolver(_TAG + _name, re.compile(rf"^(?:{_pattern})$"), _first)


def _whole(loader: Any, node: Any) -> int:
    return int(loader.construct_scalar(node))


def _real(loader: Any, node: Any) -> float:
    return _number(loader.construct_scalar(node))


_Loader.add_constructor(_TAG + "int", _whole)
_Loader.add_constructor(_TAG + "float", _real)


def read_yaml(text: str) -> Any:
    """The value of a document; None of an empty one.

    Raises:
        ValueError: one line on what cannot be read, and where.
    """
    try:
        _check_depth(text)
        loader = _Loader(text)
        node = loader.get_single_node()
        if node is None:
            return None
        _check(node, {}, ())
        return loader.construct_document(node)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        raise ValueError(f"{error.problem or error.context}{_line(mark)}") from None
    except yaml.YAMLError as error:
        raise ValueError(" ".join(str(error).split())) from None


def _check_depth(text: str) -> None:
    """Refuse nesting that is too deep for recursive readers."""
    depth = 0
    for bracket in re.findall(r"[\[\]{}]", text):  # PyYAML itself takes minutes for thousands
        depth += 1 if bracket in "[{" else -1
        if depth > _DEEPEST:
            raise ValueError("it is nested too deeply")
    depth = 0
    for event in yaml.parse(text, _Loader):
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1
        if depth > _DEEPEST:
            raise ValueError(f"it is nested too deeply{_line(event.start_mark)}")


def _check(node: Node, sizes: dict[int, int], above: tuple[int, ...]) -> int:
    """The number of values under ``node``, with aliases expanded.

    Raises:
        ValueError: too many, a name that is given twice, a name that is no text, or a tag.
    """
    if id(node) in above:
        raise ValueError(f"an alias stands inside of what it names{_line(node.start_mark)}")
    if id(node) in sizes:
        return sizes[id(node)]
    if node.tag not in _KNOWN:
        raise ValueError(
            f"the tag {node.tag.replace(_TAG, '!!')}{_line(node.start_mark)} has no meaning here; "
            "write the plain value"
        )
    inside: list[Node] = []
    if isinstance(node, SequenceNode):
        inside = node.value
    elif isinstance(node, MappingNode):
        inside = [child for pair in node.value for child in pair]
        _check_names([name for name, _ in node.value])
    total = 1
    for child in inside:
        total += _check(child, sizes, (*above, id(node)))
        if total > _MOST_VALUES:
            raise ValueError(f"with every alias written out it has more than {_MOST_VALUES} values")
    sizes[id(node)] = total
    return total


def _check_names(names: list[Node]) -> None:
    seen = set[str]()
    for name in names:
        if not isinstance(name, ScalarNode) or name.tag not in (_TAG + "str", _TAG + "merge"):
            raise ValueError(f"a name must be text{_line(name.start_mark)}; put it in quotes")
        if name.value in seen:
            raise ValueError(f"{name.value} is given twice{_line(name.start_mark)}; write it once")
        seen.add(name.value)


def _number(text: str) -> float:
    return float(re.sub(r"\.(?=[in])", "", text.lower()))


def _line(mark: yaml.Mark | None) -> str:
    return "" if mark is None else f", line {mark.line + 1}"
