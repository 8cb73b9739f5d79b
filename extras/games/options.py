"""Parse the options after the question mark of a name, by the parameters that they set."""

import ast
import importlib
import inspect
from collections.abc import Callable, Mapping
from types import NoneType, UnionType
from typing import Any, Union, get_args, get_origin

from coterie.datatypes import UserError, did_you_mean, join_or

_TRUTHS = {"true": True, "yes": True, "on": True, "1": True,
           "false": False, "no": False, "off": False, "0": False}  # fmt: skip
_NAMED = {"true": True, "false": False, "none": None}


def read_parameters(
    texts: Mapping[str, str], *takers: Callable[..., Any], title: str
) -> dict[str, Any]:
    """Parse ``texts`` as keywords of ``takers``, by each parameter's annotation or default.

    Args:
        texts: parameter -> text of the user.
        takers: callables that receive the keywords; the first that has a parameter decides.
        title: prefix of error messages.

    Raises:
        UserError: no taker has the parameter, or the value has the wrong type.
    """
    known, takes_all = dict[str, inspect.Parameter](), False
    for taker in takers:
        for parameter in inspect.signature(taker).parameters.values():
            takes_all |= parameter.kind is parameter.VAR_KEYWORD
            if parameter.kind in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY):
                known.setdefault(parameter.name, parameter)
    values = {}
    for key, text in texts.items():
        if key not in known and not takes_all:
            near = f"{did_you_mean(key, known)}known: {', '.join(sorted(known))}"
            raise UserError(f"{title} has no parameter {key!r}; {near}.")
        try:
            values[key] = _read(text, known.get(key))
        except ValueError as error:
            raise UserError(f"{title}: {key} is {text!r}; it must be {error}.") from None
    return values


def check_mode(env: Any, keywords: Mapping[str, Any], *, title: str) -> None:
    """Refuse a render mode that ``env`` does not support; packages accept any.

    Args:
        env: the environment.
        keywords: keywords of its creation.
        title: prefix of error messages.

    Raises:
        UserError: the mode is not supported.
    """
    mode, known = keywords.get("render_mode"), env.metadata.get("render_modes", ())
    if mode is not None and mode not in known:
        raise UserError(
            f"{title}: render_mode is {mode!r}; it must be {join_or([*known, 'none'])}."
        )


def creator(entry: str | Callable[..., Any]) -> Callable[..., Any]:
    """The object of a registry entry ``module:attribute``; for a PettingZoo function that only
    forwards its arguments, the callable that receives them."""
    if not isinstance(entry, str):
        return entry
    module_name, _, attribute = entry.partition(":")
    module = importlib.import_module(module_name)
    callable_of_entry = getattr(module, attribute)
    named = [
        parameter
        for parameter in inspect.signature(callable_of_entry).parameters.values()
        if parameter.kind != parameter.VAR_KEYWORD
    ]
    return callable_of_entry if named else getattr(module, "raw_env", callable_of_entry)


def read_value(text: str) -> Any:
    """Parse a Python number, bool, list or None, ignoring case; else return the text."""
    if text.casefold() in _NAMED:
        return _NAMED[text.casefold()]
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return text


def _read(text: str, parameter: inspect.Parameter | None) -> Any:
    """Parse ``text`` for ``parameter``; a ValueError says what it must be."""
    kinds, optional = _kinds(parameter) if parameter is not None else (set[type](), True)
    if optional and text.casefold() == "none":
        return None
    if kinds == {bool}:
        if text.casefold() not in _TRUTHS:
            raise ValueError("true or false")
        return _TRUTHS[text.casefold()]
    if kinds == {str}:
        return text
    value = read_value(text)
    fits = isinstance(value, tuple(kinds | {int})) and not isinstance(value, bool)
    if kinds and kinds <= {int, float} and not fits:
        raise ValueError("a whole number" if kinds == {int} else "a number")
    return value


def _kinds(parameter: inspect.Parameter) -> tuple[set[type], bool]:
    """(accepted types among bool, number and text, or none if any; whether None is accepted)."""
    hint, default = parameter.annotation, parameter.default
    inner = get_args(hint) if get_origin(hint) in (Union, UnionType) else (hint,)
    kinds = {kind for kind in inner if kind is not NoneType}
    if isinstance(hint, str):  # the module's annotations are not evaluated
        words = {word.strip() for word in hint.split("|")}
        kinds = {_BY_NAME.get(word, object) for word in words - {"None"}}
    if not kinds <= {bool, int, float, str}:
        kinds = set()
        if hint is parameter.empty and type(default) in (bool, int, float, str):
            # An integer default says little about the other values that are allowed.
            kinds = {int, float} if type(default) is int else {type(default)}
    return kinds, default is None or NoneType in inner or (isinstance(hint, str) and "None" in hint)


_BY_NAME: Mapping[str, type] = {kind.__name__: kind for kind in (bool, int, float, str)}
