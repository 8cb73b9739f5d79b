"""Stored completions: one JSON line each, appended as they come, read back whatever happened.

The first line says what was sampled from whom and how; everything behind it was sampled so. A kill
leaves at most a torn last line, which is cut off before anything is added.
"""

import json
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from coterie.datatypes import UserError
from coterie.training.disk import make_folder, sync

Record = dict[str, Any]
"""``problem``, ``sample``, ``correct``, ``answer``, ``confidence``, ``text``, ``used`` (policy ->
prompt and sampled tokens) and ``seconds``, and whatever a plan keeps besides."""


@dataclass(frozen=True)
class Completions:
    """The completions of one lineup to one set of problems."""

    path: Path
    identity: Mapping[str, Any]
    """Whatever decides how a given problem is answered, as JSON data."""

    def read(self) -> dict[tuple[str, int], Record]:
        """(problem, sample) -> its record; the first one, should there be two.

        Raises:
            UserError: the file was sampled otherwise, or is damaged.
        """
        lines = self._whole_lines()
        if not lines:
            return {}
        found: dict[tuple[str, int], Record] = {}
        try:
            self._check(json.loads(lines[0])["identity"])
            for line in lines[1:]:
                record = json.loads(line)
                found.setdefault((record["problem"], int(record["sample"])), record)
        except (ValueError, KeyError, TypeError):
            raise UserError(f"{self.path} is damaged; delete it to sample again") from None
        return found

    def append(self, records: Iterable[Record]) -> None:
        """Add records behind the last whole line; the disk holds them from here on."""
        make_folder(self.path.parent)
        whole = sum(len(line) + 1 for line in self._whole_lines())
        added = list(records) if whole else [{"identity": dict(self.identity)}, *records]
        # json, not orjson: a model may write lone surrogates.
        text = "".join(json.dumps(record) + "\n" for record in added)
        with self.path.open("ab") as file:
            if file.tell() > whole:
                os.truncate(self.path, whole)
            file.write(text.encode("ascii"))
        # The folder too: it may not know the file's name yet.
        sync(self.path, self.path.parent)

    def _whole_lines(self) -> list[bytes]:
        content = self.path.read_bytes() if self.path.is_file() else b""
        return content.split(b"\n")[:-1]

    def _check(self, stored: Mapping[str, Any]) -> None:
        wanted = json.loads(json.dumps(dict(self.identity)))
        if differing := sorted(
            key for key in {*stored, *wanted} if stored.get(key) != wanted.get(key)
        ):
            raise UserError(
                f"{self.path} holds completions of other {', '.join(differing)}; name another "
                "folder with --out, or delete that file"
            )
