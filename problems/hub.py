"""Problems from the Hugging Face hub: known data sets by short name, and their loader."""

import logging
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from coterie.datatypes import UserError, user_path
from coterie.problems.column_formats import BY_NAME, Format
from coterie.problems.columns import META_COLUMNS, PASSAGES, Columns, is_about
from coterie.problems.files import choose_format, label_names, read_problems, with_labels
from coterie.problems.solutions import COLUMNS as SOLUTION_COLUMNS
from coterie.problems.source import ProblemSet
from coterie.problems.split import part


@dataclass(frozen=True)
class HubSet:
    """A data set on the hub."""

    repo: str
    """Id on the hub, or a local folder in the hub's layout."""
    form: str | None = None
    """Name of a :class:`coterie.problems.column_formats.Format`; None: the first row decides."""
    configs: tuple[str | None, ...] = (None,)
    """Configurations, which are read in sequence."""
    train: str | None = "train"
    """Split for training; None: the set is for evaluation only."""
    eval: str | None = "test"
    """Split for evaluation; equal to ``train`` if there is only one split."""
    train_percent: int | None = None
    """Percentage of a single split that trains; None: evaluation problems are held out of it."""
    gated: bool = False
    """Whether users must accept terms on the hub."""
    revision: str | None = None
    """Commit; None: the newest."""
    rows: int | None = None
    """Published number of rows of the split for evaluation; None: not known before it is read."""


_MATH_SUBJECTS = (
    "algebra", "counting_and_probability", "geometry", "intermediate_algebra", "number_theory",
    "prealgebra", "precalculus",
)  # fmt: skip

HUB_SETS: Mapping[str, HubSet] = {
    "gsm8k": HubSet("openai/gsm8k", "gsm8k", ("main",), rows=1319),
    "svamp": HubSet("ChilleD/SVAMP", "svamp", rows=300),
    "asdiv": HubSet("EleutherAI/asdiv", "asdiv", train="validation", eval="validation",
        train_percent=80, rows=2305),
    "math": HubSet("EleutherAI/hendrycks_math", "problem+solution", _MATH_SUBJECTS, rows=5000),
    # CoRe's MATH: 80:20 of all 12,500 problems, not the official split (arXiv:2601.21600).
    "math-8020": HubSet("qwedsacf/competition_math", "problem+solution", eval="train",
        train_percent=80, rows=12_500),
    "math500": HubSet("HuggingFaceH4/MATH-500", "problem+answer", train=None, rows=500),
    "aime-1983-2025": HubSet("TianHongZXY/aime-1983-2025", "problem+answer", train="test",
        train_percent=80, rows=963),
    "aime-1983-2024": HubSet("gneubig/aime-1983-2024", "Question+Answer", eval="train",
        train_percent=80, rows=933),
    "aime24": HubSet("math-ai/aime24", "problem+solution", train=None, rows=30),
    "aime25": HubSet("math-ai/aime25", "problem+answer", train=None, rows=30),
    "gpqa-main": HubSet("Idavidrein/gpqa", "gpqa", ("gpqa_main",), eval="train",
        train_percent=80, gated=True, rows=448),
    "gpqa-diamond": HubSet("Idavidrein/gpqa", "gpqa", ("gpqa_diamond",), train=None,
        eval="train", gated=True, rows=198),
    "gpqa-extended": HubSet("Idavidrein/gpqa", "gpqa", ("gpqa_extended",), eval="train",
        train_percent=80, gated=True, rows=546),
    "deepmath": HubSet("zwhe99/DeepMath-103K", "final_answer", eval="train"),
    "olympiadbench": HubSet("Hothan/OlympiadBench", "final_answer", ("OE_TO_maths_en_COMP",),
        train=None, eval="train", rows=674),
    "commonsenseqa": HubSet("tau/commonsense_qa", "commonsenseqa", eval="validation", rows=1221),
    "medmcqa": HubSet("openlifescienceai/medmcqa", "medmcqa", eval="validation", rows=4183),
    "dapo-17k": HubSet("BytedTsinghua-SIA/DAPO-Math-17k", "dapo", eval="train"),
    "dapo-17k-processed": HubSet("open-r1/DAPO-Math-17k-Processed", "prompt+solution", ("en",),
        eval="train"),
    "mmlu": HubSet("cais/mmlu", "mmlu", ("all",), train=None, rows=14_042),
    "hotpotqa": HubSet("hotpotqa/hotpot_qa", "hotpotqa", ("distractor",), eval="validation",
        rows=7405),
    "simpleqa": HubSet("basicv8vc/SimpleQA", "simpleqa", train=None, rows=4326),
    "humaneval": HubSet("openai/openai_humaneval", "humaneval", train=None, rows=164),
    "humanevalplus": HubSet("evalplus/humanevalplus", "humaneval", train=None, rows=164),
    "mbppplus": HubSet("evalplus/mbppplus", "mbppplus", train=None, rows=378),
    "hle": HubSet("cais/hle", "hle", train=None, gated=True, rows=2500),
}  # fmt: skip

ELSEWHERE: Mapping[str, str] = {
    "aimo2": (
        "aimo2 is a competition file: accept the rules at "
        "https://www.kaggle.com/competitions/ai-mathematical-olympiad-progress-prize-2, save "
        "reference.csv as JSONL with the columns id, problem, answer, and name that file in place "
        "of aimo2; or leave it out"
    ),
}
"""Sets that no loader may fetch -> what to do."""

# (training sets, evaluation sets with common problems by construction, the reason)
_AIME = ("aime-1983-2025", "aime-1983-2024")
_GPQA = ("gpqa-main", "gpqa-extended")
_DAPO = ("dapo-17k", "dapo-17k-processed")
_OVERLAPS = (
    (("math-8020",), ("math", "math500"), "math-8020 is made of all of MATH, test split included"),
    (_AIME, (*_AIME, "aime24", "aime25"), "all contests up to the last year stand in it"),
    (_GPQA, (*_GPQA, "gpqa-diamond"), "extended holds main, and main holds diamond"),
    (_DAPO, _DAPO, "both are the same problems"),
)


def known_overlap(train: str, evaluation: str) -> str | None:
    """Return the reason if two different sets are known to share problems, else None."""
    first, second = train.partition("?")[0], evaluation.partition("?")[0]
    for trains, measures, sentence in _OVERLAPS:
        if first != second and first in trains and second in measures:
            return sentence
    return None


Purpose = Literal["train", "eval"]


def load_hub(
    hub_set: HubSet,
    name: str,
    purpose: Purpose,
    *,
    split: str | None = None,
    columns: Columns | None = None,
    order: Literal["shuffled", "given"] = "shuffled",
) -> ProblemSet:
    """Load the training or the evaluation part of a data set.

    Args:
        hub_set: the data set.
        name: its name, for ids and error messages.
        purpose: the part.
        split: another split, taken whole.
        columns: settings of columns; named columns replace the known format.
        order: order in which an undivided set is divided: seeded, or its own.

    Raises:
        UserError: the set cannot be reached, is gated, lacks the configuration or split, or has an
            unreadable row.
    """
    columns = columns or Columns()
    chosen = split_of(hub_set, name, purpose, split)
    # Columns that the user names replace the known format.
    form = BY_NAME[hub_set.form] if hub_set.form and not columns.named else None
    problems = read_problems(
        f"{name} ({chosen})",
        f"{name}-{chosen}",
        _rows(hub_set, name, chosen, form, columns),
        columns,
        form=form,
    )
    percent = hub_set.train_percent
    if split is None and percent is not None and hub_set.train == hub_set.eval:
        return part(problems, purpose, train_percent=percent, order=order)
    return problems


def split_of(hub_set: HubSet, name: str, purpose: Purpose, split: str | None = None) -> str:
    """Return the split for a purpose: the user's ``split``, or that of the set.

    Raises:
        UserError: the set has no split for this purpose.
    """
    chosen = split or getattr(hub_set, purpose)
    if chosen is None:
        other = "eval" if purpose == "train" else "train"
        raise UserError(
            f"{name} has no split to {'train' if purpose == 'train' else 'evaluate'} on; use it as "
            f"--problems.{other}, or name a split: {name}?split={getattr(hub_set, other)}"
        )
    return chosen


def _rows(
    hub_set: HubSet, name: str, split: str, form: Format | None, columns: Columns
) -> Iterator[tuple[str, dict[str, Any]]]:
    declared = form is not None
    for config in hub_set.configs:
        table = _load(hub_set, name, config, split)
        names = label_names(table.features.to_dict())
        first: Mapping[str, Any] = {}
        if form is None and len(table):
            form = choose_format(name, with_labels(table[0], names), columns)
        if form is not None and set(form.columns) <= set(table.column_names):
            # Reading unused columns (solutions, images) would take most of the time.
            used = {*form.used, *PASSAGES, *META_COLUMNS, *columns.ignore}
            if not declared:
                # Other columns may belong to the question and are then refused by name.
                used |= {column for column in table.column_names if not is_about(column)}
                first = with_labels(table[0], names)  # whole, for the note on what is left out
            used |= {columns.where.column} if columns.where else set()
            used |= set(SOLUTION_COLUMNS) if columns.worked else set()
            table = table.select_columns([c for c in table.column_names if c in used])
        place = f"{config} row" if config else "row"
        for number, row in enumerate(table, start=1):
            row = with_labels(row, names)
            yield f"{place} {number}", row if number > 1 else {**first, **row}


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
    """The error message for a failure of loading, with the way out."""
    reason = " ".join(str(error).split())[:300].rstrip(".")
    terms = f"https://huggingface.co/datasets/{hub_set.repo}"
    if hub_set.gated or "gated" in reason.lower():
        return (
            f"{name} could not be loaded ({reason}); it is gated: accept the terms at {terms} and "
            "log in with `hf auth login`"
        )
    if isinstance(error, ValueError) and ("Unknown split" in reason or "BuilderConfig" in reason):
        lacking = f"configuration {config!r} with split {split!r}" if config else f"split {split!r}"
        only = None if config else re.search(r"one of \['([^']+)'\]$", reason)
        others = (
            f"name its only one, of which a part is held out: {name}?split={only[1]}"
            if only
            else f"name others as {name}?config=...&split=..."
        )
        return f"{name} has no {lacking} ({reason}); {others}"
    if "save_to_disk" in reason:
        return f"{name} was saved by save_to_disk; save it by to_parquet, and name that file"
    if user_path(hub_set.repo).is_dir():
        return (
            f"{name} could not be loaded ({type(error).__name__}: {reason}); name one of its files"
        )
    if isinstance(error, (ConnectionError, OSError)) and not isinstance(error, FileNotFoundError):
        return (
            f"{name} could not be fetched from the hub ({reason}); check the network, or download "
            f"{terms} elsewhere and name the file: --problems.train FILE.jsonl"
        )
    return f"{name} could not be loaded ({type(error).__name__}: {reason}); see {terms}"
