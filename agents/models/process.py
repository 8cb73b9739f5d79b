"""Settings of this process while a model works: threads, and transformers' messages."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch

from coterie.agents.models.spec import TINY_BYTES


@contextmanager
def few_threads(device: torch.device, weight_bytes: int) -> Iterator[None]:
    """One thread inside for tiny models on a CPU; whatever is set for all others."""
    # Below that size a decoding step, and much of an update, is a few dozen tiny operations: a
    # second thread gains little, and where another process keeps its core busy every one of them
    # waits for it.
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
    """While open, the attribute ``name`` of another package's ``owner`` is ``value``: for what the
    package has no setting for."""
    before = getattr(owner, name)
    setattr(owner, name, value)
    try:
        yield
    finally:
        setattr(owner, name, before)


@contextmanager
def quietly(*, bars: bool = False) -> Iterator[None]:
    """While open, transformers reports nothing and, without ``bars``, shows no progress bars."""
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
    """Imports of transformers inside leave SciPy and scikit-learn out, which saves more than a
    second of CPU time: losses of object detectors and assisted decoding, which nothing here uses,
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
        for asked, function in _LATER.items():
            if vars(module).get(asked) is absent:
                vars(module).setdefault(function.__name__, function)


def linear_sum_assignment(*arguments: Any, **more: Any) -> Any:
    """SciPy's."""
    from scipy.optimize import linear_sum_assignment

    return linear_sum_assignment(*arguments, **more)


def roc_curve(*arguments: Any, **more: Any) -> Any:
    """That of scikit-learn."""
    from sklearn.metrics import roc_curve

    return roc_curve(*arguments, **more)


_LATER = {"is_scipy_available": linear_sum_assignment, "is_sklearn_available": roc_curve}
"""What a module of transformers asks before it imports a package -> the one function that it
takes from there."""
