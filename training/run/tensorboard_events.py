"""TensorBoard's event file. It is written in this thread, so errors of the disk are raised here."""

import re
import socket
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

_NAME = re.compile(r"events\.out\.tfevents\.(\d+)\..*")


class EventFile:
    """The events since one start of a run; TensorBoard shows all files of a folder together."""

    def __init__(self, folder: Path, *, first: int) -> None:
        """Open a file whose events hide those of ``first`` and later steps in older files.

        Raises:
            OSError: it cannot be written.
        """
        # Slow to import, and only needed by runs that train.
        from tensorboard.compat.proto import event_pb2
        from tensorboard.summary.writer.record_writer import RecordWriter

        self._proto: Any = event_pb2
        folder.mkdir(parents=True, exist_ok=True)
        self._file = (folder / _name(folder)).open("ab")
        self._records = RecordWriter(self._file)
        self._write(file_version="brain.Event:2")
        self._write(step=first, session_log={"status": self._proto.SessionLog.START})

    def scalars(self, step: int, values: Mapping[str, float]) -> None:
        """Write numbers of a step by their names."""
        tags = [{"tag": name, "simple_value": float(value)} for name, value in values.items()]
        self._write(step=step, summary={"value": tags})

    def text(self, step: int, name: str, markdown: str) -> None:
        """Write a text of a step as Markdown, which TensorBoard renders."""
        from tensorboard.plugins.text.metadata import create_summary_metadata

        tensor = {"dtype": "DT_STRING", "string_val": [markdown.encode()]}
        value = {
            "tag": f"{name}/text_summary",
            "metadata": create_summary_metadata(name, ""),
            "tensor": tensor | {"tensor_shape": {"dim": [{"size": 1}]}},
        }
        self._write(step=step, summary={"value": [value]})

    def close(self) -> None:
        """Close the file; every event was flushed when it was written."""
        with suppress(OSError):
            self._file.close()

    def _write(self, **content: Any) -> None:
        event = self._proto.Event(wall_time=time.time(), **content)
        self._records.write(event.SerializeToString())
        self._file.flush()


def _name(folder: Path) -> str:
    """A name that sorts after all files in ``folder``, even if the clock was set back."""
    taken = [int(match[1]) for path in folder.iterdir() if (match := _NAME.fullmatch(path.name))]
    second = max([int(time.time()), *(second_taken + 1 for second_taken in taken)])
    return f"events.out.tfevents.{second:010d}.{socket.gethostname()}"
