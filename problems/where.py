"""Which rows of a data set are taken: ``FILE.jsonl?where=COLUMN:VALUE|VALUE``."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from coterie.datatypes import UserError

_SHOWN = 20


@dataclass(frozen=True)
class Where:
    """Rows whose column holds one of the values, as text."""

    column: str
    values: tuple[str, ...]

    def keeps(self, place: str, row: Mapping[str, Any], met: dict[str, None]) -> bool:
        """Whether ``row`` is taken; the value that it has is noted in ``met``.

        Raises:
            UserError: it has no such column; begins with ``place``.
        """
        if self.column not in row:
            columns = ", ".join(list(row)[:_SHOWN]) or "none"
            raise UserError(f"{place}: where names the column {self.column!r}; found {columns}")
        met.setdefault(value := str(row[self.column]).strip())
        return value in self.values

    def refusal(self, name: str, met: Mapping[str, None]) -> UserError:
        """What to say where no row was taken."""
        return UserError(
            f"{name}: no row has {self.column} {' or '.join(self.values)}; there are "
            f"{', '.join(list(met)[:_SHOWN])}"
        )


def read_where(text: str) -> Where:
    """``solution_type:Addition|Subtraction`` as what it says.

    Raises:
        UserError: it says something else.
    """
    column, colon, values = text.partition(":")
    named = tuple(value.strip() for value in values.split("|"))
    if not (column.strip() and colon and all(named)):
        raise UserError(f"where={text}: write where=COLUMN:VALUE, or where=COLUMN:VALUE|VALUE")
    return Where(column.strip(), named)
