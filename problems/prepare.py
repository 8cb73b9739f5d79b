"""Prepares the problems of a run: a stream for training and a set for evaluation."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Literal

import tyro
from annotated_types import Interval

from coterie.datatypes import Problem, UserError, Validated
from coterie.problems.columns import Columns
from coterie.problems.curriculum import Order
from coterie.problems.evaluation_sets import merge
from coterie.problems.hub import ELSEWHERE, Purpose, known_overlap
from coterie.problems.mixture import check_evaluation_sets, read_mixture, short_names
from coterie.problems.opening import open_source
from coterie.problems.source import ProblemSet, ProblemSource, with_distinct_ids
from coterie.problems.split import contaminated_keys, hold_out, sample
from coterie.problems.stream import ProblemStream

_Count = Annotated[int, Interval(ge=1, lt=2**63)]


@dataclass(frozen=True)
class ProblemSettings(Validated):
    """Training and evaluation problems."""

    train: Annotated[str | tuple[str, ...], tyro.conf.arg(metavar="STR [STR ...]")] = "chains"
    """Training problems, one source or several: chains, chains?mix=1,0,0, recall,
    reasoning-gym:TASK?option=value, a JSONL, JSON, Parquet, CSV or TSV file, a known data set
    (gsm8k, math, ...), hub:OWNER/NAME?config=main&split=train. Several may have weights, a.jsonl=2
    b.jsonl=1, in proportion to which an epoch is drawn; default: by their sizes."""
    eval: tuple[str, ...] = ()
    """Evaluation problems, one set or several, named as for --problems.train; default: for each
    training source the test split of a known data set, other problems of a generator, problems held
    out of a file."""
    held_out: _Count | None = None
    """Number of evaluation problems of each set. Default: the whole of a separate evaluation set,
    512 of a generator or of a set that also trains. For models that are not tiny: 8 to 512 in all,
    so that evaluations take a tenth of the run."""
    limit: _Count | None = None
    """Train on a seeded choice of at most this many problems of each source; default: all."""
    epoch_size: _Count | None = None
    """Problems in an epoch, the unit of schedules; default: one pass of every finite set, 1024 of
    every generator."""
    order: Order = "shuffled"
    """Order of the problems in an epoch. shuffled; easy-first: the largest mean reward so far
    first; adaptive: first groups with different rewards, then new problems, then groups that were
    all right or all wrong. The first epoch is always shuffled."""
    question_column: str | None = None
    """Column of the question, or several joined by +; default: detected."""
    answer_column: str | None = None
    """Column of the answer; default: detected."""
    answer_kind: Literal["math", "number", "list", "text", "qa", "judged"] | None = None
    """How answers of files and hub data sets are compared; default: detected."""
    answers: Literal["any", "all"] | None = None
    """How a list of gold answers is read: any one is right, or all are required. Default: as the
    data set defines it."""
    ignore_columns: tuple[str, ...] = ()
    """Columns that are left out of the question."""
    choice_seed: Annotated[int, Interval(gt=-(2**63), lt=2**63)] = 0
    """Seed of the order of options, for data sets that list the right one first (GPQA)."""
    decontaminate: bool = False
    """Drop training problems that share an id or 13 consecutive words with an evaluation problem.
    Data sets that are known to overlap are always treated so."""

    def check(self) -> None:
        read_mixture(self._texts)
        check_evaluation_sets(self.eval)

    @property
    def sources(self) -> tuple[str, ...]:
        """The training sources without their weights."""
        return read_mixture(self._texts)[0]

    @property
    def weights(self) -> tuple[float, ...] | None:
        """The weights of the training sources; None: there are none."""
        return read_mixture(self._texts)[1]

    @property
    def evaluated(self) -> tuple[str, ...]:
        """The sets that evaluation problems come from."""
        return self.eval or self.sources

    @property
    def _texts(self) -> tuple[str, ...]:
        return (self.train,) if isinstance(self.train, str) else self.train


@dataclass(frozen=True)
class PreparedProblems:
    """Training and evaluation problems without a common question."""

    train: ProblemStream
    """Starts at cursor 0."""
    evaluation: tuple[Problem, ...]
    """Problems of all sets, a common one once. Their canonical forms differ from all of ``train``,
    and within a set."""
    fingerprints: dict[str, str]
    """SHA-256 of the sources for the log, under ``train`` and ``eval`` (``train NAME`` and ``eval
    NAME`` where there are several) or under a flag."""
    worked: Mapping[str, ProblemStream] = field(default_factory=dict)
    """Role -> problems whose solutions it imitates before training; none is for evaluation."""
    sets_of_problem: tuple[tuple[str, ...], ...] = ()
    """The short names of the sets of each problem in ``evaluation``; empty for a single set."""
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
    _check_fetched(settings)
    trains = open_training(settings, seed)
    held_out = _hold_out(settings, trains, seed)
    exclude = held_out.forms | _contaminated(settings, trains, held_out)
    few = trains
    if settings.limit is not None:
        few = tuple(sample(train, settings.limit, seed, exclude) for train in trains)
    _check_finite(few, settings.order)
    stream = ProblemStream(
        few,
        seed,
        exclude,
        settings.epoch_size,
        weights=settings.weights,
        order=settings.order,
    )
    return PreparedProblems(
        stream,
        held_out.problems,
        _fingerprints("train", settings.sources, trains) | held_out.fingerprints,
        sets_of_problem=held_out.sets_of_problem,
        notes=tuple(dict.fromkeys((*_notes(trains), *held_out.notes))),
    )


@dataclass(frozen=True)
class HeldOut:
    """The problems of an evaluation."""

    problems: tuple[Problem, ...]
    """Those of all sets, a common one once."""
    sets_of_problem: tuple[tuple[str, ...], ...]
    """The short names of the sets of each problem; empty for a single set."""
    fingerprints: dict[str, str]
    """SHA-256 of the sets, under ``eval`` or ``eval NAME``."""
    notes: tuple[str, ...]
    """Sentences about interpretations of data sets that are not obvious."""
    by_set: Mapping[str, tuple[Problem, ...]]
    """Set, as the settings name it -> its problems."""
    forms: frozenset[str]
    """Canonical forms, which training excludes."""


def prepare_evaluation(settings: ProblemSettings, seed: int = 0) -> HeldOut:
    """The evaluation problems of :func:`prepare`, without what only training needs.

    Args:
        settings: the problem settings.
        seed: seed of generators and of all choices of problems.

    Raises:
        UserError: a source cannot be read. A training set may be gone, unless it is evaluated.
    """
    _check_fetched(settings)
    try:
        trains = open_training(settings, seed)
    except UserError:
        if not settings.eval or set(settings.eval) & set(settings.sources):
            raise
        trains = ()
    return _hold_out(settings, trains, seed)


def _check_fetched(settings: ProblemSettings) -> None:
    """Refuse sets that no loader may fetch, before any download."""
    for text in settings.eval:
        if text in ELSEWHERE:
            raise UserError(ELSEWHERE[text])


def _hold_out(settings: ProblemSettings, trains: Sequence[ProblemSource], seed: int) -> HeldOut:
    evaluated = settings.evaluated
    names = short_names(evaluated)
    sets = [_open(text, settings, "eval", seed) for text in evaluated]
    if settings.eval:
        _check_different("--problems.eval", evaluated, sets)
    else:
        sets = with_distinct_ids(sets, names)
    by_set: dict[str, tuple[Problem, ...]] = {}
    forms: frozenset[str] = frozenset()
    for text, source in zip(evaluated, sets, strict=True):
        same = (train for train in trains if train.fingerprint == source.fingerprint)
        by_set[text], own = hold_out(source, next(same, None), settings.held_out, seed)
        forms |= own
    return HeldOut(
        *merge(names, [*by_set.values()]),
        _fingerprints("eval", evaluated, sets),
        tuple(_notes(sets)),
        by_set,
        forms,
    )


def _contaminated(
    settings: ProblemSettings, trains: Sequence[ProblemSource], held_out: HeldOut
) -> frozenset[str]:
    """Canonical forms of training problems that state an evaluation problem in other words."""
    return frozenset().union(
        *(
            contaminated_keys(train, problems)
            for text, problems in held_out.by_set.items()
            for train_text, train in zip(settings.sources, trains, strict=True)
            if settings.decontaminate or known_overlap(train_text, text)
        )
    )


def open_training(
    settings: ProblemSettings, seed: int, *, worked: bool = False
) -> tuple[ProblemSource, ...]:
    """Open the training sources, whose problems then have distinct ids.

    Args:
        settings: the problem settings.
        seed: seed of generators.
        worked: whether to read worked solutions.

    Raises:
        UserError: a source cannot be read.
    """
    opened = [_open(text, settings, "train", seed, worked=worked) for text in settings.sources]
    _check_different("--problems.train", settings.sources, opened)
    return with_distinct_ids(opened, short_names(settings.sources))


def columns_of(settings: ProblemSettings, *, worked: bool = False) -> Columns:
    """Return the settings of columns; ``worked``: also read worked solutions."""
    return Columns(
        question=settings.question_column,
        answer=settings.answer_column,
        kind=settings.answer_kind,
        answers=settings.answers,
        ignore=settings.ignore_columns,
        worked=worked,
        choice_seed=settings.choice_seed,
    )


def _notes(sources: Sequence[ProblemSource]) -> Iterator[str]:
    for source in sources:
        if isinstance(source, ProblemSet) and source.notes:
            yield f"{source.name}: {'; '.join(source.notes)}."


def _open(
    text: str, settings: ProblemSettings, purpose: Purpose, seed: int, *, worked: bool = False
) -> ProblemSource:
    return open_source(text, columns_of(settings, worked=worked), purpose=purpose, seed=seed)


def _fingerprints(
    purpose: Purpose, texts: Sequence[str], sources: Sequence[ProblemSource]
) -> dict[str, str]:
    return {
        _key(purpose, text, texts): source.fingerprint
        for text, source in zip(texts, sources, strict=True)
    }


def fingerprint_of(
    purpose: Purpose, text: str, texts: Sequence[str], fingerprints: Mapping[str, str]
) -> str | None:
    """Return the fingerprint of the source ``text``, one of ``texts``; None if it is not there.

    Args:
        purpose: what the source is for.
        text: the source, as the settings name it.
        texts: all sources for this purpose.
        fingerprints: those of a run or of an evaluation.
    """
    return fingerprints.get(_key(purpose, text, texts)) if text in texts else None


def _key(purpose: Purpose, text: str, texts: Sequence[str]) -> str:
    return f"{purpose} {text}" if len(texts) > 1 else purpose


def _check_different(flag: str, texts: Sequence[str], sources: Sequence[ProblemSource]) -> None:
    """Refuse two names of the same problems, such as ``a.jsonl`` and ``./a.jsonl``."""
    first_of: dict[str, str] = {}
    for text, source in zip(texts, sources, strict=True):
        first = first_of.setdefault(source.fingerprint, text)
        if first != text:
            raise UserError(
                f"{flag} names the same problems as {first} and as {text}; leave out one of them"
            )


def _check_finite(sources: Sequence[ProblemSource], order: Order) -> None:
    endless = [source.name for source in sources if source.size is None]
    if order != "shuffled" and endless:
        raise UserError(
            f"--problems.order {order} needs problems that come again, and {endless[0]} generates "
            "new ones: add --problems.limit 1024, or leave out --problems.order"
        )
