"""The script that renders chat templates in a separate process, because they can loop forever.

Requests and answers are lines of JSON; :mod:`coterie.agents.models.rendering` sends the requests.
Never import this module: it replaces the date for its whole process.
"""

import json
import sys
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import Any

MOST_CHARACTERS = 200_000
_SECONDS = 5
_MEMORY = 1 << 30


class _Day(datetime):
    """A fixed day for every template, so that a run does not depend on its date."""

    @classmethod
    def now(cls, tz: Any = None) -> "datetime":
        # The default day of Llama's templates.
        return datetime(2024, 7, 26, 12, tzinfo=tz)


def main() -> None:
    """Answer requests until the input ends."""
    from transformers.utils import chat_template_utils

    chat_template_utils.datetime = _Day  # type: ignore[attr-defined]
    _limit_memory()
    for line in sys.stdin:
        request = json.loads(line)
        _limit_time()
        answers = [
            _rendered(chat_template_utils, request, conversation)
            for conversation in request["conversations"]
        ]
        sys.stdout.write(json.dumps(answers) + "\n")
        sys.stdout.flush()


def _rendered(library: Any, request: dict[str, Any], conversation: list[Any]) -> dict[str, str]:
    try:
        (text,), _ = library.render_jinja_template(
            conversations=[conversation],
            tools=request["tools"] or None,
            chat_template=request["template"],
            add_generation_prompt=request["goes_on"],
            **request["marks"],
        )
    except Exception as error:
        return {"why": f"{type(error).__name__}: {error}".strip()[:200].split("\n", 1)[0]}
    if len(text) > MOST_CHARACTERS:
        return {"why": f"it writes {len(text):,} characters around a few words"}
    return {"text": text}


def _limit_memory() -> None:
    """Limit the memory of this process, if the system supports it."""
    with suppress(ImportError, OSError):
        import resource

        used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (used + _MEMORY, used + _MEMORY))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def _limit_time() -> None:
    """Let the system end this process if a request takes too long."""
    with suppress(ImportError):
        import resource

        used = resource.getrusage(resource.RUSAGE_SELF)
        seconds = int(used.ru_utime + used.ru_stime) + _SECONDS + 1
        resource.setrlimit(resource.RLIMIT_CPU, (seconds, resource.RLIM_INFINITY))


if __name__ == "__main__":
    main()
