"""Figures as tables for the documents."""

from collections.abc import Mapping, Sequence
from typing import Any

_STEP = (
    ("rows", "rows", "{:,.0f}"),
    ("sampling, s", "sample_s", "{:.2f}"),
    ("sampled tokens/s", "sampled_tokens_s", "{:,.0f}"),
    ("GiB", "sample_gib", "{:.1f}"),
    ("of plan", "sample_of_plan", "{:.2f}"),
    ("update, s", "update_s", "{:.2f}"),
    ("learned tokens/s", "learned_tokens_s", "{:,.0f}"),
    ("GiB", "update_gib", "{:.1f}"),
    ("of plan", "update_of_plan", "{:.2f}"),
    ("share of bfloat16", "share_of_ceiling", "{:.0%}"),
    ("mismatch", "alice/mismatch/mean", "{:.4f}"),
)
_TRL = (
    ("rows", "rows", "{:,.0f}"),
    ("tokens", "tokens", "{:,.0f}"),
    ("here, s", "ours_s", "{:.2f}"),
    ("TRL, s", "trl_s", "{:.2f}"),
    ("TRL's time over ours", "times_as_fast", "{:.2f}"),
    ("here, GiB", "ours_gib", "{:.1f}"),
    ("TRL, GiB", "trl_gib", "{:.1f}"),
)
_SAMPLER = (
    ("rows", "fused_rows", "{:,.0f}"),
    ("fused weights, tokens/s", "fused_tokens_s", "{:,.0f}"),
    ("model's own pass, tokens/s", "forward_tokens_s", "{:,.0f}"),
)


def table(report: Mapping[str, Any]) -> str:
    """Build the tables of the figures available so far."""
    parts, lines = report["parts"], []
    machine = parts.get("machine", {})
    if "device" in machine:
        small = ", small shapes: a rehearsal" if report["small"] else ""
        lines.append(
            f"{machine['device']}, torch {machine['torch']}, transformers "
            f"{machine['transformers']}, TRL {machine['trl']}; a product of large matrices in "
            f"bfloat16: {machine['ceiling_tflops']:,.1f} TFLOP/s{small}."
        )
    if "passed" in (tests := parts.get("tests", {})):
        skipped = sum(tests["skipped"].values())
        lines.append(
            f"Tests on a GPU: {tests['passed']} passed, {len(tests['failed'])} failed, "
            f"{skipped} skipped."
        )
    for title, prefix, columns in (
        ("training step", "step-", _STEP),
        ("update beside TRL", "trl-", _TRL),
        ("sampler", "sampler-", _SAMPLER),
    ):
        named = {
            name.removeprefix(prefix): figures
            for name, figures in parts.items()
            if name.startswith(prefix) and "error" not in figures
        }
        if named:
            lines.append("\n".join(_rows(title, named, columns)))
    missing = [f"- {name}: {f['error']}" for name, f in parts.items() if "error" in f]
    lines += ["\n".join(missing)] if missing else []
    return "\n\n".join(lines) + "\n"


def _rows(
    title: str, named: Mapping[str, Mapping[str, Any]], columns: Sequence[tuple[str, str, str]]
) -> list[str]:
    head = [title, *(name for name, _, _ in columns)]
    rows = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    for name, figures in named.items():
        cells = [form.format(figures[key]) if key in figures else "" for _, key, form in columns]
        rows.append(f"| {name} | " + " | ".join(cells) + " |")
    return rows
