"""Chat templates of checkpoints, rendered in a process of their own, with limits."""

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
"""For starting the process and for one request; it counts the seconds of its own that a template
takes, which are far fewer."""


@dataclass(frozen=True)
class Rendered:
    """A conversation as the template writes it, or why it does not."""

    text: str | None
    why: str = ""


def render(
    tokenizer: Any,
    conversations: Sequence[Sequence[str | Mapping[str, Any]]],
    tools: Sequence[Mapping[str, Any]] = (),
    *,
    goes_on: bool = True,
) -> list[Rendered]:
    """Conversations as the tokenizer's chat template writes them. A template that writes the date
    gets a fixed day.

    Args:
        tokenizer: has the template.
        conversations: of texts (user, assistant, user, ...) or of messages as templates take them.
        tools: as templates take them.
        goes_on: whether the start of the assistant's next turn stands behind each.
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
    """The process that renders: started at the first request, and again after one that killed it;
    ends with this process."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[str] | None = None
        self._lock = threading.Lock()

    def ask(self, request: str) -> list[dict[str, str]] | None:
        """One answer for each conversation; None where the request killed the process."""
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
            # Not the folder of the script, whose modules are called like others' (-P).
            [sys.executable, "-P", "-W", "ignore", str(_SCRIPT)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            # Ctrl-C is for this process; the other one ends with it.
            start_new_session=True,
        )
        atexit.register(self._end)
        return self._process


_PROCESS = _Process()
