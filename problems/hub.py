"""Problems from the Hugging Face hub, or from a folder in its layout."""

import logging
from collections.abc import Iterator
from dataclasses import replace
from typing import Any, Literal

from problems.datasets import HubSet
from problems.files import Columns, choose_format, read_problems
from problems.finite import ProblemSet
from problems.formats import BY_NAME, META_COLUMNS, Format
from problems.split import part
from vocabulary import UserError

Purpose = Literal["train", "eval"]


def load_hub(
    hub_set: HubSet,
    name: str,
    purpose: Purpose,
    *,
    split: str | None = None,
    columns: Columns | None = None,
    order: Literal["shuffled", "given"] = "shuffled",
    choice_seed: int = 0,
) -> ProblemSet:
    """The training or the evaluation side of a data set; ``split`` names another split, whole.

    Raises :class:`UserError` when it cannot be reached, is gated, lacks the configuration or split,
    or holds a row that cannot be read.
    """
    columns = columns or Columns()
    chosen = split or getattr(hub_set, purpose)
    if chosen is None:
        other = "eval" if purpose == "train" else "train"
        raise UserError(
            f"{name} has no split to {'train' if purpose == 'train' else 'evaluate'} on; use it as "
            f"--problems.{other}, or name a split: {name}?split={getattr(hub_set, other)}"
        )
    # Columns that the user names replace the known format.
    form = BY_NAME[hub_set.form] if hub_set.form and not columns.named else None
    problems = read_problems(
        f"{name} ({chosen})",
        f"{name}-{chosen}",
        _rows(hub_set, name, chosen, form, columns),
        columns,
        form=form,
        choice_seed=choice_seed,
    )
    shared = hub_set.train == hub_set.eval and hub_set.train_percent is not None
    if shared and split is None:
        assert hub_set.train_percent is not None
        return part(problems, purpose, train_percent=hub_set.train_percent, order=order)
    return problems


def _rows(
    hub_set: HubSet, name: str, split: str, form: Format | None, columns: Columns
) -> Iterator[tuple[str, dict[str, Any]]]:
    for config in hub_set.configs:
        table = _load(hub_set, name, config, split)
        if form is None and len(table):
            form = choose_format(name, table[0], columns)
        if form is not None and set(form.columns) <= set(table.column_names):
            # Reading what is not used (solutions, images) would cost most of the time.
            used = {*form.columns, *form.optional, *META_COLUMNS}
            table = table.select_columns([c for c in table.column_names if c in used])
        place = f"{config} row" if config else "row"
        for number, row in enumerate(table, start=1):
            yield f"{place} {number}", dict(row)


def _load(hub_set: HubSet, name: str, config: str | None, split: str) -> Any:
    import datasets

    hub_log = logging.getLogger("huggingface_hub")
    level = hub_log.level
    hub_log.setLevel(logging.ERROR)  # its retries say less than the sentence below
    try:
        return datasets.load_dataset(
            hub_set.repo, name=config, split=split, revision=hub_set.revision
        )
    except Exception as error:
        raise UserError(_sentence(hub_set, name, config, split, error)) from error
    finally:
        hub_log.setLevel(level)


def _sentence(hub_set: HubSet, name: str, config: str | None, split: str, error: Exception) -> str:
    """What went wrong, and the way out."""
    reason = " ".join(str(error).split())[:300].rstrip(".")
    terms = f"https://huggingface.co/datasets/{hub_set.repo}"
    if hub_set.gated or "gated" in reason.lower():
        return (
            f"{name} could not be loaded ({reason}); it is gated: accept the terms at {terms} and "
            "log in with `hf auth login`"
        )
    if isinstance(error, ValueError) and ("Unknown split" in reason or "BuilderConfig" in reason):
        return (
            f"{name} has no configuration {config!r} with split {split!r} ({reason}); name others "
            f"as {name}?config=...&split=..."
        )
    if isinstance(error, (ConnectionError, OSError)) and not isinstance(error, FileNotFoundError):
        return (
            f"{name} could not be fetched from the hub ({reason}); check the network, or download "
            f"{terms} elsewhere and name a JSONL or Parquet file instead"
        )
    return f"{name} could not be loaded ({type(error).__name__}: {reason}); see {terms}"


def pinned(hub_set: HubSet, revision: str | None, config: str | None) -> HubSet:
    """The same set at another revision or with one configuration."""
    configs = (config,) if config else hub_set.configs
    return replace(hub_set, revision=revision or hub_set.revision, configs=configs)
