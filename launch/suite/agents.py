"""Who is compared: from ``NAME=WHAT`` to something that can be loaded and told apart."""

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from evaluation.suite.suites import NAME
from experts.naming import is_player, pool_members
from launch.compare.store import fingerprint
from models.locate import local_folder
from models.spec import ModelSpec
from teams.models import check_models, model_spec
from teams.settings import AgentSettings
from vocabulary import UserError, user_path

# Names of rows, which agents' rows stand beside.
_TAKEN = ("vote", "agreement", "routing", "cascade", "verifier")


@dataclass(frozen=True)
class Agent:
    """One competitor."""

    name: str
    model: str
    """A folder, a hub id, ``tiny:NAME``, or a player."""
    identity: Any
    """Tells its answers apart from others': weights by their hash, everything else by its name."""

    @property
    def settings(self) -> AgentSettings:
        return AgentSettings(self.model, trained=False)


def read_agents(texts: Sequence[str]) -> list[Agent]:
    """The agents that ``NAME=WHAT`` name, checked, nothing loaded.

    Raises:
        UserError: a name that cannot be, or a model that cannot be had.
    """
    if not texts:
        raise UserError("--agents: name who is compared, such as alice=runs/x bob=tiny:bob")
    found = [_read(text) for text in texts]
    names = [agent.name for agent in found]
    if len(set(names)) < len(names):
        raise UserError("--agents: two agents have the same name")
    return found


def read_verifier(text: str, agents: Sequence[Agent]) -> Agent | None:
    """One of the agents by its name, or another one; None without any.

    Raises:
        UserError: as for agents, or another one of a name that is taken.
    """
    if not text:
        return None
    named = {agent.name: agent for agent in agents}
    if text in named:
        return named[text]
    if "=" not in text:
        raise UserError(f"--verifier {text!r}: name one of {', '.join(named)}, or write NAME=WHAT")
    found = _read(text)
    if found.name in named:
        raise UserError(f"--verifier: {found.name} is an agent already; leave out ={found.model}")
    return found


def _read(text: str) -> Agent:
    name, equals, what = text.partition("=")
    if not equals or not what or not NAME.fullmatch(name) or name in _TAKEN:
        raise UserError(
            f"{text!r}: write NAME=WHAT, the name of letters, digits, dots and dashes, and none of "
            f"{', '.join(_TAKEN)}"
        )
    if is_player(what):
        members = [m if is_player(m) else _located(name, m) for m in pool_members(what)]
        what = what if len(members) == 1 else f"pool:{'|'.join(members)}"
    else:
        members = [what := _located(name, what)]
    check_models({name: AgentSettings(what, trained=False)})
    return Agent(name, what, [m if is_player(m) else _identity(m) for m in members])


def _located(name: str, what: str) -> str:
    """A run directory stands for the model that it trained under this name, or its only one."""
    run = user_path(what)
    trained = sorted(path.name for path in run.glob("final/*") if path.is_dir())
    if trained and not (run / "config.json").is_file():
        raise UserError(f"{what} is not a run (no config.json in it)")
    if trained:
        if name not in trained and len(trained) > 1:
            raise UserError(
                f"{what} trained {', '.join(trained)}: name one, such as "
                f"{name}={what}/final/{trained[0]}"
            )
        return str(run / "final" / (name if name in trained else trained[0]))
    if (run / "checkpoints").is_dir():
        raise UserError(f"{what} is a run that has not ended: python train.py --resume {what}")
    return what


def _identity(model: str) -> str:
    settings = AgentSettings(model, trained=False)
    spec = model_spec(settings)
    base = local_folder(ModelSpec(spec.model))
    parts = [fingerprint(base) if base else spec.model]
    if spec.lora is not None and spec.lora.adapter:
        parts.append(fingerprint(user_path(spec.lora.adapter)))
    return "+".join(parts)


Prices = Mapping[str, tuple[float, float]]
"""Agent -> money per million prompt tokens, and per million sampled tokens."""


def read_prices(texts: Sequence[str], agents: Sequence[str]) -> Prices:
    """``NAME=IN,OUT``, or a JSON file ``{"NAME": [IN, OUT]}``; none or one for every agent.

    Raises:
        UserError: anything else.
    """
    found: dict[str, tuple[float, float]] = {}
    for text in texts:
        for name, pair in _priced(text):
            if name not in agents:
                raise UserError(f"--prices names {name}; the agents are {', '.join(agents)}")
            try:
                given, sampled = (float(price) for price in pair)
            except (ValueError, TypeError, OverflowError):
                raise UserError(f"--prices {text!r}: write NAME=IN,OUT, two numbers") from None
            if not (0 <= given < math.inf and 0 <= sampled < math.inf):
                raise UserError(f"--prices {text!r}: a price is a number from 0 on")
            found[name] = given, sampled
    if found and (missing := [name for name in agents if name not in found]):
        raise UserError(f"--prices lacks {', '.join(missing)}; what costs nothing has 0,0")
    return found


def _priced(text: str) -> list[tuple[str, Any]]:
    name, equals, pair = text.partition("=")
    if equals:
        return [(name, pair.split(","))]
    try:
        content = json.loads(user_path(text).read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        content = None
    if not isinstance(content, dict):
        raise UserError(
            f'--prices {text!r}: write NAME=IN,OUT, or name a JSON file {{"NAME": [IN, OUT]}}'
        )
    return list(content.items())
