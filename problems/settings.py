"""What the command line says about problems."""

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class ProblemSettings:
    """Which problems train and which measure (``--problems.*``)."""

    train: str = "chains"
    """Training problems: chains, chains?mix=1,0,0, recall, reasoning-gym:TASK?option=value, a
    JSONL, JSON or Parquet file, a known data set (gsm8k, math, ...),
    hub:OWNER/NAME?config=main&split=train."""
    eval: str | None = None
    """Evaluation problems, named the same way; without it those of ``train``: the test split of a
    known data set, other problems of a generator, problems held out of a file."""
    held_out: int | None = None
    """Number of evaluation problems; without it a whole evaluation set of its own, 512 of a
    generator or of a set that also trains."""
    limit: int | None = None
    """Train on at most this many problems, a seeded choice; without it on all."""
    epoch_size: int | None = None
    """Problems in an epoch, the unit of schedules; without it one pass of a finite set, 1024 of
    a generator."""
    question_column: str | None = None
    """Column that holds the question; recognised without it."""
    answer_column: str | None = None
    """Column that holds the answer; recognised without it."""
    answer_kind: Literal["math", "number", "list", "text", "qa", "judged"] | None = None
    """How answers of files and hub data sets are compared; read off the data without it."""
    choice_seed: int = 0
    """Seed of the order of options where a data set lists the right one first (GPQA)."""
    decontaminate: bool = False
    """Drop training problems that share an id or 13 words in a row with an evaluation problem. Two
    data sets that are known to overlap are treated so in any case."""
