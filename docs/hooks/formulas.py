"""Convert ``math`` blocks to MathML, which browsers draw without scripts, fonts or a network."""

from typing import Any

from latex2mathml.converter import convert


def on_config(config: Any) -> Any:
    fences = config.mdx_configs.setdefault("pymdownx.superfences", {})
    fences["custom_fences"] = [{"name": "math", "class": "math", "format": formula}]
    return config


def formula(source: str, *_: Any, **__: Any) -> str:
    """Return the HTML of a block; each paragraph of it is one formula."""
    parts = [part for part in source.strip().split("\n\n") if part.strip()]
    return "".join(f'<div class="formula">{convert(part, display="block")}</div>' for part in parts)
