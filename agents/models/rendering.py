"""Runs the code of chat templates in a separate process, with limits on time and memory.

:mod:`coterie.agents.models.codec` uses it once for each tokenizer to learn the template's markup,
and puts prompts into that markup itself.
"""

import atexit
import json
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_SCRIPT = Path(__file__).with_name("template_process.py")
_PATIENCE_S = 120.0
"""Limit for the start of the process and one request. The process itself limits the time of a
template, to far fewer seconds."""


@dataclass(frozen=True)
class Rendered:
    """A rendered conversation, or the reason for the template's failure."""

    text: str | None
    why: str = ""


def render(
    tokenizer: Any,
    conversations: Sequence[Sequence[Mapping[str, Any]]],
    tools: Sequence[Mapping[str, Any]] = (),
    *,
    goes_on: bool = True,
) -> list[Rendered]:
    """Render conversations with the tokenizer's chat template. Templates that write the date get a
    fixed day.

    Args:
        tokenizer: the tokenizer with the template.
        conversations: lists of messages in the format of templates.
        tools: in the format of templates.
        goes_on: whether to add the start of the assistant's next turn.
    """
    try:
        template = tokenizer.get_chat_template()
    except ValueError as error:
        return [Rendered(None, str(error)) for _ in conversations]
    request = {
        "template": template,
        "marks": tokenizer.special_tokens_map,
        "conversations": [list(conversation) for conversation in conversations],
        "tools": list(tools),
        "goes_on": goes_on,
    }
    answers = _PROCESS.ask(json.dumps(request, default=str))
    if answers is None:
        why = "it takes too long, or too much memory"
        return [Rendered(None, why) for _ in conversations]
    return [Rendered(answer.get("text"), answer.get("why", "")) for answer in answers]


class _Process:
    """The rendering process. It starts at the first request, restarts after a request that killed
    it, and ends with this process."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[str] | None = None
        self._lock = threading.Lock()

    def ask(self, request: str) -> list[dict[str, str]] | None:
        """Return an answer for each conversation; None if the request killed the process."""
        with self._lock:
            process = self._process or self._start()
            watch = threading.Timer(_PATIENCE_S, process.kill)
            watch.start()
            try:
                assert process.stdin is not None
                assert process.stdout is not None
                process.stdin.write(request + "\n")
                process.stdin.flush()
                answer = process.stdout.readline()
            except BrokenPipeError:
                answer = ""
            finally:
                watch.cancel()
            if not answer:
                self._end()
                return None
            return json.loads(answer)

    def _end(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.communicate()
            self._process = None

    def _start(self) -> "subprocess.Popen[str]":
        self._process = subprocess.Popen(
            # -P keeps the script's folder, whose modules could shadow others, off sys.path.
            [sys.executable, "-P", "-W", "ignore", str(_SCRIPT)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            # Ctrl-C must not reach the process, which ends with this one.
            start_new_session=True,
        )
        atexit.register(self._end)
        return self._process


_PROCESS = _Process()
