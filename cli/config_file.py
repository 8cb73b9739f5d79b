"""The settings of a run as a TOML or YAML file, for people to write.

::

    [choice]
    env = "core-teaching"
    algo = "gspo"

    [learner]
    lr = 0.0005

    [agents.bob]
    model = "tiny:carol"

A file needs only what differs from the defaults. Flags override the file, and the file overrides
``--preset``.
"""

import dataclasses
import json
import re
import tomllib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from coterie.cli.text_or_file import text_or_file
from coterie.datatypes import UserError, suggest_briefly
from coterie.training.config.role_learning import FIELDS
from coterie.training.config.serialize import override
from coterie.training.config.train_settings import (
    Choice,
    TrainSettings,
    settings_class,
    token_limit,
)

_NOTHING = "None"
"""The text for None, which TOML lacks; flags use the same text."""


@dataclass(frozen=True)
class ConfigFile:
    """The content of a file."""

    path: Path
    choice: Mapping[str, Any]
    """Values of ``Choice`` by name, without empty ones; they decide which settings exist."""
    parts: Mapping[str, Any]
    """Section -> its values by name."""

    def role_learning(self) -> dict[str, dict[str, Any]]:
        """Role -> its values by the names in :data:`FIELDS`.

        Raises:
            UserError: a value is of the wrong kind.
        """
        by_role: dict[str, dict[str, Any]] = {}
        with _naming(self.path):
            for role, agent in self.parts.get("agents", {}).items():
                agent = _as_table(f"agents.{role}", agent)
                given = {name: agent[name] for name in FIELDS if agent.get(name) is not None}
                for name, value in given.items():
                    at = f"agents.{role}.{name}"
                    if name == "algo" and isinstance(value, str):
                        name_at = f"agents.{role}.algorithm"
                        raise UserError(f"{at} is {value!r:.80}; a name belongs in {name_at}")
                    if name != "algorithm":
                        _as_table(at, value)
                    elif not isinstance(value, str):
                        raise UserError(f"{at} must be the name of an algorithm")
                by_role[role] = given
        return by_role

    def lay_over(self, default: TrainSettings) -> TrainSettings:
        """``default`` overridden by the file.

        Raises:
            UserError: an unknown setting, or a value that does not fit.
        """
        parts, agents = dict(self.parts), dict(default.agents)
        with _naming(self.path):
            for role, values in parts.pop("agents", {}).items():
                if role not in agents:
                    raise UserError(f"no role is called {role}; {suggest_briefly(role, agents)}")
                values = _as_table(f"agents.{role}", values)
                values = {name: v for name, v in values.items() if name not in FIELDS}
                if isinstance(system := values.get("system"), str):
                    values["system"] = self._text(f"agents.{role}.system", system)
                agents[role] = override(agents[role], values, at=f"agents.{role}.")
            if default.env is None and parts.pop("env", {}):
                raise UserError(f"{default.choice.env} has no settings: leave out env")
            return dataclasses.replace(override(default, parts), agents=agents)

    def _text(self, name: str, word: str) -> str:
        """The text of a setting; ``@FILE`` is relative to this file."""
        try:
            return text_or_file(word, self.path.parent)
        except UserError as mistake:
            raise UserError(f"{name}: {mistake}") from None


def read_config(path: Path) -> ConfigFile:
    """Read a file of settings.

    Raises:
        UserError: it cannot be read, is not TOML or YAML, or has an unknown part.
    """
    with _naming(path):
        known = [field.name for field in dataclasses.fields(settings_class())]
        parts: dict[str, Any] = {}
        for name, part in _read(path).items():
            if name not in known:
                raise UserError(f"unknown section {name}; {suggest_briefly(name, known)}")
            parts[name] = _as_table(name, part)
        given = parts.pop("choice", {}).items()
        choice = {name: value for name, value in given if value not in (None, [])}
        if "resume" in choice:
            raise UserError("choice.resume is not allowed in a file; use --resume RUN")
        override(Choice("", "", ()), choice, at="choice.")
    return ConfigFile(path, choice, parts)


def _read(path: Path) -> dict[str, Any]:
    is_yaml = path.suffix.lower() in (".yaml", ".yml")
    try:
        text = path.read_text(encoding="utf-8-sig")
        content = read_yaml(text) if is_yaml else tomllib.loads(text)
        return _as_settings(_as_table("the file", content))
    except OSError as error:
        raise UserError(f"cannot be read ({error.strerror})") from None
    except RecursionError:
        raise UserError("is nested too deeply") from None
    except UnicodeDecodeError:
        raise UserError("is not UTF-8 text") from None
    except ValueError as error:
        way_out = "" if is_yaml else " (YAML is read from files called .yaml)"
        raise UserError(f"is not valid {'YAML' if is_yaml else 'TOML'}: {error}{way_out}") from None


def read_yaml(text: str) -> Any:
    """The value of a YAML document, in which ``5e-4`` is a number, as in YAML 1.2.

    Raises:
        ValueError: one line on the mistake and its place.
    """
    import yaml  # slow, and TOML files do not need it

    class Loader(yaml.SafeLoader):
        def construct_mapping(self, node: Any, deep: bool = False) -> dict[Any, Any]:
            names: list[Any] = []
            for name, _ in node.value:
                if name.value in names:  # PyYAML lets the last one win
                    problem = f"{name.value} is given twice"
                    raise yaml.MarkedYAMLError(problem=problem, problem_mark=name.start_mark)
                names.append(name.value)
            return super().construct_mapping(node, deep)

    number = re.compile(r"[-+]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)[eE][-+]?[0-9]+\Z")
    Loader.add_implicit_resolver("tag:yaml.org,2002:float", number, list("-+.0123456789"))
    try:
        return yaml.load(text, Loader)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        where = "" if mark is None else f", line {mark.line + 1}"
        raise ValueError(f"{error.problem or error.context}{where}") from None
    except (yaml.YAMLError, ValueError, KeyError, AttributeError) as error:
        # PyYAML's own constructors raise the last three for values such as `!!bool maybe`.
        raise ValueError(" ".join(str(error).split()) or "a value cannot be read") from None


def _as_table(name: str, part: Any) -> dict[str, Any]:
    """The settings of a part by name; none if all lines of a YAML file's part are commented out."""
    if not isinstance(part, dict | None):
        raise UserError(f"{name} is {part!r:.80}; it must be settings by name")
    return part or {}


def as_toml(settings: TrainSettings, default: TrainSettings) -> str:
    """``settings`` as the text of a TOML file, from which they can be read again.

    Args:
        settings: to write.
        default: settings of the same choice without a file; a value that is None in both is left
            out.
    """
    plain = settings.plain()
    if settings.algo.length in (0, token_limit(settings)):
        plain["algo"].pop("length")
    return "\n".join(_table((), plain, default.plain())).strip() + "\n"


def _table(path: tuple[str, ...], values: Mapping[str, Any], default: Any) -> Iterator[str]:
    before = default if isinstance(default, dict) else {}
    tables = {name: value for name, value in values.items() if isinstance(value, dict)}
    pairs = {
        name: value
        for name, value in values.items()
        if name not in tables and not (value is None and before.get(name) is None)
    }
    if pairs:
        yield from ("", f"[{'.'.join(map(_key, path))}]")
        yield from (f"{_key(name)} = {_value(value)}" for name, value in pairs.items())
    for name, value in tables.items():
        yield from _table((*path, name), value, before.get(name))


def _key(name: str) -> str:
    return name if re.fullmatch(r"[A-Za-z0-9_-]+", name) else json.dumps(name, ensure_ascii=False)


def _value(value: Any) -> str:
    if isinstance(value, list):
        return f"[{', '.join(map(_value, value))}]"
    if isinstance(value, dict):
        return (
            f"{{{', '.join(f'{_key(name)} = {_value(inner)}' for name, inner in value.items())}}}"
        )
    if isinstance(value, float):
        return repr(value)  # TOML also writes inf and nan
    return json.dumps(_NOTHING if value is None else value, ensure_ascii=False)


def _as_settings(value: Any) -> Any:
    """``value`` with underscores for hyphens in names, and None for :data:`_NOTHING`."""
    if isinstance(value, dict):
        settings: dict[str, Any] = {}
        for name, inner in value.items():
            plain = str(name).replace("-", "_")
            if plain in settings:
                raise UserError(f"{plain} is given twice, with hyphens and without; write it once")
            settings[plain] = _as_settings(inner)
        return settings
    return None if value == _NOTHING else value


@contextmanager
def _naming(path: Path) -> Iterator[None]:
    """Put the path of the file before the message of an error."""
    try:
        yield
    except UserError as error:
        raise UserError(f"--config {path}: {error}") from None
