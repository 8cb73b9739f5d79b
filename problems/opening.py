"""Opens the source of problems that a text such as ``chains?max_length=4`` names.

::

    chains                                chains?mix=1,0,0&max_length=4
    recall                                recall?named=0.5&unknown=0
    reasoning-gym:gcd                     reasoning-gym:chain_sum?min_terms=2&max_terms=4
    my/problems.jsonl                     my/problems.parquet?question=task&answer=result
    my/problems.jsonl?where=level:1|2     rows whose column holds one of these values
    my/problems.jsonl?question=text+task  a question of two columns
    my/problems.jsonl?ignore=hint+image   columns that are left out
    svamp                                 math500?revision=0a1b2c3
    hub:owner/name?config=main&split=train&question=task&answer=result
"""

import dataclasses
import json
import os
import re
from collections.abc import Callable, Mapping
from pathlib import PurePath
from typing import Any, Literal

from coterie.datatypes import (
    UserError,
    check_fields,
    derive_seed,
    list_names,
    read_options,
    suggest,
    user_path,
)
from coterie.problems.chains import ChainSettings, ChainSource
from coterie.problems.columns import Columns
from coterie.problems.files import SUFFIXES, load_file
from coterie.problems.gym import GymSource
from coterie.problems.hub import ELSEWHERE, HUB_SETS, HubSet, Purpose, load_hub, split_of
from coterie.problems.local_copies import find_copy, load_known
from coterie.problems.recall import RecallSettings, RecallSource
from coterie.problems.source import ProblemSource
from coterie.problems.where import read_where

_GENERATORS: Mapping[str, tuple[Callable[[Any], ProblemSource], type]] = {
    "chains": (ChainSource, ChainSettings),
    "recall": (RecallSource, RecallSettings),
}
_GYM = "reasoning-gym:"
_HUB = "hub:"
_REPO = re.compile(r"[\w.-]+/[\w.-]+", re.ASCII)
_FILE_OPTIONS = ("question", "answer", "ignore", "where")
_HUB_OPTIONS = ("split", "config", "revision", "order", *_FILE_OPTIONS)


def open_source(
    text: str,
    columns: Columns | None = None,
    *,
    purpose: Purpose = "train",
    seed: int = 0,
) -> ProblemSource:
    """Open the source that ``text`` names (grammar above), with its data.

    Args:
        text: a source with its options.
        columns: settings of a data set's columns.
        purpose: selects the split of a known data set, and different random streams of a generator
            for training and evaluation.
        seed: seed of a generator, unless ``text`` has one.

    Raises:
        UserError: the source is unknown or unreadable.
    """
    columns = columns or Columns()
    if not text.strip():
        raise UserError("no problems are named; try chains, gsm8k or a file")
    if is_file(text):
        return load_file(text, columns)
    head, options = read_options(text)
    if is_generator(head):
        if dataclasses.replace(columns, worked=False, choice_seed=0) != Columns():
            raise UserError(f"{text} generates its problems; leave out the options about columns")
        stream = seed if purpose == "train" else derive_seed(seed, "evaluation problems")
        if head in _GENERATORS:
            source, kind = _GENERATORS[head]
            return source(_generator_settings(kind, head, options, stream))
        own = {name: _value(value) for name, value in options.items() if name != "seed"}
        own_seed = _parsed(head, "seed", options.get("seed", str(stream)), int)
        return GymSource(head[len(_GYM) :], own, seed=own_seed)
    if head in ELSEWHERE:
        raise UserError(ELSEWHERE[head])
    if head in HUB_SETS:
        return _open_hub(HUB_SETS[head], head, options, columns, purpose)
    if head.startswith(_HUB):
        repo = head[len(_HUB) :]
        if not _REPO.fullmatch(repo) and not _is_folder(repo):
            raise UserError(f"{text!r}: write hub:OWNER/NAME, such as hub:openai/gsm8k")
        hub_set = HubSet(os.path.expanduser(repo))
        return _open_hub(hub_set, head, options, columns, purpose)
    if is_path(head):
        _known(text, options, _FILE_OPTIONS)
        return load_file(head, _columns(options, columns))
    names = [*_GENERATORS, *HUB_SETS, *ELSEWHERE]
    raise UserError(
        f"unknown problems {text!r}; {suggest(head, names)}; or reasoning-gym:TASK, a file that "
        f"ends in {list_names(SUFFIXES)}, hub:OWNER/NAME"
    )


def is_file(text: str) -> bool:
    """Whether the whole text is a file's name; a generator's options may be too long for one."""
    try:
        return user_path(text).is_file()
    except UserError:
        return False


def names_file(text: str) -> bool:
    """Whether ``text`` names a file, perhaps with options."""
    return is_file(text) or is_file(text.partition("?")[0])


def is_local(text: str) -> bool:
    """Whether the whole text is the name of a file, or of a folder behind ``hub:``."""
    return is_file(text) or (text.startswith(_HUB) and _is_folder(text[len(_HUB) :]))


def has_suffix(text: str) -> bool:
    """Whether ``text`` ends like the name of a file of problems."""
    return PurePath(text).suffix.lower() in SUFFIXES


def is_path(head: str) -> bool:
    """Whether a source without its options is written like a path, or exists as one."""
    path = user_path(head)
    return has_suffix(head) or "/" in head or "\\" in head or path.exists()


def is_generator(head: str) -> bool:
    """Whether a source without its options is a generator."""
    return head in _GENERATORS or head.startswith(_GYM)


def is_known(head: str) -> bool:
    """Whether ``head`` is written like a source without options; a file need not exist."""
    named = is_generator(head) or head in HUB_SETS or head in ELSEWHERE or head.startswith(_HUB)
    return named or has_suffix(head) or is_file(head)


def trains_on(text: str) -> bool:
    """Whether ``text`` names a known data set with the same problems for training and
    evaluation."""
    if is_file(text):
        return False
    head, options = read_options(text)
    hub_set = HUB_SETS.get(head)
    if hub_set is None or "split" in options:
        return False
    return hub_set.train == hub_set.eval and hub_set.train_percent is None


def check_source(text: str) -> None:
    """Check a name and its options without a download.

    Raises:
        UserError: the source is unknown.
    """
    head, options = ("", {}) if is_file(text) else read_options(text)
    if head in HUB_SETS or (head.startswith(_HUB) and _REPO.fullmatch(head[len(_HUB) :])):
        _known(head, options, _HUB_OPTIONS)
    else:
        open_source(text, purpose="eval")


def is_here(text: str, purpose: Purpose) -> bool:
    """Whether a source can be opened without a download and without a file that is elsewhere.

    Raises:
        UserError: a data set of the hub has no such option, or no split for the purpose.
    """
    head, options = (text, {}) if is_local(text) else read_options(text)
    if is_local(head):
        return True
    if head not in HUB_SETS and not head.startswith(_HUB):
        return not is_path(head) or user_path(head).exists()
    _known(head, options, _HUB_OPTIONS)
    hub_set = HUB_SETS.get(head, HubSet(""))
    split = split_of(hub_set, head, purpose, options.get("split"))
    return head in HUB_SETS and _may_be_copy(options) and bool(find_copy(hub_set, head, split))


def _open_hub(
    hub_set: HubSet,
    name: str,
    options: Mapping[str, str],
    columns: Columns,
    purpose: Purpose,
) -> ProblemSource:
    _known(name, options, _HUB_OPTIONS)
    order: Literal["shuffled", "given"] = "shuffled"
    if options.get("order", "shuffled") != "shuffled":
        if options["order"] != "given":
            raise UserError(f"{name}: order={options['order']} is unknown; use shuffled or given")
        if hub_set.train_percent is None or "split" in options:
            raise UserError(f"{name}: order is for a set that is divided 80:20 here; leave it out")
        order = "given"
    configs = (options["config"],) if options.get("config") else hub_set.configs
    revision = options.get("revision") or hub_set.revision
    known = name in HUB_SETS and _may_be_copy(options)
    return (load_known if known else load_hub)(
        dataclasses.replace(hub_set, configs=configs, revision=revision),
        name,
        purpose,
        split=options.get("split"),
        columns=_columns(options, columns),
        order=order,
    )


def _may_be_copy(options: Mapping[str, str]) -> bool:
    """Whether a copy on this disk serves, which has neither configurations nor revisions."""
    return not options.get("config") and not options.get("revision")


def _generator_settings(kind: type, source: str, options: Mapping[str, str], seed: int) -> Any:
    """Parse a generator's settings by the types of their defaults."""
    defaults = vars(kind())
    _known(source, options, list(defaults))
    values: dict[str, Any] = {"seed": seed}
    for name, text in options.items():
        values[name] = _parsed(source, name, text, type(defaults[name]))
    check_fields(kind, values, at=f"{source}: ")
    return kind(**values)


def _parsed(source: str, name: str, text: str, kind: type) -> Any:
    try:
        return tuple(map(float, text.split(","))) if kind is tuple else kind(text)
    except ValueError:
        wanted = {int: "a whole number", float: "a number", tuple: "numbers with commas"}[kind]
        raise UserError(f"{source}: {name}={text} must be {wanted}") from None


def _value(text: str) -> Any:
    """Parse JSON (numbers, true, lists), or comma-separated values as a tuple, else text."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        pass
    return tuple(_value(piece) for piece in text.split(",")) if "," in text else text


def _known(name: str, options: Mapping[str, str], known: tuple[str, ...] | list[str]) -> None:
    for option in options:
        if option not in known:
            raise UserError(f"{name} has no option {option!r}; {suggest(option, known)}")


def _columns(options: Mapping[str, str], columns: Columns) -> Columns:
    return dataclasses.replace(
        columns,
        question=options.get("question", columns.question),
        answer=options.get("answer", columns.answer),
        ignore=tuple(options["ignore"].split("+")) if "ignore" in options else columns.ignore,
        where=read_where(options["where"]) if "where" in options else None,
    )


def _is_folder(text: str) -> bool:
    return bool(text) and user_path(text).is_dir()
