"""The API pages: each name once, in the module that defines it, and docstrings in Markdown.

Docstrings say ``:class:`Name```, which Markdown knows as ```Name```.
"""

import re
from typing import Any

import griffe

ROLE = re.compile(r":(?:mod|class|func|meth|data|attr):`([^`]+)`")


class OnePlace(griffe.Extension):
    """Edit every package once it is loaded."""

    def on_package(self, *, pkg: griffe.Module, **_: Any) -> None:
        _rewrite(pkg)


def _rewrite(item: Any) -> None:
    if item.is_module:
        # What a package exports from its modules is shown there.
        item.exports = []
    if item.docstring:
        item.docstring.value = ROLE.sub(r"`\1`", item.docstring.value)
    for member in item.members.values():
        if not member.is_alias:
            _rewrite(member)
