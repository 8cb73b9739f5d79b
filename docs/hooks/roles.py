"""Docstrings say ``:class:`Name```; the site is Markdown, where that is ```Name```."""

import re
from typing import Any

import griffe

ROLE = re.compile(r":(?:mod|class|func|meth|data|attr):`([^`]+)`")


class Roles(griffe.Extension):
    """Rewrites every docstring of a package once it is loaded."""

    def on_package(self, *, pkg: griffe.Module, **_: Any) -> None:
        _rewrite(pkg)


def _rewrite(item: Any) -> None:
    if item.docstring:
        item.docstring.value = ROLE.sub(r"`\1`", item.docstring.value)
    for member in item.members.values():
        if not member.is_alias:
            _rewrite(member)
