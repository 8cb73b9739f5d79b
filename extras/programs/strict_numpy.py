"""Makes numpy's comparisons strict for tests: values of different shapes are never equal.

numpy broadcasts, and an empty array is equal to everything: a program that returns ``[]`` would
pass wherever a test expects a number. The module imports nothing from this project: child processes
run it as a plain file.
"""

import functools
import inspect
from collections.abc import Callable
from typing import Any

_ASSERTIONS = (
    "assert_allclose",
    "assert_almost_equal",
    "assert_approx_equal",
    "assert_array_almost_equal",
    "assert_array_almost_equal_nulp",
    "assert_array_equal",
    "assert_array_less",
    "assert_array_max_ulp",
    "assert_equal",
)


def compare_shapes() -> None:
    """Replace numpy's comparisons by ones that compare shapes first."""
    import numpy
    import numpy.testing

    for name in ("allclose", "array_equal", "array_equiv"):
        setattr(numpy, name, _strict(getattr(numpy, name), lambda: False))
    numpy.isclose = _strict(numpy.isclose, lambda: numpy.False_)
    for name in _ASSERTIONS:
        setattr(numpy.testing, name, _strict(getattr(numpy.testing, name), _refuse))


def _refuse() -> None:
    raise AssertionError("the values have different shapes")


def _strict(compare: Callable[..., Any], otherwise: Callable[[], Any]) -> Callable[..., Any]:
    signature = inspect.signature(compare)

    @functools.wraps(compare)
    def strict(*arguments: Any, **named: Any) -> Any:
        first, second, *_ = signature.bind(*arguments, **named).arguments.values()
        if _shape(first) != _shape(second):
            return otherwise()
        return compare(*arguments, **named)

    return strict


def _shape(value: Any) -> tuple[int, ...] | None:
    import numpy

    try:
        return numpy.shape(value)
    except ValueError:
        return None  # rows of different lengths
