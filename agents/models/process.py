"""Settings of this process during model calls: threads, and the output of transformers."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch

from coterie.agents.models.spec import TINY_BYTES


@contextmanager
def few_threads(device: torch.device, weight_bytes: int) -> Iterator[None]:
    """Use one thread for tiny models on a CPU inside the block; other models keep the setting."""
    # A decoding step of a tiny model consists of a few dozen tiny operations. A second thread gains
    # little, and each operation has to wait for it if another process uses its core.
    threads = torch.get_num_threads()
    if device.type != "cpu" or weight_bytes > TINY_BYTES or threads == 1:
        yield
        return
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)


@contextmanager
def replaced(owner: Any, name: str, value: Any) -> Iterator[None]:
    """Replace an attribute of another package's object inside the block, if the package has no
    setting for it."""
    before = getattr(owner, name)
    setattr(owner, name, value)
    try:
        yield
    finally:
        setattr(owner, name, before)


@contextmanager
def quietly(*, bars: bool = False) -> Iterator[None]:
    """Silence transformers inside the block; progress bars too, unless ``bars`` is set."""
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


@contextmanager
def without_scipy() -> Iterator[None]:
    """Import transformers inside the block without SciPy and scikit-learn, which saves more than a
    second of CPU time. Only losses of object detectors and assisted decoding need them; these
    import them at their first call."""
    import transformers.utils as utils

    def absent() -> bool:
        return False

    with (
        replaced(utils, "is_scipy_available", absent),
        replaced(utils, "is_sklearn_available", absent),
    ):
        yield
    for name, module in list(sys.modules.items()):
        if not name.startswith("transformers."):
            continue
        for check, function in _LATER.items():
            if vars(module).get(check) is absent:
                vars(module).setdefault(function.__name__, function)


def linear_sum_assignment(*arguments: Any, **more: Any) -> Any:
    """SciPy's function."""
    from scipy.optimize import linear_sum_assignment

    return linear_sum_assignment(*arguments, **more)


def roc_curve(*arguments: Any, **more: Any) -> Any:
    """scikit-learn's function."""
    from sklearn.metrics import roc_curve

    return roc_curve(*arguments, **more)


_LATER = {"is_scipy_available": linear_sum_assignment, "is_sklearn_available": roc_curve}
"""Function by which transformers checks for a package -> the only function that it imports from
the package."""
