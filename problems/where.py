"""A filter on the rows of a data set: ``FILE.jsonl?where=COLUMN:VALUE|VALUE``."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from coterie.datatypes import UserError

_SHOWN = 20


@dataclass(frozen=True)
class Where:
    """Selects rows whose column has one of the values, as text."""

    column: str
    values: tuple[str, ...]

    def keeps(self, place: str, row: Mapping[str, Any], met: dict[str, None]) -> bool:
        """Whether ``row`` is selected.

        Args:
            place: place of the row, for error messages.
            row: values by column.
            met: collects the values of the column, for :meth:`refusal`.

        Raises:
            UserError: the row has no such column.
        """
        if self.column not in row:
            raise UserError(
                f"{place}: where names the column {self.column!r}; found {column_names(row)}"
            )
        met.setdefault(value := str(row[self.column]).strip())
        return value in self.values

    def refusal(self, name: str, met: Mapping[str, None]) -> UserError:
        """Return the error for a data set without any selected row."""
        return UserError(
            f"{name}: no row has {self.column} {' or '.join(self.values)}; there are "
            f"{', '.join(list(met)[:_SHOWN])}"
        )


def column_names(row: Mapping[str, Any]) -> str:
    """Return the first twenty columns of ``row`` as text, for error messages."""
    return ", ".join(list(row)[:_SHOWN]) or "none"


def read_where(text: str) -> Where:
    """Parse a filter such as ``solution_type:Addition|Subtraction``.

    Raises:
        UserError: the text is no filter.
    """
    column, colon, values = text.partition(":")
    named = tuple(value.strip() for value in values.split("|"))
    if not (column.strip() and colon and all(named)):
        raise UserError(f"where={text}: write where=COLUMN:VALUE, or where=COLUMN:VALUE|VALUE")
    return Where(column.strip(), named)
