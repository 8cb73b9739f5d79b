"""Transformers without what it tells a terminal: we say in a sentence what is wrong."""

from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def quietly(*, bars: bool = False) -> Iterator[None]:
    """No reports of transformers while open, and no progress bars, which would only flicker where a
    local folder is read and written; ``bars``: a download shows them."""
    from transformers.utils import logging

    level, shown = logging.get_verbosity(), logging.is_progress_bar_enabled()
    logging.set_verbosity_error()
    if not bars:
        logging.disable_progress_bar()
    try:
        yield
    finally:
        logging.set_verbosity(level)
        if shown:
            logging.enable_progress_bar()
