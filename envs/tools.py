"""Tools of a conversation: Python functions that a model may call."""

import inspect
import json
import reprlib
import secrets
import sys
import types
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

from annotated_types import Ge, Gt

from coterie.datatypes import UserError, Validated
from coterie.datatypes.validation import describe, fits
from coterie.envs.contract import as_unicode
from coterie.envs.tool_calls import FoundCall
from coterie.rewards.grading.answers.pool import Program, WorkerPool, has_number

_PLAIN = (str, int, float, bool, list, dict, type(None), Any)
"""What JSON can hold."""
_DEEPEST = 32
"""Levels of lists and objects in a call's arguments."""
_FAULT = 300
"""Characters of an error that a model is shown."""
_START = (
    "import json, sys; sys.path[:] = json.loads(sys.argv[1]); "
    "from coterie.envs.tool_worker import main; "
    "main(json.loads(sys.argv[2]), int(sys.argv[3]), float(sys.argv[4]))"
)


@dataclass(frozen=True)
class ToolCall:
    """A call of a model, with what it was shown."""

    name: str
    """Name of the tool; empty if the call could not be read."""
    arguments: Mapping[str, Any]
    result: str
    """The text that the model was shown."""
    failed: bool = False
    """Whether the text is an error."""


@dataclass(frozen=True)
class Tools(Validated):
    """Functions that the agents of a role may call, and limits.

    Example: ``Tools((price, add), calls=2)``

    Each is a function of a module with typed arguments and a docstring that describes them, in
    Google's style; :func:`transformers.utils.get_json_schema` reads them. They run in a process of
    their own, one call at a time, with the rights of the run: their arguments come from a model.
    """

    functions: tuple[Callable[..., Any], ...]
    calls: Annotated[int, Ge(1)] = 4
    """Most calls for one question; the answer after them is the last."""
    deadline_s: Annotated[float, Gt(0)] = 5.0
    """Seconds for one call. Then its process is killed with all in its process group; what it has
    written or sent by then stays, and a process that left the group goes on."""
    characters: Annotated[int, Ge(1)] = 2000
    """Most characters of a result that are shown."""

    def check(self) -> None:
        if not self.functions:
            raise UserError("tools: name at least one function")
        names = [getattr(function, "__name__", "") for function in self.functions]
        if repeated := [name for name in names if names.count(name) > 1]:
            raise UserError(f"tools: two functions are called {repeated[0]}; rename one")
        for function in self.functions:
            _check_function(function)
        _ = self.schemas

    @property
    def schemas(self) -> list[dict[str, Any]]:
        """The functions in the format of chat templates."""
        return [{"type": "function", "function": _schema(each)} for each in self.functions]

    def run(self, calls: Sequence[FoundCall]) -> list[ToolCall]:
        """Run the calls in order. Whatever is wrong with one becomes its result.

        Raises:
            UserError: the process of the tools does not start.
        """
        known = {function.__name__: function for function in self.functions}
        done: list[ToolCall] = []
        for call in calls:
            arguments = json.loads(call.arguments) if call.name else {}
            if why := _why_not_callable(call, arguments, known):
                done.append(_failed(call.name, arguments, why))
            else:
                done.append(self._result(call.name, arguments))
        return done

    def _result(self, name: str, arguments: Mapping[str, Any]) -> ToolCall:
        paths = tuple(f"{each.__module__}:{each.__name__}" for each in self.functions)
        question = [secrets.randbits(64), name, arguments]
        (reply,) = _pool(paths, self.characters, self.deadline_s).run([question])
        if reply == "timeout":
            why = f"{name} took longer than {self.deadline_s:g} s"
            return _failed(name, arguments, why)
        if reply == "error":
            return _failed(name, arguments, f"{name} ended its process")
        said = as_unicode(json.loads(reply))
        if "fault" in said:
            return _failed(name, arguments, said["fault"])
        return ToolCall(name, arguments, said["result"])


def offered_tools(env: Any) -> dict[str, list[dict[str, Any]]]:
    """Return role -> the tools that an environment offers it, in the format of chat templates."""
    while env is not None and not hasattr(env, "tool_schemas"):
        env = getattr(env, "env", None)
    return {} if env is None else env.tool_schemas()


def _failed(name: str, arguments: Mapping[str, Any], why: str) -> ToolCall:
    return ToolCall(name, arguments, f"error: {why}"[:_FAULT], failed=True)


@lru_cache
def _pool(paths: tuple[str, ...], characters: int, deadline_s: float) -> WorkerPool:
    """The process of these tools, which all environments share."""
    own = json.dumps(sys.path), json.dumps(paths), str(characters)
    program = Program(
        f"the process of the tools {', '.join(paths)}",
        ("-P", "-W", "ignore", "-c", _START, *own),
        has_number,
        shows_errors=True,
    )
    return WorkerPool(1, deadline_s, program)


@lru_cache
def _schema(function: Callable[..., Any]) -> dict[str, Any]:
    # transformers takes time to import.
    from transformers.utils.chat_template_utils import get_json_schema

    try:
        schema = get_json_schema(function)["function"]
    except Exception as error:  # the library has errors of its own for docstrings and for types
        raise UserError(f"the tool {function.__name__} has no schema: {error}") from None
    return {name: schema[name] for name in ("name", "description", "parameters")}


def _check_function(function: Any) -> None:
    """Refuse what cannot be called by name in another process."""
    title = f"the tool {getattr(function, '__qualname__', function)}"
    module = sys.modules.get(getattr(function, "__module__", None) or "")
    name = getattr(function, "__name__", "")
    if not inspect.isfunction(function) or inspect.iscoroutinefunction(function):
        raise UserError(f"{title} is no function with def; write one around it")
    if module is None or module.__name__ == "__main__" or vars(module).get(name) is not function:
        raise UserError(
            f"{title} is not at the top of a module that can be imported, and tools run in another "
            "process; move it there"
        )
    for parameter in inspect.signature(function).parameters.values():
        if parameter.kind not in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY):
            raise UserError(f"{title} takes {parameter}, which a call cannot name; leave it out")
    for argument, hint in _hints(function).items():
        if not _is_plain(hint):
            raise UserError(
                f"{title}: {argument} is of type {inspect.formatannotation(hint)}; a model can "
                "give text, numbers, true and false, lists and dictionaries"
            )


@lru_cache
def _hints(function: Callable[..., Any]) -> dict[str, Any]:
    hints = get_type_hints(function)
    hints.pop("return", None)
    return hints


def _is_plain(hint: Any) -> bool:
    origin = get_origin(hint)
    if origin is Literal:
        return all(type(value) in _PLAIN for value in get_args(hint))
    if origin is dict and get_args(hint)[:1] not in ((), (str,), (Any,)):
        return False  # JSON has only text as keys
    if origin in (Union, types.UnionType, list, dict):
        return all(map(_is_plain, get_args(hint)))
    return any(hint is plain for plain in _PLAIN)


def _why_not_callable(
    call: FoundCall, arguments: Mapping[str, Any], known: Mapping[str, Callable[..., Any]]
) -> str:
    """What is wrong with a call, for the model that made it; empty if nothing is."""
    if not call.name:
        return 'a call is one JSON object, {"name": ..., "arguments": {...}}'
    if call.name not in known:
        return f"there is no tool {call.name!r:.60}; there are {', '.join(known)}"
    parameters = inspect.signature(known[call.name]).parameters
    hints = _hints(known[call.name])
    if unknown := [name for name in arguments if name not in parameters]:
        takes = ", ".join(parameters) or "nothing"
        return f"{call.name} has no argument {unknown[0]!r:.60}; it takes {takes}"
    for name, parameter in parameters.items():
        if name not in arguments:
            if parameter.default is parameter.empty:
                return f"{call.name} needs {name}, {describe(hints[name])}"
        elif _is_deep(arguments[name]):
            return f"{name} is nested too deeply"
        elif not fits(arguments[name], hints[name]):
            shown = reprlib.repr(arguments[name])
            return f"{name} is {shown}; it must be {describe(hints[name])}"
    return ""


def _is_deep(value: Any, left: int = _DEEPEST) -> bool:
    if not isinstance(value, list | dict):
        return False
    inner = value.values() if isinstance(value, dict) else value
    return left == 0 or any(_is_deep(each, left - 1) for each in inner)
