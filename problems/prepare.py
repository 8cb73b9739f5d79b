"""Prepares the problems of a run: a stream for training and a set for evaluation."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Literal

from annotated_types import Interval

from coterie.datatypes import Problem, UserError, Validated
from coterie.problems.files import Columns
from coterie.problems.hub import ELSEWHERE, Purpose, known_overlap
from coterie.problems.opening import open_source
from coterie.problems.source import ProblemSet, ProblemSource
from coterie.problems.split import contaminated_keys, hold_out, sample
from coterie.problems.stream import ProblemStream

_Count = Annotated[int, Interval(ge=1, lt=2**63)]


@dataclass(frozen=True)
class ProblemSettings(Validated):
    """Training and evaluation problems."""

    train: str = "chains"
    """Training problems: chains, chains?mix=1,0,0, recall, reasoning-gym:TASK?option=value, a
    JSONL, JSON, Parquet, CSV or TSV file, a known data set (gsm8k, math, ...),
    hub:OWNER/NAME?config=main&split=train."""
    eval: tuple[str, ...] = ()
    """Evaluation problems, one set or several, named as for --problems.train; default: the test
    split of a known data set, other problems of a generator, problems held out of a file."""
    held_out: _Count | None = None
    """Number of evaluation problems of each set; default: the whole of a separate evaluation set,
    512 of a generator or of a set that also trains."""
    limit: _Count | None = None
    """Train on a seeded choice of at most this many problems; default: all."""
    epoch_size: _Count | None = None
    """Problems in an epoch, the unit of schedules; default: one pass of a finite set, 1024 of a
    generator."""
    question_column: str | None = None
    """Column of the question, or several joined by +; default: detected."""
    answer_column: str | None = None
    """Column of the answer; default: detected."""
    answer_kind: Literal["math", "number", "list", "text", "qa", "judged"] | None = None
    """How answers of files and hub data sets are compared; default: detected."""
    answers: Literal["any", "all"] | None = None
    """What a list of answers means: any one is right, or all are wanted; default: what the data set
    says."""
    ignore_columns: tuple[str, ...] = ()
    """Columns that are left out of the question."""
    choice_seed: Annotated[int, Interval(gt=-(2**63), lt=2**63)] = 0
    """Seed of the order of options, for data sets that list the right one first (GPQA)."""
    decontaminate: bool = False
    """Drop training problems that share an id or 13 consecutive words with an evaluation problem.
    Data sets that are known to overlap are always treated so."""


@dataclass(frozen=True)
class PreparedProblems:
    """Training and evaluation problems without a common question."""

    train: ProblemStream
    """Starts at cursor 0."""
    evaluation: tuple[Problem, ...]
    """Problems of all sets. Their canonical forms differ from all of ``train``, and within a
    set."""
    fingerprints: dict[str, str]
    """SHA-256 of the sources for the log, under ``train`` and ``eval`` (``eval NAME`` for several
    sets) or under a flag."""
    removed: int | None
    """Rows that were removed from a finite training source because of evaluation; None for a
    generator."""
    worked: Mapping[str, ProblemStream] = field(default_factory=dict)
    """Role -> problems whose solutions it imitates before training; none is for evaluation."""
    notes: tuple[str, ...] = ()
    """Sentences about interpretations of data sets that are not obvious."""


def prepare(settings: ProblemSettings, seed: int = 0) -> PreparedProblems:
    """Open the sources, hold out evaluation problems, and apply the limit.

    Args:
        settings: the problem settings.
        seed: seed of generators and of all choices of problems.

    Raises:
        UserError: a source cannot be read, or no problem is left.
    """
    for text in settings.eval:
        # Fail before any download.
        if text in ELSEWHERE:
            raise UserError(ELSEWHERE[text])
    columns = columns_of(settings)
    train = _open(settings.train, columns, "train", seed, settings)
    fingerprints = {"train": train.fingerprint}
    notes = dict.fromkeys(_notes(train))
    evaluation: dict[str, Problem] = {}
    exclude: frozenset[str] = frozenset()
    for text in settings.eval or (settings.train,):
        source = _open(text, columns, "eval", seed, settings)
        notes |= dict.fromkeys(_notes(source))
        problems, forms = hold_out(source, train, settings.held_out, seed)
        exclude |= forms
        # Related sets can state a common problem in different words.
        if settings.decontaminate or known_overlap(settings.train, text):
            exclude |= contaminated_keys(train, problems)
        for problem in problems:
            if evaluation.get(problem.id, problem).question != problem.question:
                raise UserError(
                    f"--problems.eval: {text} and a set before it both call a problem "
                    f"{problem.id!r}; rename one of the files"
                )
        evaluation |= {problem.id: problem for problem in problems}
        fingerprints["eval" if len(settings.eval) < 2 else f"eval {text}"] = source.fingerprint
    full = ProblemStream(train, seed, exclude, settings.epoch_size)
    stream = full
    if settings.limit is not None:
        few = sample(train, settings.limit, seed, exclude)
        stream = ProblemStream(few, seed, epoch_size=settings.epoch_size)
    return PreparedProblems(
        stream,
        tuple(evaluation.values()),
        fingerprints,
        None if train.size is None or full.available is None else train.size - full.available,
        notes=tuple(notes),
    )


def columns_of(settings: ProblemSettings, *, worked: bool = False) -> Columns:
    """Return the settings of columns; ``worked``: also read worked solutions."""
    return Columns(
        question=settings.question_column,
        answer=settings.answer_column,
        kind=settings.answer_kind,
        answers=settings.answers,
        ignore=settings.ignore_columns,
        worked=worked,
    )


def _notes(source: ProblemSource) -> list[str]:
    notes = source.notes if isinstance(source, ProblemSet) else ()
    return [f"{source.name}: {'; '.join(notes)}."] if notes else []


def _open(
    text: str, columns: Columns, purpose: Purpose, seed: int, settings: ProblemSettings
) -> ProblemSource:
    return open_source(text, columns, purpose=purpose, seed=seed, choice_seed=settings.choice_seed)
