"""Plain data: what a line of a log can hold."""

import json
from typing import Any

import orjson


def as_unicode(value: Any) -> Any:
    """Plain data whose strings a file can hold: a lone surrogate, which a model can spell in
    JSON (``"\\ud800"``), becomes a question mark."""
    match value:
        case str():
            return value.encode("utf-8", "replace").decode()
        case dict():
            return {as_unicode(key): as_unicode(item) for key, item in value.items()}
        case list() | tuple():
            return [as_unicode(item) for item in value]
        case _:
            return value


def why_not_plain(value: Any) -> str:
    """What of ``value`` a log cannot hold as it is; empty if it is plain data."""
    try:
        # NaN, dates and dataclasses, which orjson writes as something else ...
        json.dumps(value, allow_nan=False)
        # ... and keys that are no strings and integers beyond 64 bits, which it refuses.
        orjson.dumps(as_unicode(value))
    except (TypeError, ValueError, RecursionError) as error:
        return str(error) or type(error).__name__
    return ""
